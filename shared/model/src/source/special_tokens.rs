//! The tokens that chat templates name.

use std::path::Path;

use serde::Deserialize;
use tokenizers::Tokenizer;

use crate::checkpoint::Checkpoint;

/// Tokens that begin and end a text, as they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    /// The first token of a text.
    pub bos: Option<String>,
    /// The last token of a text, or of a turn.
    pub eos: Option<String>,
}

impl SpecialTokens {
    /// Those whose ids the model's config tells.
    pub(super) fn by_id(checkpoint: &Checkpoint, tokenizer: &Tokenizer) -> Self {
        let config = checkpoint.config();
        let written = |id: Option<u32>| tokenizer.id_to_token(id?);
        Self {
            bos: written(config.bos_token_id),
            eos: written(config.eos_token_ids.first().copied()),
        }
    }

    /// Those that `tokenizer_config.json` names: the one in `folder`, or in `tokenizer` beside it, where the
    /// tokenizer is if the folder has none. `None` where there is no such file. One that is null there does
    /// not exist, whatever the config says.
    pub(super) fn named_in(folder: &Path) -> Option<Self> {
        let shared = folder.with_file_name("tokenizer");
        let has_own = folder.join("tokenizer.json").exists();
        let beside = !has_own && shared.join("tokenizer.json").exists();
        let folder = if beside { shared.as_path() } else { folder };
        let json = std::fs::read(folder.join("tokenizer_config.json")).ok()?;
        // Opening the checkpoint has told of a file that makes no sense.
        serde_json::from_slice::<TokenizerConfig>(&json)
            .ok()
            .map(|config| Self {
                bos: config.bos_token.map(Token::text),
                eos: config.eos_token.map(Token::text),
            })
    }
}

#[derive(Deserialize)]
struct TokenizerConfig {
    bos_token: Option<Token>,
    eos_token: Option<Token>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Token {
    Plain(String),
    WithFlags { content: String },
}

impl Token {
    fn text(self) -> String {
        match self {
            Self::Plain(text) | Self::WithFlags { content: text } => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(bos: Option<&str>, eos: Option<&str>) -> SpecialTokens {
        SpecialTokens {
            bos: bos.map(str::to_owned),
            eos: eos.map(str::to_owned),
        }
    }

    #[test]
    fn the_tokenizers_config_names_them_in_two_forms() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(SpecialTokens::named_in(folder.path()), None);
        for (json, expected) in [
            (
                r#"{"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}}"#,
                tokens(Some("<s>"), Some("</s>")),
            ),
            (
                r#"{"bos_token": null, "eos_token": "<|im_end|>"}"#,
                tokens(None, Some("<|im_end|>")),
            ),
        ] {
            std::fs::write(folder.path().join("tokenizer_config.json"), json).expect("written");
            assert_eq!(SpecialTokens::named_in(folder.path()), Some(expected));
        }
    }
}
