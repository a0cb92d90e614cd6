//! The acceptance head of SpecDec++: how likely a draft token is to be accepted, from the draft model's
//! own hidden state.
//!
//! Huang et al., "SpecDec++: Boosting Speculative Decoding via Adaptive Candidate Lengths" (2024),
//! section 3.2: D residual blocks `x <- x + SiLU(W x + b)`, then a linear layer to two logits;
//! P(accept) = softmax(z)\[1\] = sigmoid(z1 - z0). The input is the last hidden state after the final
//! norm, at the draft token's own position. It is learnt in the laboratory, by `outrider-bench train-head`.

mod file;
mod inference;
#[cfg(test)]
mod tests;

use std::path::Path;

use crate::cpu::Cpu;
use speculation::verification::AcceptanceLabel;
use thiserror::Error;

use crate::linear::{Linear, WeightFormat};
use crate::weights::WeightsError;

pub(crate) use self::file::{files_in, fitting_in};
pub use self::inference::HeadScratch;

/// Most residual blocks.
pub const MAX_DEPTH: usize = 4;

/// What a head is, and how it was trained.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadInfo {
    /// Number D of residual blocks, 0 to [`MAX_DEPTH`].
    pub depth: usize,
    /// Whether all blocks share one weight and bias, as in the authors' release.
    pub tied: bool,
    /// Length of the draft model's hidden state.
    pub hidden_size: usize,
    /// Under which verification acceptance is predicted.
    pub label: AcceptanceLabel,
    /// Fingerprint of the draft model's weights, [`crate::Checkpoint::fingerprint`].
    pub draft_fingerprint: String,
    /// Weight of refusals in the loss; with 1 the prediction is a probability as it stands.
    pub w_rej: f64,
    /// Share of the target's own tokens in the training context.
    pub mix: f64,
    /// Seed of the training.
    pub seed: u64,
}

/// A head's numbers, as they are stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeadWeights {
    /// Weight `(hidden, hidden)`, row by row an output, and bias `(hidden)` of each block; one entry
    /// if the blocks are tied.
    pub blocks: Vec<(Vec<f32>, Vec<f32>)>,
    /// Weight of the last layer, `(2, hidden)`: refused, then accepted.
    pub out_weight: Vec<f32>,
    /// Its bias, `(2)`.
    pub out_bias: Vec<f32>,
}

/// A trained acceptance head, ready to predict.
#[derive(Clone, Debug)]
pub struct AcceptanceHead {
    info: HeadInfo,
    /// Where it came from, for messages.
    origin: String,
    weights: HeadWeights,
    cpu: Cpu,
    /// One if the blocks are tied.
    blocks: Vec<Linear>,
    /// Row 1 less row 0 of the last layer: only z1 - z0 counts.
    margin: Vec<f32>,
    margin_bias: f32,
}

impl HeadInfo {
    /// Different blocks stored: `depth`, or one if they are tied.
    pub fn stored_blocks(&self) -> usize {
        if self.tied {
            self.depth.min(1)
        } else {
            self.depth
        }
    }
}

impl HeadWeights {
    fn blocks_in(&self, format: WeightFormat, hidden: usize) -> Vec<Linear> {
        let blocks = self.blocks.iter();
        blocks
            .map(|(weight, bias)| Linear::new(weight, Some(bias.clone()), hidden, format))
            .collect()
    }
}

impl AcceptanceHead {
    /// A head of these numbers; `origin` says where they come from.
    ///
    /// # Errors
    /// If their sizes are not those that `info` implies.
    pub fn new(info: HeadInfo, weights: HeadWeights, origin: &str) -> Result<Self, HeadError> {
        let hidden = info.hidden_size;
        let wrong = |field, found: String, expected: String| {
            Err(HeadError::Field {
                file: origin.to_owned(),
                field,
                found,
                expected,
            })
        };
        if info.depth > MAX_DEPTH {
            return wrong("depth", info.depth.to_string(), format!("0 to {MAX_DEPTH}"));
        }
        if hidden == 0 {
            return wrong("hidden_size", "0".to_owned(), "at least 1".to_owned());
        }
        let blocks_fit = weights.blocks.len() == info.stored_blocks()
            && (weights.blocks.iter())
                .all(|(weight, bias)| weight.len() == hidden * hidden && bias.len() == hidden);
        if !blocks_fit || weights.out_weight.len() != 2 * hidden || weights.out_bias.len() != 2 {
            let expected = format!("those of {} blocks of width {hidden}", info.stored_blocks());
            return wrong("tensors", "other sizes".to_owned(), expected);
        }
        let (refused, accepted) = weights.out_weight.split_at(hidden);
        Ok(Self {
            cpu: Cpu::detect(),
            blocks: weights.blocks_in(WeightFormat::F32, hidden),
            margin: accepted.iter().zip(refused).map(|(a, r)| a - r).collect(),
            margin_bias: weights.out_bias[1] - weights.out_bias[0],
            origin: origin.to_owned(),
            info,
            weights,
        })
    }

    /// The same head with its blocks computed in `format`, that of its draft model: beside a forward in
    /// Q8_0, weights in f32 would weigh four times as much as they need.
    #[must_use]
    pub fn in_format(mut self, format: WeightFormat) -> Self {
        self.blocks = self.weights.blocks_in(format, self.info.hidden_size);
        self
    }

    /// Returns the description of the head.
    pub fn info(&self) -> &HeadInfo {
        &self.info
    }

    /// Its numbers.
    pub fn weights(&self) -> &HeadWeights {
        &self.weights
    }

    /// Where it came from: a file's path, or `embedded`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Checks that it reads hidden states of this size.
    ///
    /// # Errors
    /// Names the file, and what the head was trained for.
    pub fn check_width(&self, hidden_size: usize) -> Result<(), HeadError> {
        if self.info.hidden_size == hidden_size {
            return Ok(());
        }
        Err(HeadError::Field {
            file: self.origin.clone(),
            field: "hidden_size",
            found: self.info.hidden_size.to_string(),
            expected: match hidden_size {
                0 => "no head: the draft model gives no hidden states".to_owned(),
                _ => format!("{hidden_size}, the draft model's"),
            },
        })
    }

    /// Checks that it was trained for the draft model with this hidden size and fingerprint.
    ///
    /// # Errors
    /// Names the file, and what the head was trained for.
    pub fn check(&self, hidden_size: usize, draft_fingerprint: &str) -> Result<(), HeadError> {
        self.check_width(hidden_size)?;
        if self.info.draft_fingerprint != draft_fingerprint {
            return Err(HeadError::OtherDraft {
                file: self.origin.clone(),
                found: self.info.draft_fingerprint.clone(),
                expected: draft_fingerprint.to_owned(),
            });
        }
        Ok(())
    }
}

/// Why a head cannot be opened, or does not fit.
#[derive(Debug, Error)]
pub enum HeadError {
    /// The file cannot be read or written.
    #[error("{file} cannot be {action}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What was tried: read or written.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not a safetensors file, or one without a head's metadata.
    #[error("{file} is not an acceptance head: {reason}")]
    Malformed {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A field of the metadata has a value that cannot be.
    #[error("{file}: {field} is {found}, expected {expected}")]
    Field {
        /// The file.
        file: String,
        /// The field.
        field: &'static str,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
    /// A tensor is missing, or has another shape than the metadata implies.
    #[error("{file}: {source}")]
    Tensor {
        /// The file.
        file: String,
        /// What is wrong with it.
        source: WeightsError,
    },
    /// Trained on the hidden states of other weights.
    #[error(
        "{file}: draft_fingerprint is {found}, expected {expected}: the head was trained for another draft model; \
         train one with outrider-bench train-head"
    )]
    OtherDraft {
        /// The file.
        file: String,
        /// The head's draft model.
        found: String,
        /// The one served.
        expected: String,
    },
}

impl HeadError {
    /// Says of an error that `file` cannot be read or written.
    fn io(file: &Path, action: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Io {
            file: file.display().to_string(),
            action,
            source,
        }
    }
}
