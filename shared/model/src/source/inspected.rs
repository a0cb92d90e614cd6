//! A model's files, looked at before its weights are loaded.

use std::collections::BTreeMap;

use super::located::{Located, folder_of};
use super::{EngineKind, ModelReference, ModelSource, ServedModel, SourceError, unobserved};
use crate::checkpoint::{Checkpoint, CheckpointError, SpecialTokens};
use crate::computation::{Computation, PlaceError, UnknownComputation};
use crate::embedded;
use crate::head::{self, AcceptanceHead, HeadError};
use crate::tokenizer::{Tokenizer, token_bound, vocabulary_fingerprint};

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

impl<M> ServedModel<M> {
    /// Returns what its peers must know of it.
    pub fn outline(&self) -> Outline {
        Outline {
            name: self.name.clone(),
            vocab_size: self.vocab_size,
            vocab_fingerprint: self.vocab_fingerprint,
            decoder_start_token_id: self.decoder_start_token_id,
        }
    }
}

/// A model whose files are in order, as far as can be seen without reading its weights.
pub struct Inspected {
    /// Its files, and where it is to be computed and in which numbers; none of one for llama.cpp.
    pub own: Option<(Checkpoint, Computation)>,
    /// Bytes of its weights, by the format that the files hold them in.
    pub stored: BTreeMap<String, u64>,
    /// What its peers must know of it.
    pub outline: Outline,
    /// How texts and chats become its tokens.
    pub text: InspectedText,
}

/// How texts and chats become a model's tokens.
pub struct InspectedText {
    /// The bytes of its `tokenizer.json`.
    pub tokenizer_json: Vec<u8>,
    /// The tokens its chat template names.
    pub special_tokens: SpecialTokens,
    /// Its chat template, in Jinja.
    pub chat_template: Option<String>,
}

/// A tokenizer that fits its model.
pub(super) struct Vocabulary {
    pub(super) tokenizer: Tokenizer,
    /// Number of token ids: ids may have gaps, so it is one more than the highest.
    pub(super) size: u32,
    pub(super) fingerprint: [u8; 32],
}

impl Vocabulary {
    /// The tokenizer of `checkpoint`; `path` is for messages.
    ///
    /// # Errors
    /// If it is missing or broken, or has ids that the model does not.
    pub(super) fn of(checkpoint: &Checkpoint, path: &str) -> Result<Self, SourceError> {
        let at = || path.to_owned();
        let tokenizer = (checkpoint.tokenizer())
            .map_err(|source| SourceError::Tokenizer { path: at(), source })?;
        let tokens = token_bound(&tokenizer);
        let rows = checkpoint.config().vocab_size;
        if tokens > rows {
            let path = at();
            return Err(SourceError::VocabularyTooLarge { path, tokens, rows });
        }
        Ok(Self {
            size: tokens as u32,
            fingerprint: vocabulary_fingerprint(&tokenizer),
            tokenizer,
        })
    }
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
        self.computation()?;
        Ok(())
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
        check_place(self.computation()?).map_err(UnknownComputation::from)?;
        let Some(located) = self.locate_here()? else {
            return Ok(None);
        };
        let checkpoint = self.open_located(&located, &unobserved())?;
        let computation = self.computation_of(&checkpoint)?;
        self.check_device(&checkpoint, computation)?;
        let path = || self.path.clone();
        let vocabulary = Vocabulary::of(&checkpoint, &self.path)?;
        checkpoint.check_tensors().map_err(|error| {
            let (path, source) = (path(), CheckpointError::from(error));
            SourceError::Checkpoint { path, source }
        })?;
        let inspected = Inspected {
            outline: Outline {
                name: self.served_name(),
                vocab_size: vocabulary.size,
                vocab_fingerprint: vocabulary.fingerprint,
                decoder_start_token_id: (checkpoint.config().encoder)
                    .map(|encoder| encoder.decoder_start_token_id),
            },
            stored: checkpoint.stored_bytes(),
            text: InspectedText {
                tokenizer_json: checkpoint.tokenizer_json().unwrap_or_default().to_vec(),
                special_tokens: checkpoint.special_tokens(&vocabulary.tokenizer),
                chat_template: checkpoint.chat_template().map(str::to_owned),
            },
            own: Some((checkpoint, computation)),
        };
        let heads = inspected.check_heads(&located);
        heads.map_err(|source| SourceError::Head {
            path: path(),
            source,
        })?;
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
fn check_place(computation: Computation) -> Result<(), PlaceError> {
    match computation {
        Computation::Cpu(_) => Ok(()),
        #[cfg(feature = "device")]
        Computation::Device(place, _) => crate::device::check(place),
        #[cfg(not(feature = "device"))]
        Computation::Device(place, _) => Err(PlaceError::NotBuilt(place)),
    }
}

fn is_decoder_only(checkpoint: &Checkpoint) -> bool {
    let config = checkpoint.config();
    config.encoder.is_none() && config.gated
}

impl Inspected {
    /// Takes an acceptance head if it is for a model of this width. Whether it was trained for these weights is seen
    /// when they are loaded.
    ///
    /// # Errors
    /// Names the head's file.
    pub fn fit(&self, head: AcceptanceHead) -> Result<AcceptanceHead, HeadError> {
        // llama.cpp gives no hidden states, as a model without any width.
        let own = self.own.as_ref();
        head.check_width(own.map_or(0, |(checkpoint, _)| checkpoint.config().hidden_size))?;
        Ok(head)
    }

    /// Checks the heads beside the weights. Beside a GGUF file, those that do not fit are left out.
    fn check_heads(&self, located: &Located) -> Result<(), HeadError> {
        let Located::Stored(path) = located else {
            return Ok(());
        };
        let own = self.own.as_ref();
        if own.is_none_or(|(checkpoint, _)| checkpoint.is_gguf()) {
            return Ok(());
        }
        let files = head::files_in(folder_of(path))?;
        let heads = files
            .iter()
            .map(|file| self.fit(AcceptanceHead::open(file)?));
        head::one_for_each_label(heads.collect::<Result<_, _>>()?).map(drop)
    }
}
