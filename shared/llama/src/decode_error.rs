//! Why a batch was not computed.

use thiserror::Error;

use crate::ledger::BadEntry;

/// Why a batch was not computed. Every sequence holds what it held before.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// An entry was refused.
    #[error(transparent)]
    Entry(#[from] BadEntry),
    /// llama.cpp failed.
    #[error("llama.cpp failed: {0}")]
    Failed(String),
}
