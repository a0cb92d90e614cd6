//! A model that another program computes: what text needs of it, without weights.

use std::collections::BTreeMap;

use serde::Deserialize;
use speculation::TokenId;

use super::inspected::FittingTokenizer;
use super::located::Located;
use super::{EngineKind, Inspected, ModelSource, Outline, SourceError, TextEncoding, unobserved};
use crate::checkpoint::{Checkpoint, CheckpointError, TokenizerFiles, optional};
use crate::config::{ModelConfigError, OneOrMany};
use crate::python_json;
use crate::tokenizer::Tokenizer;

/// A model's tokenizer and what `config.json` says of its tokens. Its family need not be known here.
pub struct ModelText {
    /// What its peers must know of it.
    pub outline: Outline,
    /// How texts and chats become its tokens.
    pub text: TextEncoding,
    /// Length of its rows, at least the number of the tokenizer's ids.
    pub row_len: usize,
    /// Its own end tokens.
    pub eos_token_ids: Vec<TokenId>,
    tokenizer: Tokenizer,
}

/// What is read of `config.json`; models that also see have it in a section of its own.
#[derive(Default, Deserialize)]
struct TokenConfig {
    vocab_size: Option<usize>,
    bos_token_id: Option<OneOrMany>,
    eos_token_id: Option<OneOrMany>,
    text_config: Option<Box<TokenConfig>>,
}

/// The same, whatever it was read from.
struct ModelTokens {
    row_len: usize,
    bos: Option<TokenId>,
    eos: Vec<TokenId>,
}

impl ModelSource {
    /// Reads tokenizer, chat template and config of a model that is computed elsewhere; a folder needs no weights.
    /// Nothing is downloaded.
    ///
    /// # Errors
    /// [`SourceError`] naming the path and what is missing or broken there.
    pub fn text(&self) -> Result<ModelText, SourceError> {
        let at = SourceError::checkpoint(&self.path);
        let located = self.locate_here()?;
        let located = located.ok_or_else(|| SourceError::TextNotHere(self.path.clone()))?;
        let (files, tokens) = match &located {
            Located::Stored(folder) if !folder.is_file() => {
                let config = optional(&folder.join("config.json")).map_err(&at)?;
                let config = config.ok_or_else(|| at(CheckpointError::NoConfig(folder.clone())))?;
                let tokens = ModelTokens::read(&config).map_err(|error| at(error.into()))?;
                (TokenizerFiles::open(folder).map_err(&at)?, tokens)
            }
            whole => of_checkpoint(self.open_located(whole, &unobserved())?),
        };
        let tokenizer = FittingTokenizer::of(&files, tokens.row_len, &self.path)?;
        let special = files.special_tokens(tokens.bos, &tokens.eos, &tokenizer.tokenizer);
        let mut eos_token_ids = tokens.eos;
        eos_token_ids.extend(files.more_ends);
        eos_token_ids.sort_unstable();
        eos_token_ids.dedup();
        let outline = tokenizer.outline(self.served_name());
        let (tokenizer, text) = tokenizer.encoding(special, files.chat_template);
        Ok(ModelText {
            outline,
            tokenizer,
            text,
            row_len: tokens.row_len,
            eos_token_ids,
        })
    }
}

impl From<ModelText> for Inspected {
    /// There are no weights here.
    fn from(text: ModelText) -> Self {
        Self {
            own: None,
            engine: EngineKind::Outrider,
            by_candle: None,
            hidden_size: 0,
            stored: BTreeMap::new(),
            outline: text.outline,
            text: text.text,
        }
    }
}

impl ModelText {
    /// The tokens of `text`, with those that the tokenizer puts around it; none if it refuses it.
    pub fn tokens_of(&self, text: &str) -> Option<Vec<TokenId>> {
        let encoded = self.tokenizer.encode(text, true).ok()?;
        Some(encoded.get_ids().to_vec())
    }
}

fn of_checkpoint(checkpoint: Checkpoint) -> (TokenizerFiles, ModelTokens) {
    let config = checkpoint.config();
    let tokens = ModelTokens {
        row_len: config.vocab_size,
        bos: config.bos_token_id,
        eos: config.eos_token_ids.clone(),
    };
    (checkpoint.text, tokens)
}

impl ModelTokens {
    fn read(json: &[u8]) -> Result<Self, ModelConfigError> {
        let mut config: TokenConfig = python_json::from_slice(json)?;
        let text = config
            .text_config
            .take()
            .map_or_else(Default::default, |text| *text);
        let row_len = text.vocab_size.or(config.vocab_size);
        let ids = |own: Option<OneOrMany>, outer: Option<OneOrMany>| {
            own.or(outer).map_or_else(Vec::new, OneOrMany::ids)
        };
        Ok(Self {
            row_len: row_len.ok_or(ModelConfigError::Missing("vocab_size"))?,
            bos: ids(text.bos_token_id, config.bos_token_id).first().copied(),
            eos: ids(text.eos_token_id, config.eos_token_id),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENIZER: &str = r#"{"version": "1.0", "added_tokens": [], "model":
        {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "b": 1, "c": 2}}}"#;

    fn text_of(config: &str) -> Result<ModelText, SourceError> {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("written");
        };
        write("config.json", config);
        write("tokenizer.json", TOKENIZER);
        write("generation_config.json", r#"{"eos_token_id": [2, 1]}"#);
        ModelSource::new(folder.path().to_str().expect("text")).text()
    }

    /// As of a family that this program does not compute, and without weights.
    #[test]
    fn a_folder_without_weights_is_enough_whatever_the_family() {
        let flat = r#"{"model_type": "unheard_of", "vocab_size": 8, "eos_token_id": 2}"#;
        let nested = r#"{"text_config": {"vocab_size": 8, "eos_token_id": [2]}, "vocab_size": 1}"#;
        for config in [flat, nested] {
            let text = text_of(config).expect("text");
            assert_eq!((text.row_len, text.outline.vocab_size), (8, 3));
            assert_eq!(text.eos_token_ids, [1, 2]);
            assert_eq!(text.tokens_of("c").expect("tokens"), [2]);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let refused = |config: &str, part: &str| {
            let error = text_of(config).err().expect(part).to_string();
            assert!(error.contains(part), "{error}");
        };
        refused("{}", "vocab_size");
        refused(r#"{"vocab_size": 2}"#, "3 tokens, the model only 2");
        let absent = ModelSource::new("org/name").text().err().expect("absent");
        assert!(absent.to_string().contains("tokenizer.json"), "{absent}");
    }
}
