//! llama.cpp in this process.
//!
//! [`Settings`] says how it computes. With the feature `llama-cpp` a `Context` runs a GGUF file: it owns the
//! model, decodes batches, and keeps a [`CellLedger`] of what llama.cpp's memory holds. llama.cpp answers most
//! mistakes with one code, and some by writing beyond a buffer; the ledger refuses them by name before anything
//! is sent.

mod ledger;
mod settings;

#[cfg(feature = "llama-cpp")]
mod bare;
#[cfg(feature = "llama-cpp")]
mod context;
#[cfg(feature = "llama-cpp")]
mod loading;
#[cfg(feature = "llama-cpp")]
mod pieces;

pub use ledger::{BadEntry, BatchToken, CellLedger, DecodeError, SEQUENCES, SequenceId};
pub use settings::{KvType, Settings, SplitMode, TooManyThreads};

#[cfg(feature = "llama-cpp")]
pub use self::{
    bare::Bare,
    context::Context,
    loading::{Build, LoadError, VERSION, build},
    pieces::{LlamaVocabulary, VocabularyPiece},
};
