//! The layers of a model with the keys and values of one sequence, as candle-transformers keeps them together.

use std::fmt::{self, Debug, Formatter};

use candle_core::{Device, Result, Tensor};
use candle_transformers::models::{falcon, glm4_new, phi, qwen3_moe, smol::smollm3};

/// What a family's model in candle-transformers returns of a forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returns {
    /// The hidden states of all positions, after the final norm: the LM head is ours.
    HiddenStates,
    /// The logits of the last position, by an LM head of its own.
    LastRow,
}

/// A model and one sequence's keys and values.
pub(super) trait Body: Debug + Send + Sync {
    /// Appends `tokens`, of which there is at least one, at position `at`, which is how many the sequence holds. Returns
    /// what [`Returns`] says of the last `scored` of them or of more, `(rows, width)`.
    ///
    /// # Errors
    /// What candle refuses; the sequence may then hold a part of the tokens in some layers.
    fn append(
        &mut self,
        tokens: &[u32],
        at: usize,
        scored: usize,
        device: &Device,
    ) -> Result<Tensor>;

    /// The same model and sequence, of which the weights are not copied. Whether the sequence's memory is, the
    /// [`Keeping`](super::cache::Keeping) of the family tells.
    fn copy(&self) -> Box<dyn Body>;

    /// Computes the tables that the model makes in its first forward, so that all copies of an empty sequence share them.
    ///
    /// # Errors
    /// What candle refuses.
    fn prepare(&mut self, _device: &Device) -> Result<()> {
        Ok(())
    }
}

/// Token ids as candle's models take them, `(1, count)`.
fn input(tokens: &[u32], device: &Device) -> Result<Tensor> {
    Tensor::new(tokens, device)?.unsqueeze(0)
}

/// Models that return the hidden states of all positions.
macro_rules! bodies {
    ($($model:ty),+) => {
        $(impl Body for $model {
            fn append(&mut self, tokens: &[u32], at: usize, _: usize, device: &Device) -> Result<Tensor> {
                self.forward(&input(tokens, device)?, at)?.squeeze(0)
            }

            fn copy(&self) -> Box<dyn Body> {
                Box::new(self.clone())
            }
        })+
    };
}

bodies!(qwen3_moe::Model, glm4_new::Model, smollm3::Model);

/// A model of candle that returns the logits of the last position, and counts the positions itself.
pub(super) trait LastRowModel: Clone + Send + Sync + 'static {
    /// Appends `tokens`, `(1, count)`; returns the logits after the last, `(1, vocab_size)`.
    fn last_row(&mut self, tokens: &Tensor) -> Result<Tensor>;

    /// Forgets all tokens.
    fn forget(&mut self);
}

macro_rules! last_row_models {
    ($($model:ty),+) => {
        $(impl LastRowModel for $model {
            fn last_row(&mut self, tokens: &Tensor) -> Result<Tensor> {
                self.forward(tokens)
            }

            fn forget(&mut self) {
                self.clear_kv_cache();
            }
        })+
    };
}

last_row_models!(phi::Model, falcon::Falcon);

/// A model that returns the last row only. Its mask of several tokens does not cover what stands before them, so several
/// are computed at once only where they begin the sequence, and one by one after that.
#[derive(Clone)]
pub(super) struct LastRowBody<M>(pub(super) M);

impl<M> Debug for LastRowBody<M> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastRowBody").finish_non_exhaustive()
    }
}

impl<M: LastRowModel> Body for LastRowBody<M> {
    fn append(
        &mut self,
        tokens: &[u32],
        at: usize,
        scored: usize,
        device: &Device,
    ) -> Result<Tensor> {
        // The first forward ends with the first row that is wanted.
        let begins = if at == 0 {
            tokens.len() - scored.saturating_sub(1)
        } else {
            1
        };
        let (first, others) = tokens.split_at(begins);
        let mut rows = vec![self.0.last_row(&input(first, device)?)?];
        for token in others {
            rows.push(self.0.last_row(&input(&[*token], device)?)?);
        }
        let unwanted = rows.len() - scored.max(1);
        Tensor::cat(&rows[unwanted..], 0)
    }

    fn copy(&self) -> Box<dyn Body> {
        Box::new(self.clone())
    }

    fn prepare(&mut self, device: &Device) -> Result<()> {
        self.0.last_row(&input(&[0], device)?)?;
        self.0.forget();
        Ok(())
    }
}
