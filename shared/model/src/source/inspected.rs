//! A model's files, looked at before its weights are loaded.

use std::collections::BTreeMap;

use super::located::{Located, folder_of};
use super::{EngineKind, ModelReference, ModelSource, SourceError, unobserved};
use crate::candle::DraftsOnly;
use crate::checkpoint::{Checkpoint, SpecialTokens, TokenizerFiles};
use crate::computation::{Computation, ComputeDeviceError, NumberFormat, UnknownComputation};
use crate::embedded;
use crate::head::{self, AcceptanceHead, HeadError};
use crate::tokenizer::{self, Tokenizer, token_bound, vocabulary_fingerprint};

/// What a model's peers must find equal in it, or fitting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Name it is served under.
    pub name: String,
    /// Number of token ids of its tokenizer.
    pub vocab_size: u32,
    /// SHA-256 over the tokenizer's ids and bytes.
    pub vocab_fingerprint: [u8; 32],
    /// Token that begins every output of an encoder-decoder model; none of other models.
    pub decoder_start_token_id: Option<u32>,
}

/// A model whose files are in order, as far as can be seen without reading its weights.
pub struct Inspected {
    /// Its files, and where it is to be computed and in which numbers; none of one for another engine.
    pub own: Option<(Checkpoint, Computation)>,
    /// What computes it, `outrider` also where that is an engine elsewhere.
    pub engine: EngineKind,
    /// What engine candle needs for it, if that computes it.
    pub by_candle: Option<NeedsOfCandle>,
    /// Length of the hidden states that heads may read; 0 if there are none.
    pub(super) hidden_size: usize,
    /// Bytes of its weights, by the format that the files hold them in.
    pub stored: BTreeMap<String, u64>,
    /// What its peers must know of it.
    pub outline: Outline,
    /// How texts and chats become its tokens.
    pub text: TextEncoding,
}

/// What engine candle needs for a model.
#[derive(Clone, Copy, Debug)]
pub struct NeedsOfCandle {
    /// Format of weights, keys and values.
    pub format: NumberFormat,
    /// Longest sequence, in tokens.
    pub context_len: usize,
    /// Bytes of the weights.
    pub weight_bytes: u64,
    /// Most bytes of the keys and values of a token, with the copies by which sequences forget.
    pub token_bytes: u64,
    /// Why it cannot be a target, if it cannot.
    pub drafts_only: Option<DraftsOnly>,
    /// Whether they are on a CPU.
    pub is_on_cpu: bool,
}

/// How texts and chats become a model's tokens.
#[derive(Clone, Debug)]
pub struct TextEncoding {
    /// The bytes of its `tokenizer.json`.
    pub tokenizer_json: Vec<u8>,
    /// The tokens its chat template names.
    pub special_tokens: SpecialTokens,
    /// Its chat template, in Jinja.
    pub chat_template: Option<String>,
}

/// A tokenizer that fits its model.
pub(super) struct FittingTokenizer {
    pub(super) tokenizer: Tokenizer,
    /// The bytes of its `tokenizer.json`.
    json: Vec<u8>,
    /// Number of token ids: ids may have gaps, so it is one more than the highest.
    size: u32,
}

impl FittingTokenizer {
    /// Reads the tokenizer `json` of a model whose rows have `row_len` numbers; `path` is for messages.
    ///
    /// # Errors
    /// If it is broken, or has ids that the model does not.
    pub(super) fn read(json: Vec<u8>, row_len: usize, path: &str) -> Result<Self, SourceError> {
        let tokenizer = tokenizer::from_bytes(&json).map_err(SourceError::tokenizer(path))?;
        let tokens = token_bound(&tokenizer);
        if tokens > row_len {
            return Err(SourceError::VocabularyTooLarge {
                path: path.to_owned(),
                tokens,
                rows: row_len,
            });
        }
        Ok(Self {
            size: tokens as u32,
            json,
            tokenizer,
        })
    }

    /// Reads the tokenizer among `files`, as [`FittingTokenizer::read`] does.
    ///
    /// # Errors
    /// If there is none, besides.
    pub(super) fn of(
        files: &TokenizerFiles,
        row_len: usize,
        path: &str,
    ) -> Result<Self, SourceError> {
        let json = files.tokenizer().map_err(SourceError::tokenizer(path))?;
        Self::read(json.to_vec(), row_len, path)
    }

    /// Returns what the peers of a decoder-only model served as `name` must know of it.
    pub(super) fn outline(&self, name: String) -> Outline {
        Outline {
            name,
            vocab_size: self.size,
            vocab_fingerprint: vocabulary_fingerprint(&self.tokenizer),
            decoder_start_token_id: None,
        }
    }

    /// Returns the tokenizer alone, and how texts become its tokens.
    pub(super) fn encoding(
        self,
        special_tokens: SpecialTokens,
        chat_template: Option<String>,
    ) -> (Tokenizer, TextEncoding) {
        let encoding = TextEncoding {
            tokenizer_json: self.json,
            special_tokens,
            chat_template,
        };
        (self.tokenizer, encoding)
    }
}

/// Returns what the peers of the model in `checkpoint`, served as `name`, must know of it, and how texts become its
/// tokens; `path` is for messages.
///
/// # Errors
/// If the tokenizer is missing or broken, or has ids that the model does not.
pub(super) fn described(
    checkpoint: &Checkpoint,
    name: String,
    path: &str,
) -> Result<(Outline, TextEncoding), SourceError> {
    let (config, files) = (checkpoint.config(), &checkpoint.text);
    let tokenizer = FittingTokenizer::of(files, config.vocab_size, path)?;
    let outline = Outline {
        decoder_start_token_id: (config.encoder).map(|encoder| encoder.decoder_start_token_id),
        ..tokenizer.outline(name)
    };
    let special = files.special_tokens(
        config.bos_token_id,
        &config.eos_token_ids,
        &tokenizer.tokenizer,
    );
    let (_, encoding) = tokenizer.encoding(special, files.chat_template.clone());
    Ok((outline, encoding))
}

impl ModelSource {
    /// Checks what can be told without the model's files and its machine: its name, device and formats.
    ///
    /// # Errors
    /// [`SourceError`] naming the setting.
    pub fn check(&self) -> Result<(), SourceError> {
        if let ModelReference::Embedded(role) = ModelReference::parse(&self.path)?
            && !embedded::ROLES.contains(&role.as_str())
        {
            return Err(SourceError::UnknownEmbedded(self.path.clone()));
        }
        if self.engine == EngineKind::LlamaCpp {
            #[cfg(feature = "llama-cpp")]
            return self.check_for_llama_cpp();
            #[cfg(not(feature = "llama-cpp"))]
            return Err(SourceError::NoLlamaCpp);
        }
        let own = self.computation().map(drop).map_err(SourceError::from);
        match self.engine {
            EngineKind::Candle => self.check_for_candle(),
            // The model's files tell which of the two it is.
            EngineKind::Auto if own.is_err() => self.check_for_candle().or(own),
            _ => own,
        }
    }

    /// Looks at the model's files as loading does, but for the bytes of the weights; none if it is one of the hub's
    /// that has yet to be downloaded, or one for llama.cpp whose tokenizer that alone reads. Nothing is downloaded
    /// here.
    ///
    /// # Errors
    /// As [`ModelSource::load`], but for what only the weights' bytes show: that some are damaged, or that a head was
    /// trained for others.
    pub fn inspect(&self) -> Result<Option<Inspected>, SourceError> {
        if self.engine == EngineKind::LlamaCpp {
            self.check()?;
            #[cfg(feature = "llama-cpp")]
            return match self.locate_here()? {
                Some(located) => self.inspect_for_llama_cpp(&located),
                None => Ok(None),
            };
        }
        self.check()?;
        let located = self.locate_here()?;
        let engine = located.as_ref().map(|located| self.engine_for(located));
        if let (Some(located), Some(EngineKind::Candle)) = (&located, engine) {
            let inspected = self.inspect_for_candle(located)?;
            let heads = inspected.check_heads(located);
            heads.map_err(SourceError::head(&self.path))?;
            return Ok(Some(inspected));
        }
        match self.computation() {
            Ok(computation) => check_place(computation).map_err(UnknownComputation::from)?,
            // It may be a format of candle's.
            Err(_) if located.is_none() => {}
            Err(error) => return Err(error.into()),
        }
        let Some(located) = located else {
            return Ok(None);
        };
        let checkpoint = self.open_located(&located, &unobserved())?;
        let computation = self.computation_of(&checkpoint)?;
        self.check_device(&checkpoint, computation)?;
        let (outline, text) = described(&checkpoint, self.served_name(), &self.path)?;
        let checked = checkpoint.check_tensors();
        checked.map_err(|error| SourceError::checkpoint(&self.path)(error.into()))?;
        let inspected = Inspected {
            outline,
            stored: checkpoint.stored_bytes(),
            text,
            engine: EngineKind::Outrider,
            by_candle: None,
            hidden_size: checkpoint.config().hidden_size,
            own: Some((checkpoint, computation)),
        };
        let heads = inspected.check_heads(&located);
        heads.map_err(SourceError::head(&self.path))?;
        Ok(Some(inspected))
    }

    fn check_device(
        &self,
        checkpoint: &Checkpoint,
        computation: Computation,
    ) -> Result<(), SourceError> {
        match computation {
            Computation::Device(place, _) if !is_decoder_only(checkpoint) => {
                Err(SourceError::Device {
                    path: self.path.clone(),
                    kind: "encoder-decoder models",
                    place,
                })
            }
            _ => Ok(()),
        }
    }
}

/// Checks that this build, on this machine, computes there.
fn check_place(computation: Computation) -> Result<(), ComputeDeviceError> {
    match computation {
        Computation::Cpu(_) => Ok(()),
        #[cfg(feature = "device")]
        Computation::Device(place, _) => crate::device::check(place),
        #[cfg(not(feature = "device"))]
        Computation::Device(place, _) => Err(ComputeDeviceError::NotBuilt(place)),
    }
}

fn is_decoder_only(checkpoint: &Checkpoint) -> bool {
    let config = checkpoint.config();
    config.encoder.is_none() && config.gated
}

impl Inspected {
    /// Checks that it can be a target, as [`Model::check_target`](crate::Model::check_target) does.
    ///
    /// # Errors
    /// If engine candle gets the last row of a forward only.
    pub fn check_target(&self) -> Result<(), DraftsOnly> {
        let drafts_only = self.by_candle.and_then(|needs| needs.drafts_only);
        drafts_only.map_or(Ok(()), Err)
    }

    /// Takes an acceptance head if it is for a model of this width. Whether it was trained for these weights is seen
    /// when they are loaded.
    ///
    /// # Errors
    /// Names the head's file.
    pub fn fit(&self, head: AcceptanceHead) -> Result<AcceptanceHead, HeadError> {
        head.check_width(self.hidden_size)?;
        Ok(head)
    }

    /// Checks the heads beside the weights. Beside a GGUF file, those that do not fit are left out.
    fn check_heads(&self, located: &Located) -> Result<(), HeadError> {
        let Located::Stored(path) = located else {
            return Ok(());
        };
        let own = self.own.as_ref();
        let is_converted = own.is_some_and(|(checkpoint, _)| checkpoint.weights().is_gguf());
        if self.hidden_size == 0 || is_converted {
            return Ok(());
        }
        head::fitting_in(folder_of(path), |head| self.fit(head)).map(drop)
    }
}
