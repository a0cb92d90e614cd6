//! Why a head cannot be used.

use thiserror::Error;

use crate::weights::WeightsError;

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
