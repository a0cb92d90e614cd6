//! From a checkpoint's tensors to the matrices and norms of a layer.

use super::tensors::{LayerPart, TensorNames};
use crate::{
    config::ModelConfig,
    linear::{Linear, OutputOrder, WeightFormat},
    mlp::GatedMlp,
    norm::RmsNorm,
    weights::{Weights, WeightsError},
};

/// The tensors of one layer.
pub(super) struct LayerWeights<'a> {
    pub(super) config: &'a ModelConfig,
    pub(super) weights: &'a Weights,
    pub(super) names: TensorNames,
    pub(super) index: usize,
    pub(super) format: WeightFormat,
}

impl LayerWeights<'_> {
    /// Projections of one input, as one matrix.
    pub(super) fn stack(&self, parts: &[LayerPart]) -> Result<Linear, WeightsError> {
        self.ordered(OutputOrder::AsGiven, parts)
    }

    /// [`Linear::new`] with the outputs in `order`.
    fn ordered(&self, order: OutputOrder, parts: &[LayerPart]) -> Result<Linear, WeightsError> {
        let (config, index) = (self.config, self.index);
        let (mut matrices, mut bias) = (Vec::new(), None);
        for &part in parts {
            let shape = part.shape(config);
            let name = self.names.weight(config, index, part);
            // Of a matrix and its bias that both do not fit, the matrix says more.
            self.weights.check(&name, &shape)?;
            matrices.push((name, [shape[0], shape[1]]));
            if part.has_bias(config) {
                let name = self.names.bias(config, index, part);
                let values = self.weights.tensor(&name, &shape[..1])?;
                bias.get_or_insert_with(Vec::new).extend(values);
            }
        }
        self.weights.linear(&matrices, bias, self.format, order)
    }

    /// The feed-forward network.
    pub(super) fn mlp(&self) -> Result<GatedMlp, WeightsError> {
        Ok(GatedMlp::new(
            self.ordered(OutputOrder::Paired, &[LayerPart::Gate, LayerPart::Up])?,
            self.stack(&[LayerPart::Down])?,
            self.config.activation,
        ))
    }

    /// The norm `part`.
    pub(super) fn norm(&self, part: LayerPart) -> Result<RmsNorm, WeightsError> {
        let name = self.names.weight(self.config, self.index, part);
        let weight = self.weights.tensor(&name, &part.shape(self.config))?;
        Ok(norm(self.config, weight))
    }

    /// The norm `part`, if models of this kind have it.
    pub(super) fn optional_norm(&self, part: LayerPart) -> Result<Option<RmsNorm>, WeightsError> {
        let has_part = LayerPart::of(self.config).any(|other| other == part);
        has_part.then(|| self.norm(part)).transpose()
    }
}

/// A norm with `weight`, as the models of `config` apply it.
pub(super) fn norm(config: &ModelConfig, weight: Vec<f32>) -> RmsNorm {
    if config.norm_plus_one {
        RmsNorm::plus_one(weight, config.rms_norm_eps)
    } else {
        RmsNorm::new(weight, config.rms_norm_eps)
    }
}
