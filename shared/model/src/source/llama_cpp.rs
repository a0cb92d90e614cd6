//! GGUF files served by llama.cpp. Their tokenizer is read as for our own runtime, so that both have one
//! vocabulary.

mod inspect;

use std::path::Path;
use std::time::Instant;

use ::llama_cpp::{Build, KvType, LoadError, Settings, VERSION, build};
use speculation::pipeline;
use speculation::ports::LanguageModel;
use thiserror::Error;

use super::inspected::FittingTokenizer;
use super::located::Located;
use super::{ModelSource, Numerics, ServedModel, SourceError, SpecialTokens};
use crate::computation::AUTOMATIC;
use crate::gguf::{self, GgufError, GgufMetadata, GgufModel};
use crate::linear::WeightFormat;
use crate::llama_cpp::LlamaModel;
use crate::runtime::Model;
use crate::tokenizer::TokenizerError;
use crate::weights::digest::WeightsDigest;
use crate::weights::file::main_format;

/// Why llama.cpp does not serve a model.
#[derive(Debug, Error)]
pub enum LlamaCppError {
    /// No GGUF file.
    #[error("it reads GGUF files only; make one with `outrider quantize`")]
    NotGguf,
    /// A setting of our own runtime.
    #[error("{key} is {value:?}, {expected}")]
    Setting {
        /// Its name.
        key: &'static str,
        /// What it is.
        value: String,
        /// What it could be.
        expected: &'static str,
    },
    /// The file is not understood.
    #[error("the GGUF file is refused")]
    Gguf(#[from] GgufError),
    /// llama.cpp refuses it.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl ModelSource {
    pub(super) fn serve_by_llama_cpp(
        &self,
        located: &Located,
    ) -> Result<ServedModel<Model>, SourceError> {
        let path = located.gguf().map_err(|error| self.refused(error))?;
        let kv = self
            .kv_of_llama_cpp()
            .map_err(|error| self.refused(error))?;
        let began = Instant::now();
        let opened = OpenedGguf::of(path).map_err(|error| self.refused(error))?;
        let model = LlamaModel::load(path, &self.llama_cpp, kv);
        let model = model.map_err(|error| self.refused(error))?;
        let digest = WeightsDigest::of_files(&opened.model.files);
        let metadata = &opened.model.metadata;
        let json = (opened.tokenizer).or_else(|refused| self.by_pieces(metadata, &model, refused));
        let tokenizer = self.tokenizer(json, model.shape().vocab_size)?;
        let Build { features, gpus } = build();
        let kernels = kernels(&self.llama_cpp, kv, model.context().threads(), &gpus);
        let numerics = format!(
            "{kernels} {features} {} {}",
            gpus.join(" "),
            pipeline::FAMILY
        );
        let model_layers = model.context().layers();
        let load_time = began.elapsed();
        let outline = tokenizer.outline(self.served_name());
        let load_ms = load_time.as_millis() as u64;
        tracing::info!(model = outline.name, kernels, load_ms, "model loaded");
        let special = SpecialTokens::by_id(
            opened.bos,
            opened.ends.first().copied(),
            &tokenizer.tokenizer,
        );
        Ok(ServedModel {
            model: Model::LlamaCpp(model),
            outline,
            text: tokenizer.encoding(special, opened.chat_template).1,
            numerics: Numerics {
                weights: digest.fingerprint(&numerics),
                dtype: main_format(&opened.model.files).to_lowercase(),
                kernels,
            },
            // The output is one layer more.
            is_on_processors: gpus.is_empty() || self.llama_cpp.gpu_layers <= model_layers,
            weights_fingerprint: digest.fingerprint("model"),
            is_converted: true,
            head_format: WeightFormat::F32,
            heads: Vec::new(),
            eos_token_ids: opened.ends,
            load_time,
        })
    }

    /// Says of which model llama.cpp or its settings stand in the way.
    fn refused(&self, error: impl Into<LlamaCppError>) -> SourceError {
        SourceError::LlamaCpp {
            path: self.path.clone(),
            source: error.into(),
        }
    }

    /// Reads the tokenizer of a model whose rows have `row_len` numbers, as it was found in the file.
    fn tokenizer(
        &self,
        json: Result<Option<Vec<u8>>, GgufError>,
        row_len: usize,
    ) -> Result<FittingTokenizer, SourceError> {
        let json = json.map_err(|error| self.refused(error))?;
        let missing = || SourceError::tokenizer(&self.path)(TokenizerError::Missing);
        let json = json.ok_or_else(missing)?;
        FittingTokenizer::read(json, row_len, &self.path)
    }

    /// A tokenizer of llama.cpp's vocabulary, where ours is `refused` for its kind.
    fn by_pieces(
        &self,
        metadata: &GgufMetadata,
        model: &LlamaModel,
        refused: GgufError,
    ) -> Result<Option<Vec<u8>>, GgufError> {
        if !refused.is_of_the_tokenizers_kind() {
            return Err(refused);
        }
        let json = gguf::tokenizer::pieces::json(metadata, &model.context().vocabulary())?;
        tracing::warn!(
            model = self.served_name(),
            "{refused}: texts are cut by llama.cpp's vocabulary, into other tokens than the model's own now and \
             then; answers to token ids are not concerned"
        );
        Ok(Some(json))
    }

    /// Threads of a forward.
    fn threads(&self) -> Result<u32, LlamaCppError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.llama_cpp.threads_on(cores as u32);
        threads.map_err(|error| LoadError::from(error).into())
    }

    /// The format of keys and values. Settings that are of our own runtime are refused.
    fn kv_of_llama_cpp(&self) -> Result<KvType, LlamaCppError> {
        let refused = |key, value: &str, expected| LlamaCppError::Setting {
            key,
            value: value.to_owned(),
            expected,
        };
        if self.dtype != AUTOMATIC {
            let expected = "it computes in the file's own formats: leave it at auto";
            return Err(refused("dtype", &self.dtype, expected));
        }
        if self.device != super::default_device() {
            let expected = "GPUs are chosen by llama_cpp.gpu_layers: leave it at cpu";
            return Err(refused("device", &self.device, expected));
        }
        if !self.weights_cache.is_empty() {
            let expected = "it maps the file itself: leave it empty";
            return Err(refused("weights_cache", &self.weights_cache, expected));
        }
        match self.kv_dtype.as_str() {
            AUTOMATIC | "f32" => Ok(KvType::F32),
            "f16" => Ok(KvType::F16),
            "q8_0" if self.llama_cpp.flash_attention => Ok(KvType::Q8_0),
            other => {
                let expected =
                    "expected auto, f32 or f16, or q8_0 with llama_cpp.flash_attention = true";
                Err(refused("kv_dtype", other, expected))
            }
        }
    }
}

/// Names what its numbers depend on beside the file and the machine: another version, or as many threads fewer, may
/// round differently.
fn kernels(settings: &Settings, kv: KvType, threads: u32, gpus: &[String]) -> String {
    let flash = if settings.flash_attention {
        "-flash"
    } else {
        ""
    };
    let gpu = match settings.gpu_layers {
        layers if layers > 0 && !gpus.is_empty() => {
            format!("-gpu-{layers}-split-{}", settings.split_mode)
        }
        _ => String::new(),
    };
    format!("llama.cpp-{VERSION}-kv-{kv}{flash}{gpu}-threads-{threads}")
}

impl Located {
    /// The file that llama.cpp would read.
    fn gguf(&self) -> Result<&Path, LlamaCppError> {
        match self {
            Self::Stored(path) if path.is_file() => Ok(path),
            _ => Err(LlamaCppError::NotGguf),
        }
    }
}

/// A model's files, and what is read of them before llama.cpp reads them.
struct OpenedGguf {
    model: GgufModel,
    /// The bytes of a `tokenizer.json`, if our own reader knows the tokenizer's kind.
    tokenizer: Result<Option<Vec<u8>>, GgufError>,
    /// The token that begins texts, and those that end them.
    bos: Option<u32>,
    ends: Vec<u32>,
    chat_template: Option<String>,
}

impl OpenedGguf {
    fn of(path: &Path) -> Result<Self, LlamaCppError> {
        let model = GgufModel::open(path)?;
        let metadata = &model.metadata;
        let ends = gguf::config::ends(metadata)?;
        let chat_template = metadata.string("tokenizer.chat_template")?;
        Ok(Self {
            tokenizer: gguf::tokenizer::read(metadata),
            bos: gguf::config::bos(metadata)?.map(|id| id as u32),
            ends: ends.into_iter().map(|id| id as u32).collect(),
            chat_template: chat_template.map(str::to_owned),
            model,
        })
    }
}

#[cfg(test)]
mod tests {
    use ::llama_cpp::SplitMode;

    use super::*;

    #[test]
    fn gpus_and_how_a_model_is_divided_among_them_are_named() {
        let mut settings = Settings {
            split_mode: SplitMode::Row,
            ..Settings::default()
        };
        let gpus = ["CUDA0 A card".to_owned()];
        let name = |settings: &Settings, gpus: &[String]| kernels(settings, KvType::F16, 3, gpus);
        let on_gpus = format!("llama.cpp-{VERSION}-kv-f16-gpu-999-split-row-threads-3");
        assert_eq!(name(&settings, &gpus), on_gpus);
        let on_cpu = format!("llama.cpp-{VERSION}-kv-f16-threads-3");
        assert_eq!(name(&settings, &[]), on_cpu);
        settings.gpu_layers = 0;
        assert_eq!(name(&settings, &gpus), on_cpu);
    }
}
