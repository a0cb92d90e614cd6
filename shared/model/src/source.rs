//! Which model a service serves: where it is, and how it is computed.

mod candle;
mod error;
mod families;
mod heads;
mod inspected;
#[cfg(feature = "llama-cpp")]
mod llama_cpp;
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
use speculation::ports::LanguageModel;

use crate::checkpoint::Checkpoint;
pub use crate::checkpoint::SpecialTokens;
use crate::computation::{self, Computation, ComputeDevice, UnknownComputation};
use crate::embedded;
use crate::linear::WeightFormat;
use crate::progress::{ProgressLines, ProgressObserver};
use crate::runtime::Model;
use ::llama_cpp::Settings;
use located::Located;

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

    /// Opens and loads the model and its acceptance heads: those compiled in with an embedded model, or
    /// `head-*.safetensors` beside the weights; beside a GGUF file those that fit its width, one for each
    /// label.
    ///
    /// # Errors
    /// [`SourceError`] naming the setting or the file that is wrong; a head that was trained for other
    /// weights is one, but beside a GGUF file, whose folder may hold other models' ([`ServedModel::fit`]).
    pub fn load(&self) -> Result<ServedModel<Model>, SourceError> {
        self.load_observed(&unobserved())
    }

    /// The same, which `observer` watches; of a model of the hub its download, too.
    ///
    /// # Errors
    /// As [`ModelSource::load`].
    pub fn load_observed(
        &self,
        observer: &Arc<dyn ProgressObserver>,
    ) -> Result<ServedModel<Model>, SourceError> {
        let located = self.locate(observer)?;
        let mut served = self.serve(&located, observer)?;
        if served.model.shape().hidden_size == 0 {
            // Heads read hidden states, which llama.cpp and some of candle's models do not give.
            return Ok(served);
        }
        let heads = match &located {
            Located::Embedded(role) => embedded::heads(role)
                .and_then(|heads| heads.into_iter().map(|head| served.fit(head)).collect()),
            Located::Stored(path) => served.heads_in(located::folder_of(path)),
        };
        served.heads = heads.map_err(SourceError::head(&self.path))?;
        Ok(served)
    }

    /// Opens and loads the model alone: heads beside it may be for other weights.
    ///
    /// # Errors
    /// As [`ModelSource::load`], but for heads.
    pub fn load_without_heads(&self) -> Result<ServedModel<Model>, SourceError> {
        let observer = unobserved();
        self.serve(&self.locate(&observer)?, &observer)
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

    /// Opens the model's files, without loading its weights.
    ///
    /// # Errors
    /// [`SourceError`] naming the path.
    pub fn open(&self) -> Result<Checkpoint, SourceError> {
        self.open_observed(&unobserved())
    }

    /// The same, and `observer` watches the download of a model of the hub, and how the weights are loaded later.
    ///
    /// # Errors
    /// As [`ModelSource::open`].
    pub fn open_observed(
        &self,
        observer: &Arc<dyn ProgressObserver>,
    ) -> Result<Checkpoint, SourceError> {
        self.open_located(&self.locate(observer)?, observer)
    }

    /// Finds the model, and downloads it if it is one of the hub's that is not here.
    #[cfg_attr(
        not(feature = "hub"),
        expect(unused_variables, reason = "nothing is downloaded")
    )]
    fn locate(&self, observer: &Arc<dyn ProgressObserver>) -> Result<Located, SourceError> {
        match ModelReference::parse(&self.path)? {
            #[cfg(feature = "hub")]
            ModelReference::Hub(wanted) => {
                let hub = crate::hub::Hub::from_env()?.observed(Arc::clone(observer));
                let snapshot = hub.fetch(&wanted)?;
                tracing::info!(model = %wanted, commit = snapshot.commit, "model from the hub");
                Ok(Located::Stored(snapshot.path))
            }
            reference => self.on_this_machine(reference),
        }
    }

    /// Finds the model without a download; none if it is one of the hub's that is not here yet.
    fn locate_here(&self) -> Result<Option<Located>, SourceError> {
        match ModelReference::parse(&self.path)? {
            #[cfg(feature = "hub")]
            ModelReference::Hub(wanted) => {
                let held = crate::hub::Hub::from_env()?.held(&wanted)?;
                Ok(held.map(|snapshot| Located::Stored(snapshot.path)))
            }
            reference => self.on_this_machine(reference).map(Some),
        }
    }

    fn on_this_machine(&self, reference: ModelReference) -> Result<Located, SourceError> {
        match reference {
            ModelReference::Embedded(role) => Ok(Located::Embedded(role)),
            ModelReference::Local(path) if path.exists() => Located::stored(path),
            #[cfg(not(feature = "hub"))]
            ModelReference::Hub(_) => Err(SourceError::NoHub(self.path.clone())),
            _ => Err(SourceError::NotHere(self.path.clone())),
        }
    }

    fn serve(
        &self,
        located: &Located,
        observer: &Arc<dyn ProgressObserver>,
    ) -> Result<ServedModel<Model>, SourceError> {
        if self.engine == EngineKind::LlamaCpp {
            #[cfg(feature = "llama-cpp")]
            return self.serve_by_llama_cpp(located);
            #[cfg(not(feature = "llama-cpp"))]
            return Err(SourceError::NoLlamaCpp);
        }
        if self.engine_for(located) == EngineKind::Candle {
            return self.serve_by_candle(located, observer);
        }
        let checkpoint = self.open_located(located, observer)?;
        let computation = self.computation_of(&checkpoint)?;
        // How the built-in models are computed is part of what they are.
        if matches!(located, Located::Stored(_))
            && let Some(warning) = served::rounding_warning(self, &checkpoint, computation)
        {
            tracing::warn!(model = self.served_name(), "{warning}");
        }
        serve(&checkpoint, computation, self.served_name(), &self.path)
    }

    fn open_located(
        &self,
        located: &Located,
        observer: &Arc<dyn ProgressObserver>,
    ) -> Result<Checkpoint, SourceError> {
        let opened = match located {
            Located::Embedded(role) if !embedded::ROLES.contains(&role.as_str()) => {
                return Err(SourceError::UnknownEmbedded(self.path.clone()));
            }
            Located::Embedded(role) => embedded::model(role),
            Located::Stored(path) => Checkpoint::open(path),
        };
        let opened = opened.map_err(SourceError::checkpoint(&self.path))?;
        let opened = opened.observed(&self.served_name(), Arc::clone(observer));
        Ok(match self.weights_cache.as_str() {
            "" => opened,
            folder => opened.cached_in(folder),
        })
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

/// For those who do not watch.
fn unobserved() -> Arc<dyn ProgressObserver> {
    Arc::new(ProgressLines::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "embedded")]
    use crate::head::AcceptanceHead;

    #[test]
    fn wrong_settings_are_named() {
        type Change = fn(&mut ModelSource);
        let hub = "org/name[@revision]";
        let changes: [(&str, &str, Change); 5] = [
            ("embedded:other", "", |s| s.path = "embedded:other".into()),
            ("int3", "", |s| s.dtype = "int3".into()),
            ("fp8", "", |s| s.kv_dtype = "fp8".into()),
            ("tpu", "", |s| s.device = "tpu".into()),
            ("no/such/folder", hub, |s| s.path = "no/such/folder".into()),
        ];
        for (named, advice, change) in changes {
            let mut source = ModelSource::embedded("target");
            change(&mut source);
            let reported = source.load().expect_err(named).to_string();
            assert!(
                reported.contains(named) && reported.contains(advice),
                "{reported}"
            );
        }
    }

    /// The target's rows of 384 are no whole blocks of 256, those of 1024 are.
    #[test]
    #[cfg(feature = "embedded")]
    fn what_is_computed_in_another_format_than_asked_for_is_told() {
        let dtype = |role: &str, dtype: &str| {
            let source = ModelSource {
                dtype: dtype.to_owned(),
                ..ModelSource::embedded(role)
            };
            source.load().expect("a model").numerics.dtype
        };
        assert_eq!(dtype("target", "q4_k"), "q4_k, q8_0 in 43 of 50 matrices");
        assert_eq!(dtype("draft", "q4_k"), "q8_0");
        assert_eq!(dtype("draft", "q8_0"), "q8_0");
        assert_eq!(dtype("draft", "f32"), "f32");
    }

    #[test]
    #[cfg(feature = "embedded")]
    fn the_embedded_pair_shares_one_vocabulary() {
        let target = ModelSource::embedded("target").load().expect("a target");
        let draft = ModelSource::embedded("draft").load().expect("a draft");
        let fingerprint = |served: &ServedModel<Model>| served.outline.vocab_fingerprint;
        assert_eq!(fingerprint(&target), fingerprint(&draft));
        assert_eq!(
            (target.outline.vocab_size, target.outline.name.as_str()),
            (4096, "default-target")
        );
        assert_ne!(target.numerics, draft.numerics);
        let labels = |heads: &[AcceptanceHead]| -> Vec<String> {
            heads
                .iter()
                .map(|head| head.info().label.to_string())
                .collect()
        };
        assert_eq!(labels(&draft.heads), ["coupled", "rejection"]);
        assert!(target.heads.is_empty());
        assert_eq!(target.eos_token_ids, [2]);
    }
}
