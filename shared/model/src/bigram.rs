//! Bigram tables on disk: what Max-Gram proposes where it has nothing to copy, and which vocabulary it
//! speaks.
//!
//! A file is safetensors with one tensor, `next` (vocab, u32), and metadata: the version of the layout, the
//! vocabulary's fingerprint, and the end tokens of the models it goes with. So a drafter can be run from it
//! alone, without any model.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use speculation::max_gram::Bigram;
use thiserror::Error;

use crate::checkpoint::hex;
use crate::weights::file::json_entry;

/// Version of the file's layout.
const FORMAT: u32 = 1;
/// The metadata entry. All stands in one, as JSON: safetensors writes its entries in no fixed order, and
/// equal tables must make equal files.
const ENTRY: &str = "bigram_table";
const TENSOR: &str = "next";

/// What the metadata entry holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredBigram {
    format: u32,
    vocab_fingerprint: String,
    eos_token_ids: Vec<u32>,
}

/// A bigram table, and the vocabulary it is of.
#[derive(Clone, Debug, PartialEq)]
pub struct BigramFile {
    /// The table.
    pub table: Bigram,
    /// SHA-256 over the tokenizer's ids and bytes.
    pub vocab_fingerprint: [u8; 32],
    /// End tokens of the models it goes with.
    pub eos_token_ids: Vec<u32>,
}

/// Why a bigram table cannot be had.
#[derive(Debug, Error)]
pub enum BigramError {
    /// The file cannot be read or written.
    #[error("'{}' cannot be {what}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The bytes are no bigram table.
    #[error("'{file}' is no bigram table: {reason}; `outrider-bench bigram build` makes one")]
    Malformed {
        /// The file, or where the bytes came from.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The table is of another vocabulary.
    #[error(
        "'{file}' is of another vocabulary ({found} tokens) than the model ({expected} tokens); make one \
         with the model's tokenizer: `outrider-bench bigram build`"
    )]
    Vocabulary {
        /// The file, or where the bytes came from.
        file: String,
        /// Tokens of the table.
        found: usize,
        /// Tokens of the model.
        expected: u32,
    },
    /// The program was built without it.
    #[error("no bigram table is compiled into this program")]
    NotEmbedded,
}

impl BigramFile {
    /// Number of token ids of the vocabulary.
    pub fn vocab_size(&self) -> u32 {
        self.table.table().len() as u32
    }

    /// Reads `path`, or the embedded pair's own table if it is `embedded`.
    ///
    /// # Errors
    /// [`BigramError`] naming the file and what is wrong with it.
    pub fn open(path: &str) -> Result<Self, BigramError> {
        if path == "embedded" {
            let bytes = crate::embedded::bigram().ok_or(BigramError::NotEmbedded)?;
            return Self::from_bytes(&bytes, path);
        }
        let bytes = fs::read(path).map_err(|source| BigramError::Io {
            path: path.into(),
            what: "read",
            source,
        })?;
        Self::from_bytes(&bytes, path)
    }

    /// Reads the bytes of a file; `file` is for messages.
    ///
    /// # Errors
    /// [`BigramError::Malformed`] telling what is wrong with them.
    pub fn from_bytes(bytes: &[u8], file: &str) -> Result<Self, BigramError> {
        let malformed = |reason: String| BigramError::Malformed {
            file: file.to_owned(),
            reason,
        };
        let parsed = SafeTensors::deserialize(bytes);
        let tensors = parsed.map_err(|error| malformed(error.to_string()))?;
        let stored = json_entry(bytes, ENTRY).map_err(malformed)?;
        // Before the other fields, which another format may name otherwise.
        let format = &stored["format"];
        if format.as_u64() != Some(FORMAT.into()) {
            return Err(malformed(format!(
                "its format is {format}, expected {FORMAT}"
            )));
        }
        let stored: StoredBigram = serde_json::from_value(stored)
            .map_err(|error| malformed(format!("{ENTRY}: {error}")))?;
        let tensor = tensors.tensor(TENSOR);
        let tensor = tensor.map_err(|error| malformed(error.to_string()))?;
        if tensor.dtype() != Dtype::U32 || tensor.shape().len() != 1 {
            let (dtype, shape) = (tensor.dtype(), tensor.shape());
            let problem = format!("{TENSOR} is {dtype:?} of shape {shape:?}, expected U32 (vocab)");
            return Err(malformed(problem));
        }
        let (words, _) = tensor.data().as_chunks::<4>();
        let next = words.iter().map(|&word| u32::from_le_bytes(word)).collect();
        let table = Bigram::new(next).map_err(|error| malformed(error.to_string()))?;
        let size = table.table().len();
        if let Some(id) = stored.eos_token_ids.iter().find(|&&id| id as usize >= size) {
            let problem = format!("end token {id} is not in its vocabulary of {size} tokens");
            return Err(malformed(problem));
        }
        Ok(Self {
            table,
            vocab_fingerprint: fingerprint(&stored.vocab_fingerprint).ok_or_else(|| {
                malformed("'vocab_fingerprint' is not 64 hexadecimal digits".to_owned())
            })?,
            eos_token_ids: stored.eos_token_ids,
        })
    }

    /// Writes the table to `path`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), BigramError> {
        let io = |source| BigramError::Io {
            path: path.to_owned(),
            what: "written",
            source,
        };
        let bytes = self.to_bytes().map_err(io)?;
        fs::write(path, bytes).map_err(io)
    }

    fn to_bytes(&self) -> Result<Vec<u8>, std::io::Error> {
        let stored = StoredBigram {
            format: FORMAT,
            vocab_fingerprint: hex(&self.vocab_fingerprint),
            eos_token_ids: self.eos_token_ids.clone(),
        };
        let entry = serde_json::to_string(&stored)?;
        let metadata = HashMap::from([(ENTRY.to_owned(), entry)]);
        let words = self.table.table().iter();
        let data: Vec<u8> = words.flat_map(|next| next.to_le_bytes()).collect();
        let other = std::io::Error::other::<safetensors::SafeTensorError>;
        let view = TensorView::new(Dtype::U32, vec![data.len() / 4], &data).map_err(other)?;
        safetensors::serialize([(TENSOR, view)], Some(metadata)).map_err(other)
    }

    /// SHA-256 of the table, in hexadecimal: two drafters with equal ones propose the same tokens.
    pub fn fingerprint(&self) -> String {
        let words = self.table.table().iter();
        let bytes: Vec<u8> = words.flat_map(|next| next.to_le_bytes()).collect();
        hex(&Sha256::digest(bytes))
    }

    /// Checks that the table is of a model's vocabulary; `file` is for messages.
    ///
    /// # Errors
    /// [`BigramError::Vocabulary`] with both sizes.
    pub fn check(
        &self,
        vocab_fingerprint: &[u8],
        vocab_size: u32,
        file: &str,
    ) -> Result<(), BigramError> {
        if self.vocab_fingerprint == vocab_fingerprint && self.vocab_size() == vocab_size {
            return Ok(());
        }
        Err(BigramError::Vocabulary {
            file: file.to_owned(),
            found: self.table.table().len(),
            expected: vocab_size,
        })
    }
}

fn fingerprint(digits: &str) -> Option<[u8; 32]> {
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> BigramFile {
        BigramFile {
            table: Bigram::new(vec![1, 2, 0, 3]).expect("a table"),
            vocab_fingerprint: std::array::from_fn(|at| at as u8 * 7),
            eos_token_ids: vec![3, 0],
        }
    }

    #[test]
    fn a_table_survives_its_file_and_equal_tables_make_equal_files() {
        let bytes = file().to_bytes().expect("bytes");
        assert_eq!(BigramFile::from_bytes(&bytes, "x").expect("a file"), file());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("bigram.safetensors");
        for _ in 0..20 {
            assert_eq!(file().to_bytes().expect("bytes"), bytes);
        }
        file().save(&path).expect("written");
        let path = path.to_str().expect("UTF-8");
        assert_eq!(BigramFile::open(path).expect("a file"), file());
    }

    #[test]
    fn what_is_no_table_is_named() {
        let message = |bytes: &[u8]| {
            let error = BigramFile::from_bytes(bytes, "t.safetensors").expect_err("refused");
            let message = error.to_string();
            assert!(message.contains("'t.safetensors'"), "{message}");
            message
        };
        assert!(message(b"nonsense").contains("`outrider-bench bigram build`"));
        let data = [9_u8, 0, 0, 0];
        let write = |dtype, shape, metadata: &[(&str, &str)]| {
            let view = TensorView::new(dtype, shape, &data).expect("a view");
            let metadata = metadata
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            safetensors::serialize([(TENSOR, view)], Some(metadata.collect())).expect("bytes")
        };
        let entry = |format: u32| {
            let stored = StoredBigram {
                format,
                vocab_fingerprint: "0".repeat(64),
                eos_token_ids: vec![0],
            };
            serde_json::to_string(&stored).expect("JSON")
        };
        let (good, other) = (entry(FORMAT), entry(2));
        let (good, other) = ([(ENTRY, good.as_str())], [(ENTRY, other.as_str())]);
        assert!(message(&write(Dtype::U32, vec![1], &[])).contains("no entry bigram_table"));
        assert!(message(&write(Dtype::U32, vec![1], &other)).contains("format is 2, expected 1"));
        assert!(message(&write(Dtype::F32, vec![1], &good)).contains("expected U32"));
        assert!(message(&write(Dtype::U32, vec![1], &good)).contains("entry 0 is 9"));
        for digits in [String::new(), "0".repeat(63), "g".repeat(64)] {
            assert_eq!(fingerprint(&digits), None);
        }
        let outside = BigramFile {
            eos_token_ids: vec![4],
            ..file()
        };
        let bytes = outside.to_bytes().expect("bytes");
        assert!(message(&bytes).contains("end token 4"));
    }

    #[test]
    fn another_vocabulary_is_refused() {
        let file = file();
        assert!(file.check(&file.vocab_fingerprint, 4, "t").is_ok());
        assert!(file.check(&[0; 32], 4, "t").is_err());
        let error = file.check(&file.vocab_fingerprint, 5, "t").expect_err("5");
        let message = error.to_string();
        assert!(
            message.contains("(4 tokens)") && message.contains("(5 tokens)"),
            "{message}"
        );
    }

    #[test]
    #[cfg(feature = "embedded")]
    fn the_embedded_table_is_of_the_embedded_pair() {
        let table = BigramFile::open("embedded").expect("embedded");
        let target = crate::source::ModelSource::embedded("target");
        let target = target.load().expect("a target");
        let size = target.outline.vocab_size;
        table
            .check(&target.outline.vocab_fingerprint, size, "embedded")
            .expect("one vocabulary");
        assert_eq!(table.eos_token_ids, target.eos_token_ids);
    }
}
