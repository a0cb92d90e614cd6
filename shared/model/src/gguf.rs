//! GGUF files, the format of llama.cpp, as they are read.
//!
//! Reading makes of such a file what a Hugging Face folder is: a config, tensors under the names and
//! in the layout they have there, a `tokenizer.json`. [`gguf_writer`](crate::gguf_writer) goes the other way. Nothing else in this
//! crate knows of the format.

mod array;
pub(crate) mod config;
pub(crate) mod container;
mod error;
pub(crate) mod pre_tokenizer;
pub(crate) mod rope_factors;
pub(crate) mod tensor_names;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tokenizer;
mod value;

pub(crate) use self::container::Container;
pub use self::error::GgufError;
#[cfg(feature = "llama-cpp")]
pub(crate) use self::value::Metadata;
