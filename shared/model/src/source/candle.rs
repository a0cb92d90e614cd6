//! Models that candle-transformers computes: their folders, read and served.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use speculation::pipeline;
use thiserror::Error;

use super::families::is_own;
use super::inspected::{FittingTokenizer, NeedsOfCandle};
use super::located::Located;
use super::{EngineKind, Inspected, ModelSource, Numerics, ServedModel, SourceError};
use crate::candle::{CandleConfig, CandleError, CandleModel, VERSION};
use crate::checkpoint::{CheckpointError, TokenizerFiles, optional};
use crate::computation::{AUTOMATIC, ComputeDevice, ComputeDeviceError, NumberFormat};
use crate::linear::WeightFormat;
use crate::progress::{LoadProgress, ProgressObserver};
use crate::runtime::Model;
use crate::weights::digest::WeightsDigest;
use crate::weights::{Weights, WeightsError};

/// Why engine candle does not serve a model.
#[derive(Debug, Error)]
pub enum CandleSourceError {
    /// No folder.
    #[error(
        "it reads folders in the Hugging Face layout only, no GGUF files and none of the built-in models"
    )]
    NoFolder,
    /// A setting that it has no such value of.
    #[error("{key} is {value:?}, {expected}")]
    Setting {
        /// Its name.
        key: &'static str,
        /// The setting's value.
        value: String,
        /// The values that it may have.
        expected: String,
    },
    /// The device.
    #[error("device: {0}")]
    Place(#[from] ComputeDeviceError),
    /// A file of the folder.
    #[error(transparent)]
    Files(#[from] CheckpointError),
    /// The model.
    #[error(transparent)]
    Model(#[from] CandleError),
}

impl From<WeightsError> for CandleSourceError {
    fn from(error: WeightsError) -> Self {
        Self::Model(error.into())
    }
}

/// A folder, and what is read of it before the weights are.
struct OpenedFolder {
    config: CandleConfig,
    weights: Weights,
    text: TokenizerFiles,
}

impl OpenedFolder {
    fn of(located: &Located) -> Result<Self, CandleSourceError> {
        let folder = match located {
            Located::Stored(path) if !path.is_file() => path.as_path(),
            _ => return Err(CandleSourceError::NoFolder),
        };
        let config = optional(&folder.join("config.json"))?;
        let config = config.ok_or_else(|| CheckpointError::NoConfig(folder.to_owned()))?;
        Ok(Self {
            config: CandleConfig::from_json(&config).map_err(CandleError::from)?,
            weights: Weights::open(folder)?,
            text: TokenizerFiles::open(folder)?,
        })
    }
}

impl ModelSource {
    /// The engine that computes the model in `located`: the one that is set, or else candle's for families that it alone
    /// knows, and our own.
    pub(super) fn engine_for(&self, located: &Located) -> EngineKind {
        match (self.engine, located) {
            (EngineKind::Auto, Located::Stored(path)) if is_for_candle(path) => EngineKind::Candle,
            (EngineKind::Auto, _) => EngineKind::Outrider,
            (set, _) => set,
        }
    }

    pub(super) fn serve_by_candle(
        &self,
        located: &Located,
        observer: &Arc<dyn ProgressObserver>,
    ) -> Result<ServedModel<Model>, SourceError> {
        let refused = |error: CandleSourceError| self.refused_by_candle(error);
        let place = self.place_for_candle().map_err(refused)?;
        let began = Instant::now();
        let mut opened = OpenedFolder::of(located).map_err(refused)?;
        let format = self.format_for_candle(&opened.config).map_err(refused)?;
        let name = self.served_name();
        opened.weights.progress = Arc::new(LoadProgress::of(&name, Arc::clone(observer)));
        let OpenedFolder {
            config,
            weights,
            text,
        } = opened;
        let tokenizer = FittingTokenizer::of(&text, config.shape().vocab_size, &self.path)?;
        let model = CandleModel::load(&config, &weights, format, place);
        let model = model.map_err(|error| refused(error.into()))?;
        let digest = WeightsDigest::of(&weights);
        let fingerprint =
            |what: &str| digest.fingerprint(&format!("{what} {}", config.fingerprinted()));
        let kernels = kernels(format, place);
        let outline = tokenizer.outline(name);
        let mut eos_token_ids = config.eos_token_ids().to_vec();
        let special =
            text.special_tokens(config.bos_token_id(), &eos_token_ids, &tokenizer.tokenizer);
        eos_token_ids.extend(text.more_ends);
        eos_token_ids.sort_unstable();
        eos_token_ids.dedup();
        let load_time = began.elapsed();
        let load_ms = load_time.as_millis() as u64;
        let (family, dtype) = (config.family(), format.name());
        tracing::info!(
            model = outline.name,
            family,
            dtype,
            kernels,
            load_ms,
            "model loaded"
        );
        Ok(ServedModel {
            model: Model::Candle(model),
            outline,
            text: tokenizer.encoding(special, text.chat_template).1,
            numerics: Numerics {
                weights: fingerprint(&format!("{kernels} {}", pipeline::FAMILY)),
                dtype: dtype.to_owned(),
                kernels,
            },
            is_on_processors: place == ComputeDevice::Cpu,
            weights_fingerprint: fingerprint("model"),
            is_converted: false,
            head_format: WeightFormat::F32,
            heads: Vec::new(),
            eos_token_ids,
            load_time,
        })
    }

    /// Checks the settings that candle would refuse for every model.
    ///
    /// # Errors
    /// Names the setting.
    pub(super) fn check_for_candle(&self) -> Result<(), SourceError> {
        let place = self.place_for_candle();
        let format = self.number_for_candle();
        let checked = place.and(format);
        checked
            .map(drop)
            .map_err(|error| self.refused_by_candle(error))
    }

    /// Looks at a folder as serving it does, but for the bytes of the weights.
    ///
    /// # Errors
    /// As serving.
    pub(super) fn inspect_for_candle(&self, located: &Located) -> Result<Inspected, SourceError> {
        let refused = |error: CandleSourceError| self.refused_by_candle(error);
        self.check_for_candle()?;
        let OpenedFolder {
            config,
            weights,
            text,
        } = OpenedFolder::of(located).map_err(refused)?;
        let format = self.format_for_candle(&config).map_err(refused)?;
        let tokenizer = FittingTokenizer::of(&text, config.shape().vocab_size, &self.path)?;
        let numbers = CandleModel::check(&config, &weights);
        let numbers = numbers.map_err(|error| refused(error.into()))?;
        let special = text.special_tokens(
            config.bos_token_id(),
            config.eos_token_ids(),
            &tokenizer.tokenizer,
        );
        let bytes = match format {
            NumberFormat::F32 => 4,
            _ => 2,
        };
        let mut stored = BTreeMap::new();
        for (format, size) in weights.sizes() {
            *stored.entry(format.to_owned()).or_default() += size as u64;
        }
        Ok(Inspected {
            own: None,
            engine: EngineKind::Candle,
            hidden_size: config.shape().hidden_size,
            by_candle: Some(NeedsOfCandle {
                format,
                context_len: config.shape().context_len,
                weight_bytes: numbers * bytes,
                token_bytes: (config.token_numbers() * config.token_copies()) as u64 * bytes,
                is_on_cpu: self
                    .place_for_candle()
                    .is_ok_and(|place| place == ComputeDevice::Cpu),
            }),
            stored,
            outline: tokenizer.outline(self.served_name()),
            text: tokenizer.encoding(special, text.chat_template).1,
        })
    }

    /// Says of which model engine candle or its settings stand in the way.
    fn refused_by_candle(&self, error: CandleSourceError) -> SourceError {
        SourceError::Candle {
            path: self.path.clone(),
            source: Box::new(error),
        }
    }

    fn place_for_candle(&self) -> Result<ComputeDevice, CandleSourceError> {
        Ok(self.device.parse::<ComputeDevice>()?)
    }

    /// The format that is set, none for that of the family.
    fn number_for_candle(&self) -> Result<Option<NumberFormat>, CandleSourceError> {
        let setting = |key, value: &str, expected: &str| CandleSourceError::Setting {
            key,
            value: value.to_owned(),
            expected: expected.to_owned(),
        };
        if self.kv_dtype != AUTOMATIC && self.kv_dtype != self.dtype {
            let expected = "keys and values are in the format of the weights: leave it at auto";
            return Err(setting("kv_dtype", &self.kv_dtype, expected));
        }
        if self.dtype == AUTOMATIC {
            return Ok(None);
        }
        match self.dtype.parse() {
            Ok(format @ (NumberFormat::F32 | NumberFormat::Bf16 | NumberFormat::F16)) => {
                Ok(Some(format))
            }
            _ => Err(setting(
                "dtype",
                &self.dtype,
                "expected auto, f32, bf16 or f16",
            )),
        }
    }

    fn format_for_candle(&self, config: &CandleConfig) -> Result<NumberFormat, CandleSourceError> {
        let formats = config.formats();
        let Some(format) = self.number_for_candle()? else {
            return Ok(formats[0]);
        };
        if formats.contains(&format) {
            return Ok(format);
        }
        let known: Vec<_> = formats.iter().map(|format| format.name()).collect();
        Err(CandleSourceError::Setting {
            key: "dtype",
            value: self.dtype.clone(),
            expected: format!(
                "expected auto or {} of a {}",
                known.join(" or "),
                config.family()
            ),
        })
    }
}

/// Names what numbers depend on beside the weights and the machine.
fn kernels(format: NumberFormat, place: ComputeDevice) -> String {
    let backend = match place {
        ComputeDevice::Cpu => "cpu",
        ComputeDevice::Cuda(_) => "cuda",
    };
    format!("candle-transformers-{VERSION}-{backend}-{format}")
}

/// Whether `path` is the folder of a model that candle alone knows. What cannot be read is told when it is opened.
fn is_for_candle(path: &Path) -> bool {
    if path.is_file() {
        return false;
    }
    let config = optional(&path.join("config.json")).ok().flatten();
    let known = config.and_then(|json| CandleConfig::known_type(&json));
    known.is_some_and(|model_type| !is_own(&model_type))
}
