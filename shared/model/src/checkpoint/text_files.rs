//! The files beside a model's weights that text needs.

use std::borrow::Cow;
use std::path::Path;
use std::{fs, io};

use serde::Deserialize;
use speculation::TokenId;

use super::CheckpointError;
use super::special_tokens::SpecialTokens;
use crate::config::OneOrMany;

/// What a model's folder says of its text.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextFiles {
    /// `tokenizer.json`.
    pub(crate) tokenizer: Option<Cow<'static, [u8]>>,
    pub(crate) chat_template: Option<String>,
    /// Tokens that the tokenizer's config names.
    pub(crate) named_tokens: Option<SpecialTokens>,
    /// End tokens of `generation_config.json`.
    pub(crate) generation_eos: Vec<TokenId>,
}

impl TextFiles {
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
        Ok(Self {
            tokenizer: optional(&text.join("tokenizer.json"))?.map(Cow::Owned),
            chat_template: match template {
                Some(template) => Some(String::from_utf8_lossy(&template).into_owned()),
                None => chat_template(tokenizer_config)?,
            },
            named_tokens: tokenizer_config.and_then(SpecialTokens::named_in),
            generation_eos: match generation {
                Some(json) => generation_eos(&json)?,
                None => Vec::new(),
            },
        })
    }
}

/// The bytes of a file, or `None` if there is no such file.
pub(crate) fn optional(path: &Path) -> Result<Option<Vec<u8>>, CheckpointError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(CheckpointError::Io {
            path: path.to_owned(),
            source,
        }),
    }
}

/// The end tokens of a `generation_config.json`: one, several or none.
fn generation_eos(json: &[u8]) -> Result<Vec<TokenId>, CheckpointError> {
    #[derive(Deserialize)]
    struct GenerationConfig {
        eos_token_id: Option<OneOrMany>,
    }
    let config: GenerationConfig =
        serde_json::from_slice(json).map_err(CheckpointError::GenerationConfig)?;
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
    struct TokenizerConfig {
        chat_template: Option<Template>,
    }
    let Some(json) = json else {
        return Ok(None);
    };
    let config: TokenizerConfig =
        serde_json::from_slice(json).map_err(CheckpointError::TokenizerConfig)?;
    Ok(match config.chat_template {
        None => None,
        Some(Template::One(template)) => Some(template),
        Some(Template::Named(templates)) => templates
            .into_iter()
            .find(|named| named.name == "default")
            .map(|named| named.template),
    })
}
