//! Why weights cannot be read.

use std::path::PathBuf;

use thiserror::Error;

use super::file::UnreadableFile;
use super::ggml_type;
use super::shards::{INDEX, SINGLE};

/// Why weights cannot be read.
#[derive(Debug, Error)]
pub enum WeightsError {
    /// Neither a single file nor an index of shards.
    #[error("{} holds neither {SINGLE} nor {INDEX}", folder.display())]
    NoWeights {
        /// Where they were looked for.
        folder: PathBuf,
    },
    /// A file cannot be opened.
    #[error(transparent)]
    Unreadable(#[from] UnreadableFile),
    /// The index of shards is not what it should be.
    #[error("{} is not an index of shards", path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The index names a file outside the folder.
    #[error("{} names the shard {shard:?}, which is not a plain file name", path.display())]
    ShardPath {
        /// The index.
        path: PathBuf,
        /// The name it gives.
        shard: String,
    },
    /// Not safetensors, or shorter than its header says.
    #[error("{file} is truncated or not a safetensors file: {reason}")]
    Malformed {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No such tensor.
    #[error("tensor {0} is missing")]
    Missing(String),
    /// A tensor holds NaN or an infinity.
    #[error("tensor {name} holds numbers that are not finite")]
    NotFinite {
        /// The tensor.
        name: String,
    },
    /// The tensor's shape is not what the config implies.
    #[error("tensor {name} has shape {found:?}, the config implies {expected:?}")]
    Shape {
        /// The tensor.
        name: String,
        /// What the config implies.
        expected: Vec<usize>,
        /// What the file holds.
        found: Vec<usize>,
    },
    /// Numbers in a format that is not read.
    #[error("tensor {name} is of type {found}: {} are read", supported(*gguf))]
    Dtype {
        /// The tensor.
        name: String,
        /// Its type.
        found: String,
        /// Whether it is in a GGUF file.
        gguf: bool,
    },
    /// Numbers that a format cannot hold.
    #[error("tensor {name} cannot be quantised: {reason}")]
    Encode {
        /// The tensor.
        name: String,
        /// Why not.
        reason: String,
    },
}

impl WeightsError {
    pub(super) fn malformed(file: &str, reason: &impl ToString) -> Self {
        Self::Malformed {
            file: file.to_owned(),
            reason: reason.to_string(),
        }
    }
}

/// The number formats that are read, for messages.
fn supported(gguf: bool) -> String {
    if gguf {
        ggml_type::supported()
    } else {
        "F32, F16 and BF16".to_owned()
    }
}
