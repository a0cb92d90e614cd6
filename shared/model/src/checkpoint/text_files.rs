//! The files beside a model's weights that text needs.

use std::borrow::Cow;
use std::path::Path;
use std::{fs, io};

use serde::Deserialize;
use speculation::TokenId;
use tokenizers::Tokenizer;

use super::CheckpointError;
use super::tokenizer_json::{AroundText, SpecialTokens, added_id, as_used};
use crate::config::OneOrMany;
use crate::{mistaken, python_json, tokenizer::TokenizerError, weights::UnreadableFile};

/// What a model's folder says of its text.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenizerFiles {
    /// `tokenizer.json`.
    pub(crate) tokenizer: Option<Cow<'static, [u8]>>,
    /// A tokenizer's file of a kind that is not read.
    pub(super) other_tokenizer: Option<&'static str>,
    pub(crate) chat_template: Option<String>,
    /// Tokens that the tokenizer's config names.
    pub(super) named_tokens: Option<SpecialTokens>,
    /// End tokens of `generation_config.json` and of the tokenizer's config.
    pub(crate) more_ends: Vec<TokenId>,
}

/// Tokenizers' files that are not read.
const OTHER_TOKENIZERS: [&str; 4] = [
    "tokenizer.model",
    "tekken.json",
    "spiece.model",
    "vocab.json",
];

impl TokenizerFiles {
    /// The bytes of `tokenizer.json`.
    ///
    /// # Errors
    /// If there is none, with what there is instead.
    pub(crate) fn tokenizer(&self) -> Result<&[u8], TokenizerError> {
        let missing = self
            .other_tokenizer
            .map_or(TokenizerError::Missing, TokenizerError::OtherKind);
        self.tokenizer.as_deref().ok_or(missing)
    }

    /// Returns the tokens that a chat template may name: by the tokenizer's config, or else by the ids of the model's
    /// own first token and of its ends.
    pub(crate) fn special_tokens(
        &self,
        bos: Option<TokenId>,
        ends: &[TokenId],
        tokenizer: &Tokenizer,
    ) -> SpecialTokens {
        let by_id = || SpecialTokens::by_id(bos, ends.first().copied(), tokenizer);
        self.named_tokens.clone().unwrap_or_else(by_id)
    }

    /// Those in `folder`, or in `tokenizer` beside it, where a draft and a target share one.
    ///
    /// # Errors
    /// If one is there and cannot be read.
    pub(crate) fn open(folder: &Path) -> Result<Self, CheckpointError> {
        let shared = folder.with_file_name("tokenizer");
        let text =
            if !folder.join("tokenizer.json").exists() && shared.join("tokenizer.json").exists() {
                shared.as_path()
            } else {
                folder
            };
        let template = optional(&text.join("chat_template.jinja"))?;
        let tokenizer_config = optional(&text.join("tokenizer_config.json"))?;
        let tokenizer_config = tokenizer_config.as_deref();
        let generation = optional(&folder.join("generation_config.json"))?;
        let named_tokens = tokenizer_config.and_then(SpecialTokens::named_in);
        let around = tokenizer_config.map_or_else(AroundText::default, AroundText::read);
        let tokenizer = optional(&text.join("tokenizer.json"))?
            .map(|json| as_used(json, around, named_tokens.as_ref()));
        let mut more_ends = match generation {
            Some(json) => generation_eos(&json)?,
            None => Vec::new(),
        };
        let named_end = named_tokens.as_ref().and_then(|named| named.eos.as_deref());
        if let (Some(json), Some(end)) = (&tokenizer, named_end) {
            more_ends.extend(added_id(json, end));
        }
        Ok(Self {
            other_tokenizer: OTHER_TOKENIZERS
                .into_iter()
                .find(|name| text.join(name).exists()),
            tokenizer: tokenizer.map(Cow::Owned),
            chat_template: match template {
                Some(template) => Some(String::from_utf8_lossy(&template).into_owned()),
                None => chat_template(tokenizer_config)?,
            },
            named_tokens,
            more_ends,
        })
    }
}

/// The bytes of a file, or `None` if there is no such file.
///
/// # Errors
/// If it cannot be read, or is by its beginning something else than a model's file.
pub(crate) fn optional(path: &Path) -> Result<Option<Vec<u8>>, CheckpointError> {
    match fs::read(path) {
        Ok(bytes) => match mistaken::instead(&bytes) {
            None => Ok(Some(bytes)),
            Some(what) => Err(CheckpointError::Mistaken {
                path: path.to_owned(),
                what,
            }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(UnreadableFile::at(path)(error).into()),
    }
}

/// The end tokens of a `generation_config.json`: one, several or none.
fn generation_eos(json: &[u8]) -> Result<Vec<TokenId>, CheckpointError> {
    #[derive(Deserialize)]
    struct GenerationConfig {
        eos_token_id: Option<OneOrMany>,
    }
    let config: GenerationConfig =
        python_json::from_slice(json).map_err(CheckpointError::GenerationConfig)?;
    Ok(config.eos_token_id.map_or_else(Vec::new, OneOrMany::ids))
}

/// The chat template of a `tokenizer_config.json`: the only one, or the one named `default`.
pub(super) fn chat_template(json: Option<&[u8]>) -> Result<Option<String>, CheckpointError> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected a template's text, or a list of objects with `name` and `template`"
    )]
    enum Template {
        One(String),
        Named(Vec<Named>),
    }
    #[derive(Deserialize)]
    struct Named {
        name: String,
        template: String,
    }
    #[derive(Deserialize)]
    struct TemplateConfig {
        chat_template: Option<Template>,
    }
    let Some(json) = json else {
        return Ok(None);
    };
    let config: TemplateConfig =
        python_json::from_slice(json).map_err(CheckpointError::TokenizerConfig)?;
    Ok(match config.chat_template {
        None => None,
        Some(Template::One(template)) => Some(template),
        Some(Template::Named(templates)) => templates
            .into_iter()
            .find(|named| named.name == "default")
            .map(|named| named.template),
    })
}
