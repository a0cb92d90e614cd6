//! The tokenizer in a GGUF file's metadata, as the bytes of a `tokenizer.json`.
//!
//! Two kinds: byte-level BPE (`gpt2`), and SentencePiece BPE (`llama`), which becomes what Hugging
//! Face's converter makes of it.

#[cfg(feature = "llama-cpp")]
pub(crate) mod pieces;
pub(crate) mod sentencepiece;

use serde_json::{Map, Value as Json, json};

use super::{GgufError, pre_tokenizer::PreTokenizer, value::GgufMetadata};
use crate::tokenizer::{self, SpecialToken};

/// Kinds of tokens in the metadata.
pub(crate) mod kind {
    pub(crate) const NORMAL: u64 = 1;
    pub(crate) const UNKNOWN: u64 = 2;
    pub(crate) const CONTROL: u64 = 3;
    pub(crate) const USER_DEFINED: u64 = 4;
    pub(crate) const UNUSED: u64 = 5;
    pub(crate) const BYTE: u64 = 6;
}

/// Whether a token is by its name one of those that chat templates write, whatever its kind: many files call them
/// user-defined or normal, and cut into characters they are nothing that a model has seen.
pub(crate) fn is_control(text: &str) -> bool {
    let is_marked = text.len() > 4 && text.starts_with("<|") && text.ends_with("|>");
    is_marked || ENDS.contains(&text) || text == "<start_of_turn>"
}

/// Tokens that end a turn or a text in the families that are read, as llama.cpp has them.
pub(crate) const ENDS: [&str; 8] = [
    "<|end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<end_of_turn>",
    "<eos>",
];

/// A token of the metadata.
struct GgufToken<'a> {
    id: usize,
    text: &'a str,
    kind: u64,
}

impl GgufToken<'_> {
    /// Whether it only fills the embedding table up.
    fn is_padding(&self) -> bool {
        self.kind == kind::UNUSED && self.text == padding(self.id)
    }
}

/// The token that fills an embedding table up at `id`.
pub(crate) fn padding(id: usize) -> String {
    format!("[PAD{id}]")
}

/// The bytes of a `tokenizer.json`; `None` if the file has no tokenizer.
///
/// # Errors
/// If it is of a kind that is not supported, or contradicts itself.
pub(crate) fn read(metadata: &GgufMetadata) -> Result<Option<Vec<u8>>, GgufError> {
    let model = match metadata.string("tokenizer.ggml.model")? {
        None | Some("none" | "no_vocab") => return Ok(None),
        Some(model) => model,
    };
    let missing = |key: &str| GgufError::MissingKey(key.to_owned());
    let texts = metadata
        .strings("tokenizer.ggml.tokens")?
        .ok_or_else(|| missing("tokenizer.ggml.tokens"))?;
    let kinds = metadata.wholes("tokenizer.ggml.token_type")?;
    let kinds = kinds.unwrap_or_else(|| vec![kind::NORMAL; texts.len()]);
    if kinds.len() != texts.len() {
        return Err(GgufError::Tokenizer(format!(
            "it has {} tokens and {} token types",
            texts.len(),
            kinds.len()
        )));
    }
    let tokens: Vec<GgufToken<'_>> = texts
        .iter()
        .zip(kinds)
        .enumerate()
        .map(|(id, (text, kind))| GgufToken {
            id,
            text,
            kind: if is_control(text) {
                kind::CONTROL
            } else {
                kind
            },
        })
        .filter(|token| !token.is_padding())
        .collect();
    let mut json = match model {
        "gpt2" => byte_level(metadata, &tokens)?,
        "llama" => sentencepiece::json(metadata, &tokens)?,
        other => return Err(GgufError::TokenizerModel(other.to_owned())),
    };
    json["version"] = "1.0".into();
    let bytes = json.to_string().into_bytes();
    tokenizer::from_bytes(&bytes).map_err(|error| GgufError::Tokenizer(error.to_string()))?;
    Ok(Some(bytes))
}

/// Byte-level BPE.
fn byte_level(metadata: &GgufMetadata, tokens: &[GgufToken<'_>]) -> Result<Json, GgufError> {
    let pre = PreTokenizer::named(metadata.string("tokenizer.ggml.pre")?)?;
    let merges = metadata
        .strings("tokenizer.ggml.merges")?
        .ok_or_else(|| GgufError::MissingKey("tokenizer.ggml.merges".to_owned()))?;
    let merges = merges
        .iter()
        .map(|merge| {
            // The first character of a token may be a space in files that are not byte-level.
            let space = merge.char_indices().skip(1).find(|(_, c)| *c == ' ');
            let (at, _) = space
                .ok_or_else(|| GgufError::Tokenizer(format!("the merge {merge:?} has one part")))?;
            Ok(json!([merge[..at], merge[at + 1..]]))
        })
        .collect::<Result<Vec<Json>, GgufError>>()?;
    let (normalizer, pre_tokenizer) = pre.json();
    Ok(json!({
        "added_tokens": added(tokens, str::to_owned, false),
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": begin_and_end(metadata, pre.add_bos)?,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
            "use_regex": true},
        "model": {
            "type": "BPE",
            "byte_fallback": false,
            "ignore_merges": pre.ignore_merges,
            "vocab": vocabulary(tokens, str::to_owned)?,
            "merges": merges,
        },
    }))
}

/// Ids by token, under the name that `text` gives them.
fn vocabulary(
    tokens: &[GgufToken<'_>],
    text: impl Fn(&str) -> String,
) -> Result<Map<String, Json>, GgufError> {
    let mut vocabulary = Map::with_capacity(tokens.len());
    for token in tokens {
        if vocabulary
            .insert(text(token.text), token.id.into())
            .is_some()
        {
            let reason = format!("the token {:?} is there twice", token.text);
            return Err(GgufError::Tokenizer(reason));
        }
    }
    Ok(vocabulary)
}

/// The tokens that are found in text before anything else; `text` gives the name of those that a user defined,
/// which are looked for in the normalised text if they are `normalized`.
fn added(tokens: &[GgufToken<'_>], text: impl Fn(&str) -> String, normalized: bool) -> Vec<Json> {
    let found = [kind::CONTROL, kind::UNKNOWN, kind::USER_DEFINED];
    tokens
        .iter()
        .filter(|token| found.contains(&token.kind))
        .map(|token| {
            let special = token.kind != kind::USER_DEFINED;
            let content = if special {
                token.text.to_owned()
            } else {
                text(token.text)
            };
            json!({"id": token.id, "content": content, "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": normalized && !special, "special": special})
        })
        .collect()
}

/// The processor that begins and ends texts with tokens, as the metadata has it.
fn begin_and_end(metadata: &GgufMetadata, add_bos: bool) -> Result<Json, GgufError> {
    let add = |name: &str, otherwise: bool| -> Result<bool, GgufError> {
        let requested = metadata.bool(&format!("tokenizer.ggml.add_{name}_token"))?;
        Ok(requested.unwrap_or(otherwise))
    };
    let texts = metadata
        .strings("tokenizer.ggml.tokens")?
        .unwrap_or_default();
    let token = |name: &str| -> Result<SpecialToken, GgufError> {
        let key = format!("tokenizer.ggml.{name}_token_id");
        let id = metadata.whole(&key)?;
        let id = id.ok_or_else(|| GgufError::MissingKey(key.clone()))?;
        let text = texts.get(id as usize).ok_or_else(|| {
            GgufError::Tokenizer(format!("{key} is {id}, there are {} tokens", texts.len()))
        })?;
        Ok(SpecialToken {
            id: id as u32,
            text: (*text).to_owned(),
        })
    };
    let bos = add("bos", add_bos)?.then(|| token("bos")).transpose()?;
    let eos = add("eos", false)?.then(|| token("eos")).transpose()?;
    Ok(tokenizer::around(bos.as_ref(), eos.as_ref()))
}

#[cfg(test)]
mod tests;
