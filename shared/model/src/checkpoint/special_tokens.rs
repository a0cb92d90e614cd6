//! The tokens that chat templates name.

use serde::Deserialize;
use tokenizers::Tokenizer;

use crate::python_json;

/// Tokens that begin and end a text, as they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    /// The first token of a text.
    pub bos: Option<String>,
    /// The last token of a text, or of a turn.
    pub eos: Option<String>,
}

impl SpecialTokens {
    /// Those of these ids.
    pub(crate) fn by_id(bos: Option<u32>, eos: Option<u32>, tokenizer: &Tokenizer) -> Self {
        let written = |id: Option<u32>| tokenizer.id_to_token(id?);
        Self {
            bos: written(bos),
            eos: written(eos),
        }
    }

    /// Those that a `tokenizer_config.json` names; `None` if it makes no sense. One that is null there does not
    /// exist, whatever the config says.
    pub(super) fn named_in(tokenizer_config: &[u8]) -> Option<Self> {
        let config: TokenizerConfig = python_json::from_slice(tokenizer_config).ok()?;
        Some(Self {
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
#[serde(
    untagged,
    expecting = "expected a token's text, or an object with its `content`"
)]
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
            assert_eq!(SpecialTokens::named_in(json.as_bytes()), Some(expected));
        }
    }
}
