//! llama.cpp in this process.
//!
//! [`Settings`] says how it computes. With the feature `llama-cpp` a `Context` runs a GGUF file: it owns the
//! model, decodes batches, and keeps a [`Ledger`] of what llama.cpp's memory holds. llama.cpp answers most
//! mistakes with one code, and some by writing beyond a buffer; the ledger refuses them by name before anything
//! is sent.

mod ledger;
mod settings;

#[cfg(feature = "llama-cpp")]
mod bare;
#[cfg(feature = "llama-cpp")]
mod context;
#[cfg(feature = "llama-cpp")]
mod decode_error;
#[cfg(feature = "llama-cpp")]
mod loading;
#[cfg(feature = "llama-cpp")]
mod owned;
#[cfg(feature = "llama-cpp")]
mod pieces;

pub use ledger::{BadEntry, Entry, Ledger, SEQUENCES, SequenceId};
pub use settings::{KvType, Settings, SplitMode, TooManyThreads};

#[cfg(feature = "llama-cpp")]
pub use self::{
    bare::Bare,
    context::Context,
    decode_error::DecodeError,
    loading::{Build, LoadError, VERSION, build},
    pieces::{Piece, Vocabulary},
};
