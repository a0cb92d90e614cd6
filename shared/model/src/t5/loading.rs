//! From a checkpoint's tensors to the matrices, norms and biases of a T5.

use super::position::{Direction, RelativeBias};
use crate::{
    config::{EncoderConfig, ModelConfig, architecture::t5::relative_bias},
    linear::{Linear, OutputOrder, WeightFormat},
    norm::RmsNorm,
    weights::{Weights, WeightsError},
};

/// The embedding table.
pub(super) const EMBEDDING: &str = "shared.weight";

/// The tensors of a model.
pub(super) struct T5Loader<'a> {
    pub(super) config: &'a ModelConfig,
    pub(super) encoder: &'a EncoderConfig,
    pub(super) weights: &'a Weights,
    pub(super) format: WeightFormat,
}

impl T5Loader<'_> {
    /// The table of the vocabulary's rows called `name`.
    pub(super) fn table(&self, name: &str) -> Result<Linear, WeightsError> {
        let shape = [self.config.vocab_size, self.config.hidden_size];
        let order = OutputOrder::AsGiven;
        (self.weights).linear(&[(name.to_owned(), shape)], None, self.format, order)
    }

    /// The LM head, if it is not the embedding table. A file that was saved anew may call it tied and yet hold
    /// one of its own: what it holds is what the model was trained with.
    pub(super) fn head(&self) -> Result<Option<Linear>, WeightsError> {
        const NAME: &str = "lm_head.weight";
        if self.config.tie_word_embeddings && !self.weights.contains(NAME) {
            return Ok(None);
        }
        let shape = [self.config.vocab_size, self.config.hidden_size];
        let [own, embedding] = [NAME, EMBEDDING].map(|name| self.weights.tensor(name, &shape));
        (own? != embedding?).then(|| self.table(NAME)).transpose()
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
