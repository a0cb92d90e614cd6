//! Tensors of a checkpoint: safetensors files, or bytes in memory.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use candle_core::{
    DType, Device, Tensor,
    safetensors::{BufferedSafetensors, MmapedSafetensors, SliceSafetensors},
};
use safetensors::tensor::TensorView;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use thiserror::Error;

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Tensors by name, read when asked for.
pub struct Weights {
    source: Source,
}

enum Source {
    Files(Vec<MmapedSafetensors>),
    Static(SliceSafetensors<'static>),
    Owned(BufferedSafetensors),
}

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
    #[error("{} cannot be read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
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
    #[error("tensor {name} is of type {found}: F32, F16 and BF16 are read")]
    Dtype {
        /// The tensor.
        name: String,
        /// Its type.
        found: String,
    },
}

#[derive(Deserialize)]
struct ShardIndex {
    weight_map: BTreeMap<String, String>,
}

impl Weights {
    /// Maps the weights of the checkpoint in `folder` into memory: `model.safetensors`, or the
    /// shards that `model.safetensors.index.json` names.
    ///
    /// # Errors
    /// If there are none, or a file is truncated; the message names the file.
    pub fn open(folder: &Path) -> Result<Self, WeightsError> {
        let maps = files(folder)?
            .into_iter()
            .map(|path| {
                // Opened once before it is mapped, to tell a file that cannot be read from one
                // that makes no sense.
                fs::File::open(&path).map_err(|source| io_error(&path, source))?;
                // SAFETY: the map is only read; that nobody rewrites a checkpoint in place while
                // it is served is the operator's part, as for every program that maps weights.
                unsafe { MmapedSafetensors::new(&path) }
                    .map_err(|error| malformed(&path.display().to_string(), &error))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            source: Source::Files(maps),
        })
    }

    /// Takes the bytes of a safetensors file, without a copy.
    ///
    /// # Errors
    /// If they are truncated.
    pub fn from_bytes(bytes: impl Into<Cow<'static, [u8]>>) -> Result<Self, WeightsError> {
        let source = match bytes.into() {
            Cow::Borrowed(bytes) => SliceSafetensors::new(bytes).map(Source::Static),
            Cow::Owned(bytes) => BufferedSafetensors::new(bytes).map(Source::Owned),
        };
        source
            .map(|source| Self { source })
            .map_err(|error| malformed("the file in memory", &error))
    }

    /// Whether there is a tensor of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.view(name).is_ok()
    }

    /// The tensor `name` in f32, row by row.
    ///
    /// # Errors
    /// If it is missing, has another shape than `expected`, or holds numbers of another kind.
    pub fn tensor(&self, name: &str, expected: &[usize]) -> Result<Vec<f32>, WeightsError> {
        let view = self.view(name)?;
        if view.shape() != expected {
            return Err(WeightsError::Shape {
                name: name.to_owned(),
                expected: expected.to_vec(),
                found: view.shape().to_vec(),
            });
        }
        let unreadable = || WeightsError::Dtype {
            name: name.to_owned(),
            found: format!("{:?}", view.dtype()),
        };
        let dtype = DType::try_from(view.dtype()).map_err(|_| unreadable())?;
        if !matches!(dtype, DType::F32 | DType::F16 | DType::BF16) {
            return Err(unreadable());
        }
        let values: Vec<f32> = Tensor::from_raw_buffer(view.data(), dtype, expected, &Device::Cpu)
            .and_then(|tensor| tensor.to_dtype(DType::F32)?.flatten_all()?.to_vec1())
            .map_err(|_| unreadable())?;
        if values
            .iter()
            .fold(false, |any, value| any | !value.is_finite())
        {
            let name = name.to_owned();
            return Err(WeightsError::NotFinite { name });
        }
        Ok(values)
    }

    /// Feeds names, types, shapes and contents to `hash`, in the order of the names: the same
    /// weights give the same digest however they are sharded.
    pub(crate) fn digest(&self, hash: &mut Sha256) {
        let mut tensors: Vec<(String, TensorView<'_>)> = match &self.source {
            Source::Files(maps) => maps.iter().flat_map(MmapedSafetensors::tensors).collect(),
            Source::Static(file) => file.tensors(),
            Source::Owned(file) => file.tensors(),
        };
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, view) in tensors {
            hash.update(format!("{name} {:?} {:?}\n", view.dtype(), view.shape()));
            hash.update(view.data());
        }
    }

    fn view(&self, name: &str) -> Result<TensorView<'_>, WeightsError> {
        match &self.source {
            Source::Files(maps) => maps.iter().find_map(|map| map.get(name).ok()),
            Source::Static(file) => file.get(name).ok(),
            Source::Owned(file) => file.get(name).ok(),
        }
        .ok_or_else(|| WeightsError::Missing(name.to_owned()))
    }
}

/// The safetensors files of the checkpoint in `folder`.
fn files(folder: &Path) -> Result<Vec<PathBuf>, WeightsError> {
    let single = folder.join(SINGLE);
    if single.exists() {
        return Ok(vec![single]);
    }
    let path = folder.join(INDEX);
    let json = match fs::read(&path) {
        Ok(json) => json,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(WeightsError::NoWeights {
                folder: folder.to_owned(),
            });
        }
        Err(source) => return Err(io_error(&path, source)),
    };
    let index: ShardIndex =
        serde_json::from_slice(&json).map_err(|source| WeightsError::Index {
            path: path.clone(),
            source,
        })?;
    let shards: BTreeSet<String> = index.weight_map.into_values().collect();
    shards
        .into_iter()
        .map(|shard| {
            if Path::new(&shard)
                .file_name()
                .is_none_or(|name| name != shard.as_str())
            {
                let path = path.clone();
                return Err(WeightsError::ShardPath { path, shard });
            }
            Ok(folder.join(shard))
        })
        .collect()
}

fn io_error(path: &Path, source: io::Error) -> WeightsError {
    WeightsError::Io {
        path: path.to_owned(),
        source,
    }
}

fn malformed(file: &str, error: &candle_core::Error) -> WeightsError {
    WeightsError::Malformed {
        file: file.to_owned(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
