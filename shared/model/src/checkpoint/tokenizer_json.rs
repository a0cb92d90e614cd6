//! `tokenizer.json` as transformers uses it: with what `tokenizer_config.json` says of its first and last token, and
//! without a training's dropout.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use speculation::TokenId;
use tokenizers::Tokenizer;

use crate::tokenizer::SpecialToken;
use crate::{python_json, tokenizer};

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
        let config: NamedTokens = python_json::from_slice(tokenizer_config).ok()?;
        Some(Self {
            bos: config.bos_token.map(TokenName::text),
            eos: config.eos_token.map(TokenName::text),
        })
    }
}

#[derive(Deserialize)]
struct NamedTokens {
    bos_token: Option<TokenName>,
    eos_token: Option<TokenName>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a token's text, or an object with its `content`"
)]
enum TokenName {
    Plain(String),
    WithFlags { content: String },
}

impl TokenName {
    fn text(self) -> String {
        match self {
            Self::Plain(text) | Self::WithFlags { content: text } => text,
        }
    }
}

/// What a `tokenizer_config.json` says of the tokens around each text.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct AroundText {
    /// Whether each text begins with the tokenizer's `bos_token`.
    add_bos_token: Option<bool>,
    /// Whether each text ends with its `eos_token`.
    add_eos_token: Option<bool>,
}

impl AroundText {
    /// Reads a `tokenizer_config.json`; one that says nothing of it, or makes no sense, changes nothing.
    pub(super) fn read(tokenizer_config: &[u8]) -> Self {
        python_json::from_slice(tokenizer_config).unwrap_or_default()
    }

    fn is_said(self) -> bool {
        self.add_bos_token.is_some() || self.add_eos_token.is_some()
    }
}

/// The parts of a `tokenizer.json`, most of them unread.
type Parts = BTreeMap<String, Box<RawValue>>;

/// Returns `json` as it is used; what cannot be understood stays as it is, and is refused where it is read.
pub(super) fn as_used(json: Vec<u8>, around: AroundText, named: Option<&SpecialTokens>) -> Vec<u8> {
    let text = python_json::without_mark(&json);
    let is_changed = text.len() != json.len();
    let Ok(mut parts) = serde_json::from_slice::<Parts>(text) else {
        return json;
    };
    let without_dropout = parts.get("model").and_then(|model| without_dropout(model));
    let processor = named
        .filter(|_| around.is_said())
        .and_then(|named| processor_of(&parts, around, named));
    if without_dropout.is_none() && processor.is_none() && !is_changed {
        return json;
    }
    for (part, value) in [("model", without_dropout), ("post_processor", processor)] {
        if let Some(value) = value {
            parts.insert(part.to_owned(), value);
        }
    }
    serde_json::to_vec(&parts).unwrap_or(json)
}

/// The id of the token `text` among those that the tokenizer has by name.
pub(super) fn added_id(json: &[u8], text: &str) -> Option<TokenId> {
    let parts: Parts = serde_json::from_slice(json).ok()?;
    id_in(&parts, text)
}

fn id_in(parts: &Parts, text: &str) -> Option<TokenId> {
    #[derive(Deserialize)]
    struct AddedToken {
        id: TokenId,
        content: String,
    }
    let added: Vec<AddedToken> = serde_json::from_str(parts.get("added_tokens")?.get()).ok()?;
    let token = added.into_iter().find(|token| token.content == text)?;
    Some(token.id)
}

/// The model without its dropout, which would cut one text in another way each time; none if it has none.
fn without_dropout(model: &RawValue) -> Option<Box<RawValue>> {
    let mut model: Parts = serde_json::from_str(model.get()).ok()?;
    let dropout = model.get_mut("dropout")?;
    if dropout.get() == "null" {
        return None;
    }
    *dropout = RawValue::from_string("null".to_owned()).ok()?;
    serde_json::value::to_raw_value(&model).ok()
}

/// The post-processor that puts the tokens around a text that are asked for; none if one of them has no id.
fn processor_of(parts: &Parts, around: AroundText, named: &SpecialTokens) -> Option<Box<RawValue>> {
    let token = |is_added: Option<bool>, text: &Option<String>| match (is_added, text) {
        (Some(true), Some(text)) => {
            let id = id_in(parts, text)?;
            let text = text.clone();
            Some(Some(SpecialToken { id, text }))
        }
        (Some(true), None) => None,
        (Some(false) | None, _) => Some(None),
    };
    let bos = token(around.add_bos_token, &named.bos)?;
    let eos = token(around.add_eos_token, &named.eos)?;
    let around = tokenizer::around(bos.as_ref(), eos.as_ref());
    serde_json::value::to_raw_value(&around).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer;

    fn tokenizer_json(post_processor: &str, dropout: &str) -> Vec<u8> {
        let json = format!(
            r#"{{"version": "1.0", "post_processor": {post_processor},
                "added_tokens": [{{"id": 3, "content": "<s>", "special": true, "single_word": false, "lstrip": false,
                    "rstrip": false, "normalized": false}}, {{"id": 4, "content": "</s>", "special": true,
                    "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}}],
                "model": {{"type": "BPE", "dropout": {dropout}, "vocab": {{"a": 0, "b": 1, "ab": 2}},
                    "merges": [["a", "b"]]}}}}"#
        );
        json.into_bytes()
    }

    fn ids(json: &[u8], config: &str) -> Vec<u32> {
        let named = SpecialTokens {
            bos: Some("<s>".to_owned()),
            eos: Some("</s>".to_owned()),
        };
        let around = AroundText::read(config.as_bytes());
        let used = as_used(json.to_vec(), around, Some(&named));
        let tokenizer = tokenizer::from_bytes(&used).expect("a tokenizer");
        let encoded = tokenizer.encode("ab", true).expect("tokens");
        encoded.get_ids().to_vec()
    }

    #[test]
    fn the_first_and_last_token_are_those_that_the_config_asks_for() {
        let adds = r#"{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [3],
            "tokens": ["<s>"]}}}"#;
        let (plain, adds) = (tokenizer_json("null", "null"), tokenizer_json(adds, "null"));
        for (config, plainly, added) in [
            ("{}", &[2][..], &[3, 2][..]),
            (r#"{"add_bos_token": null}"#, &[2], &[3, 2]),
            (r#"{"add_bos_token": true}"#, &[3, 2], &[3, 2]),
            (r#"{"add_bos_token": false}"#, &[2], &[2]),
            (r#"{"add_eos_token": true}"#, &[2, 4], &[2, 4]),
            (
                r#"{"add_bos_token": true, "add_eos_token": true}"#,
                &[3, 2, 4],
                &[3, 2, 4],
            ),
            ("no JSON", &[2], &[3, 2]),
        ] {
            assert_eq!(ids(&plain, config), plainly, "{config}");
            assert_eq!(ids(&adds, config), added, "{config}");
        }
    }

    #[test]
    fn a_token_that_is_not_there_changes_nothing() {
        let json = tokenizer_json("null", "null");
        let around = AroundText::read(br#"{"add_bos_token": true}"#);
        for bos in [None, Some("<bos>".to_owned())] {
            let named = SpecialTokens { bos, eos: None };
            assert_eq!(as_used(json.clone(), around, Some(&named)), json);
        }
        assert_eq!(as_used(json.clone(), around, None), json);
    }

    #[test]
    fn dropout_and_a_byte_order_mark_are_taken_out() {
        let json = tokenizer_json("null", "1.0");
        let used = as_used(json.clone(), AroundText::default(), None);
        assert_eq!(ids(&used, "{}"), [2]);
        assert_eq!(ids(&[b"\xef\xbb\xbf", &json[..]].concat(), "{}"), [2]);
        let plain = tokenizer_json("null", "null");
        assert_eq!(as_used(plain.clone(), AroundText::default(), None), plain);
        assert_eq!(added_id(&plain, "</s>"), Some(4));
        assert_eq!(added_id(&plain, "a"), None);
    }

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
