//! Which model a service serves: where it is, and how it is computed.

mod candle;
mod error;
mod families;
mod heads;
mod inspected;
#[cfg(feature = "llama-cpp")]
mod llama_cpp;
mod loading;
mod located;
mod served;
mod text;

pub use crate::reference::{BadReference, HubReference, ModelReference};
pub use candle::CandleSourceError;
pub use error::SourceError;
pub use families::{FamilyOfModels, families};
pub use inspected::{Inspected, NeedsOfCandle, Outline, TextEncoding};
pub use served::{Numerics, ServedModel, serve};
pub use text::ModelText;

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checkpoint::Checkpoint;
pub use crate::checkpoint::SpecialTokens;
use crate::computation::{self, Computation, ComputeDevice, UnknownComputation};
use crate::linear::WeightFormat;
use crate::progress::{ProgressLines, ProgressObserver};
use ::llama_cpp::Settings;

/// A model as a section of a service's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table that names the model by its path, { path = \"embedded:draft\" }"
)]
pub struct ModelSource {
    /// A checkpoint folder in the Hugging Face layout, a GGUF file or a folder with one, `org/name[@revision][:file]` for a
    /// model of the hub, or `embedded:target`, `embedded:draft` or `embedded:small` for one that is compiled in.
    pub path: String,
    /// Name the model is served under; empty takes the last part of the path.
    #[serde(default)]
    pub name: String,
    /// What computes it: `outrider`, this program's own runtime; `candle`, candle-transformers, for folders of some
    /// other families; or `llama-cpp` for any GGUF file that llama.cpp loads, in programs built with the feature of that
    /// name. `auto` is the first of the first two that knows the family.
    #[serde(default)]
    pub engine: EngineKind,
    /// Format the weights are computed in: `q8_0`, `q4_k` or `f32` on a CPU; `bf16`, `f16` or `f32` on a GPU;
    /// `auto` is the first of these, but `q4_k` for files that are in it. candle computes in `f32`, its `auto`, `bf16` or
    /// `f16`, llama.cpp in the file's own: `auto`.
    #[serde(default = "default_dtype")]
    pub dtype: String,
    /// Format that keys and values are held in: `q8_0`, `f16` or `f32` on a CPU; on a GPU and in candle it is that of the
    /// weights. `auto` is `f32` beside weights in `f32`, and `f16` beside others. In llama.cpp it is `f32`, `f16`, or with
    /// flash attention `q8_0`; `auto` is `f32`, with which rows depend the least on how their sequence was cut.
    #[serde(default = "default_dtype")]
    pub kv_dtype: String,
    /// Where it is computed: `cpu`, or `cuda` or `cuda:N` for a GPU. llama.cpp takes the GPUs that
    /// `llama_cpp.gpu_layers` says.
    #[serde(default = "default_device")]
    pub device: String,
    /// Folder that weights are kept in as a CPU computes with them: packed by the first process that loads them, and
    /// shared by all on the machine that map them; empty for none.
    #[serde(default)]
    pub weights_cache: String,
    /// How llama.cpp computes it, with engine `llama-cpp`.
    #[serde(default)]
    pub llama_cpp: Settings,
}

/// What computes a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// The first of the next two that knows the model's family.
    #[default]
    Auto,
    /// This program's own runtime.
    Outrider,
    /// candle-transformers, in this process.
    Candle,
    /// llama.cpp, in this process.
    LlamaCpp,
}

fn default_dtype() -> String {
    computation::AUTOMATIC.to_owned()
}

fn default_device() -> String {
    ComputeDevice::Cpu.to_string()
}

impl ModelSource {
    /// The model at `path`, with defaults for everything else.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            name: String::new(),
            dtype: default_dtype(),
            kv_dtype: default_dtype(),
            device: default_device(),
            weights_cache: String::new(),
            engine: EngineKind::default(),
            llama_cpp: Settings::default(),
        }
    }

    /// The embedded model in the role `target`, `draft` or `small`, in Q8_0 on a CPU.
    pub fn embedded(role: &str) -> Self {
        Self::new(format!("embedded:{role}"))
    }

    /// Returns whether the model is one of those that are compiled in.
    pub fn is_embedded(&self) -> bool {
        matches!(
            ModelReference::parse(&self.path),
            Ok(ModelReference::Embedded(_))
        )
    }

    /// The name the model is served under.
    pub fn served_name(&self) -> String {
        if !self.name.is_empty() {
            return self.name.clone();
        }
        let last = match ModelReference::parse(&self.path) {
            Ok(ModelReference::Embedded(role)) => return format!("default-{role}"),
            Ok(ModelReference::Hub(wanted)) => wanted.repo.rsplit('/').next().map(str::to_owned),
            _ => {
                (Path::new(&self.path).file_name()).map(|name| name.to_string_lossy().into_owned())
            }
        };
        last.unwrap_or_else(|| self.path.clone())
    }

    /// Reads `device`, `dtype` and `kv_dtype`, whatever the file is in.
    ///
    /// # Errors
    /// If there is no such device, or no such format on it.
    pub fn computation(&self) -> Result<Computation, UnknownComputation> {
        self.computation_in(WeightFormat::default())
    }

    /// Reads them for `checkpoint`: which format is best depends on the file's.
    ///
    /// # Errors
    /// As [`ModelSource::computation`].
    pub fn computation_of(
        &self,
        checkpoint: &Checkpoint,
    ) -> Result<Computation, UnknownComputation> {
        self.computation_in(checkpoint.best_format())
    }

    fn computation_in(&self, best: WeightFormat) -> Result<Computation, UnknownComputation> {
        Computation::read(&self.device, &self.dtype, &self.kv_dtype, best)
    }
}

/// Shares the cores that this process may use among those of `sources` that llama.cpp computes, as
/// [`Settings::share_threads`] says.
pub fn share_threads<'a>(sources: impl IntoIterator<Item = &'a mut ModelSource>) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let sources = sources.into_iter();
    let by_llama_cpp = sources.filter(|source| source.engine == EngineKind::LlamaCpp);
    Settings::share_threads(
        by_llama_cpp.map(|source| &mut source.llama_cpp),
        cores as u32,
    );
}

/// The observer where nobody watches: it logs.
fn unobserved() -> Arc<dyn ProgressObserver> {
    Arc::new(ProgressLines::default())
}

#[cfg(test)]
mod tests;
