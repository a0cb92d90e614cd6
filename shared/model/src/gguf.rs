//! GGUF files: the format of llama.cpp, read and written.
//!
//! Reading makes of such a file what a Hugging Face folder is: a config, tensors under the names and
//! in the layout they have there, a `tokenizer.json`. Writing goes the other way. Nothing else in this
//! crate knows of the format.

mod array;
pub(crate) mod config;
pub(crate) mod container;
mod error;
pub(crate) mod ggml_type;
mod pre_tokenizer;
mod rope_factors;
pub(crate) mod tensor_names;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tokenizer;
mod value;
mod write;

#[cfg(feature = "llama-cpp")]
pub(crate) use self::value::Metadata;
pub(crate) use self::{container::Container, write::encode};
pub use self::{
    error::GgufError,
    write::{FileFormat, GgufWriteError, UnknownFileFormat, WriteProgress, Written, verify, write},
};
