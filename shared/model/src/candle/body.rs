//! The layers of a model with the keys and values of one sequence, as candle-transformers keeps them together.

use std::fmt::Debug;

use candle_core::{Result, Tensor};
use candle_transformers::models::{glm4_new, qwen3_moe, smol::smollm3};

/// All of a model but its LM head, and one sequence's keys and values.
pub(super) trait Body: Debug + Send + Sync {
    /// Appends `tokens`, `(1, count)`, at position `at`, which is how many the sequence holds. Returns what the final norm
    /// makes of each, `(1, count, hidden_size)`.
    ///
    /// # Errors
    /// What candle refuses; the sequence may then hold a part of the tokens in some layers.
    fn append(&mut self, tokens: &Tensor, at: usize) -> Result<Tensor>;

    /// The same model and sequence, of which the weights are not copied. Whether the sequence's memory is, the
    /// [`Keeping`](super::cache::Keeping) of the family tells.
    fn copy(&self) -> Box<dyn Body>;
}

/// Models that return the hidden states of all positions.
macro_rules! bodies {
    ($($model:ty),+) => {
        $(impl Body for $model {
            fn append(&mut self, tokens: &Tensor, at: usize) -> Result<Tensor> {
                self.forward(tokens, at)
            }

            fn copy(&self) -> Box<dyn Body> {
                Box::new(self.clone())
            }
        })+
    };
}

bodies!(qwen3_moe::Model, glm4_new::Model, smollm3::Model);
