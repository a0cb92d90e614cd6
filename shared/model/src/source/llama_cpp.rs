//! GGUF files served by llama.cpp. Their tokenizer is read as for our own runtime, so that both have one
//! vocabulary.

use std::path::Path;
use std::time::Instant;

use ::llama_cpp::{KvType, LoadError, VERSION, build};
use sha2::{Digest, Sha256};
use speculation::pipeline;
use speculation::ports::LanguageModel;
use thiserror::Error;

use super::located::Located;
use super::{ModelSource, Numerics, ServedModel, SourceError, SpecialTokens};
use crate::checkpoint::hex;
use crate::computation::AUTOMATIC;
use crate::gguf::{self, Container, GgufError, Metadata};
use crate::linear::WeightFormat;
use crate::llama_cpp::LlamaModel;
use crate::runtime::Model;
use crate::tokenizer::{self, TokenizerError, token_bound, vocabulary_fingerprint};

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
        let served = match located {
            Located::Stored(path) if path.is_file() => self.gguf(path),
            _ => Err(LlamaCppError::NotGguf.into()),
        };
        served.map_err(|problem| match problem {
            Problem::Engine(source) => SourceError::LlamaCpp {
                path: self.path.clone(),
                source,
            },
            Problem::Tokenizer(source) => SourceError::Tokenizer {
                path: self.path.clone(),
                source,
            },
            Problem::Vocabulary { tokens, rows } => SourceError::VocabularyTooLarge {
                path: self.path.clone(),
                tokens,
                rows,
            },
        })
    }

    /// Loads the GGUF file at `path`.
    fn gguf(&self, path: &Path) -> Result<ServedModel<Model>, Problem> {
        let kv = self.kv_of_llama_cpp()?;
        let began = Instant::now();
        let file = Container::open(path).map_err(LlamaCppError::from)?;
        let metadata = &file.metadata;
        let read = gguf::tokenizer::read(metadata);
        let ends = gguf::config::ends(metadata).map_err(LlamaCppError::from)?;
        let ends: Vec<u32> = ends.into_iter().map(|id| id as u32).collect();
        let bos = gguf::config::bos(metadata).map_err(LlamaCppError::from)?;
        let template = metadata.string("tokenizer.chat_template");
        let template = template.map_err(LlamaCppError::from)?;
        let (model, weights) = std::thread::scope(|scope| {
            let digest = scope.spawn(|| Sha256::digest(&file.tensors.bytes[..]));
            let model = LlamaModel::load(path, &self.llama_cpp, kv);
            let digest = digest.join().map(|digest| hex(&digest[..8]));
            (model, digest.unwrap_or_default())
        });
        let model = model.map_err(LlamaCppError::from)?;
        let json = read.or_else(|refused| self.by_pieces(metadata, &model, refused));
        let json = json.map_err(LlamaCppError::from)?;
        let json = json.ok_or(TokenizerError::Missing)?;
        let tokenizer = tokenizer::from_bytes(&json)?;
        let (tokens, rows) = (token_bound(&tokenizer), model.shape().vocab_size);
        if tokens > rows {
            return Err(Problem::Vocabulary { tokens, rows });
        }
        let kernels = self.kernels(kv, model.threads());
        let numerics = format!(
            "{weights} {kernels} {} {}",
            build().features,
            pipeline::FAMILY
        );
        let numerics = Sha256::digest(numerics);
        let load_time = began.elapsed();
        let name = self.served_name();
        let load_ms = load_time.as_millis() as u64;
        tracing::info!(model = name, kernels, load_ms, "model loaded");
        Ok(ServedModel {
            model: Model::LlamaCpp(model),
            name,
            vocab_size: tokens as u32,
            vocab_fingerprint: vocabulary_fingerprint(&tokenizer),
            special_tokens: SpecialTokens::by_id(
                bos.map(|id| id as u32),
                ends.first().copied(),
                &tokenizer,
            ),
            numerics: Numerics {
                weights: hex(&numerics[..8]),
                dtype: file.tensors.main_format().to_lowercase(),
                kernels,
            },
            weights_fingerprint: weights,
            is_converted: true,
            head_format: WeightFormat::F32,
            heads: Vec::new(),
            eos_token_ids: ends,
            decoder_start_token_id: None,
            chat_template: template.map(str::to_owned),
            tokenizer_json: json,
            load_time,
        })
    }

    /// A tokenizer of llama.cpp's vocabulary, where ours is `refused` for its kind.
    fn by_pieces(
        &self,
        metadata: &Metadata,
        model: &LlamaModel,
        refused: GgufError,
    ) -> Result<Option<Vec<u8>>, GgufError> {
        if !refused.is_of_the_tokenizers_kind() {
            return Err(refused);
        }
        let json = gguf::tokenizer::pieces::json(metadata, &model.vocabulary())?;
        tracing::warn!(
            model = self.served_name(),
            "{refused}: texts are cut by llama.cpp's vocabulary, into other tokens than the model's own now and \
             then; answers to token ids are not concerned"
        );
        Ok(Some(json))
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
        match self.kv_dtype.as_str() {
            AUTOMATIC | "f32" => Ok(KvType::F32),
            "f16" => Ok(KvType::F16),
            other => Err(refused("kv_dtype", other, "expected auto, f32 or f16")),
        }
    }

    /// Names everything that its numbers depend on beside the file: another version, or as many threads fewer, may
    /// round differently.
    fn kernels(&self, kv: KvType, threads: u32) -> String {
        let settings = &self.llama_cpp;
        let flash = if settings.flash_attention {
            "-flash"
        } else {
            ""
        };
        let gpu = match settings.gpu_layers {
            layers if build().offloads => format!("-gpu-{layers}"),
            _ => String::new(),
        };
        let kv = kv.name();
        format!("llama.cpp-{VERSION}-kv-{kv}{flash}{gpu}-threads-{threads}")
    }
}

/// What stands in the way, before it is said of which model.
enum Problem {
    Engine(LlamaCppError),
    Tokenizer(TokenizerError),
    Vocabulary { tokens: usize, rows: usize },
}

impl From<LlamaCppError> for Problem {
    fn from(error: LlamaCppError) -> Self {
        Self::Engine(error)
    }
}

impl From<TokenizerError> for Problem {
    fn from(error: TokenizerError) -> Self {
        Self::Tokenizer(error)
    }
}
