//! From a checkpoint's tensors to the matrices, norms and biases of a T5.

use super::position::{Direction, RelativeBias};
use crate::{
    config::{EncoderConfig, ModelConfig, architecture::t5::relative_bias},
    linear::{Linear, OutputOrder, WeightFormat},
    norm::RmsNorm,
    weights::{Weights, WeightsError},
};

/// The tensors of a model.
pub(super) struct T5Loader<'a> {
    pub(super) config: &'a ModelConfig,
    pub(super) encoder: &'a EncoderConfig,
    pub(super) weights: &'a Weights,
    pub(super) format: WeightFormat,
}

impl T5Loader<'_> {
    /// The LM head, if it is not the embedding table. A file that was saved anew may call it tied and yet hold
    /// one of its own: what it holds is what the model was trained with.
    pub(super) fn head(&self, embedding: &[f32]) -> Result<Option<Linear>, WeightsError> {
        const NAME: &str = "lm_head.weight";
        if self.config.tie_word_embeddings && !self.weights.contains(NAME) {
            return Ok(None);
        }
        let hidden = self.config.hidden_size;
        let values = (self.weights).tensor(NAME, &[self.config.vocab_size, hidden])?;
        let own = values != embedding;
        Ok(own.then(|| Linear::new(&values, None, hidden, self.format)))
    }

    /// The projections `parts` of the sublayer `name`, all of the same input and of the shape `shape`, as one
    /// matrix with its outputs in `order`.
    pub(super) fn stack(
        &self,
        order: OutputOrder,
        name: &str,
        parts: &[&str],
        shape: [usize; 2],
    ) -> Result<Linear, WeightsError> {
        let matrices = parts.iter();
        let matrices = matrices.map(|part| (format!("{name}.{part}.weight"), shape));
        let matrices: Vec<_> = matrices.collect();
        self.weights.linear(&matrices, None, self.format, order)
    }

    /// The norm called `name`.
    pub(super) fn norm(&self, name: &str) -> Result<RmsNorm, WeightsError> {
        let name = format!("{name}.weight");
        let weight = self.weights.tensor(&name, &[self.config.hidden_size])?;
        Ok(RmsNorm::new(weight, self.config.rms_norm_eps))
    }

    /// The relative position bias of `stack`.
    pub(super) fn bias(
        &self,
        stack: &str,
        direction: Direction,
    ) -> Result<RelativeBias, WeightsError> {
        let (encoder, len) = (self.encoder, self.config.context_len);
        let heads = self.config.heads;
        let shape = [encoder.relative_buckets, heads];
        let weights = self.weights.tensor(&relative_bias(stack), &shape)?;
        Ok(RelativeBias::new(&weights, heads, encoder, direction, len))
    }
}
