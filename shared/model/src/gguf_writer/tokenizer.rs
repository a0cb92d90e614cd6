//! A `tokenizer.json` as metadata.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value as Json;

use super::error::GgufWriteError;
use crate::checkpoint::Checkpoint;
use crate::gguf::pre_tokenizer::PreTokenizer;
use crate::gguf::tokenizer::sentencepiece::SPACE;
use crate::gguf::tokenizer::{kind, padding};
use crate::gguf_writer::header::MetadataFields;

fn refused(reason: impl Into<String>) -> GgufWriteError {
    GgufWriteError::Tokenizer(reason.into())
}

/// Adds the tokenizer, its special tokens and the chat template.
pub(super) fn write(
    checkpoint: &Checkpoint,
    metadata: &mut MetadataFields,
) -> Result<(), GgufWriteError> {
    if let Some(template) = checkpoint.text.chat_template.as_deref() {
        metadata.insert("tokenizer.chat_template", template);
    }
    let Some(bytes) = checkpoint.tokenizer_json() else {
        metadata.insert("tokenizer.ggml.model", "none");
        return Ok(());
    };
    let json: Json = serde_json::from_slice(bytes).map_err(|error| refused(error.to_string()))?;
    let model = &json["model"];
    if model["type"] != "BPE" {
        return Err(refused(format!(
            "its model is {}, BPE is written",
            model["type"]
        )));
    }
    let sentencepiece = model["byte_fallback"] == true;
    let size = checkpoint.config().vocab_size;
    let mut tokens = tokens(&json, size, sentencepiece)?;
    let merges = merges(model)?;
    if sentencepiece {
        let prefix = space_prefix(&json).ok_or_else(|| {
            refused("its normalizer is not one that SentencePiece models come with")
        })?;
        metadata.insert("tokenizer.ggml.model", "llama");
        metadata.insert("tokenizer.ggml.pre", "default");
        metadata.insert("tokenizer.ggml.add_space_prefix", prefix);
        metadata.insert("tokenizer.ggml.scores", scores(&tokens, &merges));
        for token in &mut tokens {
            if token.1 == kind::USER_DEFINED && !prefix {
                token.0 = token.0.replace(SPACE, " ");
            }
        }
    } else {
        let pre = PreTokenizer::of(&json)
            .ok_or_else(|| refused("the way it cuts text into words has no name in GGUF"))?;
        metadata.insert("tokenizer.ggml.model", "gpt2");
        metadata.insert("tokenizer.ggml.pre", pre.name());
        let merges: Vec<String> = merges.iter().map(|pair| pair.join(" ")).collect();
        metadata.insert("tokenizer.ggml.merges", merges);
    }
    let (texts, kinds): (Vec<String>, Vec<i32>) = tokens
        .into_iter()
        .map(|(text, kind)| (text, kind as i32))
        .unzip();
    metadata.insert("tokenizer.ggml.token_type", kinds);
    metadata.insert("tokenizer.ggml.tokens", texts);
    special_tokens(checkpoint, &json, metadata)
}

/// Every token below `size` with its kind.
fn tokens(
    json: &Json,
    size: usize,
    sentencepiece: bool,
) -> Result<Vec<(String, u64)>, GgufWriteError> {
    let mut tokens: BTreeMap<usize, (String, u64)> = BTreeMap::new();
    let unknown = json["model"]["unk_token"].as_str();
    let vocabulary = json["model"]["vocab"].as_object();
    for (text, id) in vocabulary.into_iter().flatten() {
        let id = id
            .as_u64()
            .ok_or_else(|| refused(format!("token {text:?} has no id")))?;
        let kind = if unknown == Some(text) {
            kind::UNKNOWN
        } else if sentencepiece && is_byte(text) {
            kind::BYTE
        } else {
            kind::NORMAL
        };
        tokens.insert(id as usize, (text.clone(), kind));
    }
    for added in json["added_tokens"].as_array().into_iter().flatten() {
        let (Some(id), Some(text)) = (added["id"].as_u64(), added["content"].as_str()) else {
            return Err(refused("an added token has no id or no content"));
        };
        let kind = match (unknown == Some(text), added["special"] == true) {
            (true, _) => kind::UNKNOWN,
            (false, true) => kind::CONTROL,
            (false, false) => kind::USER_DEFINED,
        };
        tokens.insert(id as usize, (text.to_owned(), kind));
    }
    if let Some((last, _)) = tokens.last_key_value().filter(|(last, _)| **last >= size) {
        return Err(refused(format!(
            "it has a token {last}, the model only {size}"
        )));
    }
    Ok((0..size)
        .map(|id| {
            let found = tokens.remove(&id);
            found.unwrap_or_else(|| (padding(id), kind::UNUSED))
        })
        .collect())
}

/// Whether a SentencePiece token stands for one byte: `<0x0A>`.
fn is_byte(text: &str) -> bool {
    let digits = text
        .strip_prefix("<0x")
        .and_then(|text| text.strip_suffix('>'));
    digits.is_some_and(|digits| digits.len() == 2 && u8::from_str_radix(digits, 16).is_ok())
}

/// Pairs in the order in which they are applied; old files write a pair as one string.
fn merges(model: &Json) -> Result<Vec<[&str; 2]>, GgufWriteError> {
    let merges = model["merges"].as_array().into_iter().flatten();
    merges
        .map(|merge| {
            let pair = match merge {
                Json::String(pair) => pair.split_once(' '),
                pair => pair[0].as_str().zip(pair[1].as_str()),
            };
            let (left, right) = pair.ok_or_else(|| refused(format!("the merge {merge}")))?;
            Ok([left, right])
        })
        .collect()
}

/// Scores that put pieces in the order of their first merges; others come after them all.
fn scores(tokens: &[(String, u64)], merges: &[[&str; 2]]) -> Vec<f32> {
    let mut ranks: HashMap<String, usize> = HashMap::new();
    for (rank, merge) in merges.iter().enumerate() {
        ranks.entry(merge.concat()).or_insert(rank);
    }
    let score = |(id, (text, kind)): (usize, &(String, u64))| match *kind {
        kind::NORMAL => {
            let rank = ranks.get(text).copied();
            -(rank.unwrap_or(merges.len() + id) as f32)
        }
        kind::USER_DEFINED | kind::UNUSED => -1000.0,
        _ => 0.0,
    };
    tokens.iter().enumerate().map(score).collect()
}

/// Whether a space is put before the text; `None` if text is changed in a way that SentencePiece
/// does not know.
fn space_prefix(json: &Json) -> Option<bool> {
    let is_replace = |step: &Json| {
        step["type"] == "Replace" && step["pattern"]["String"] == " " && step["content"] == SPACE
    };
    let (normalizer, pre) = (&json["normalizer"], &json["pre_tokenizer"]);
    if normalizer.is_null() && pre["type"] == "Metaspace" {
        return Some(pre["prepend_scheme"] != "never");
    }
    // Gemma cuts at spaces, of which there are none left.
    let cuts_nothing = pre.is_null() || pre["pattern"]["String"] == " ";
    if !cuts_nothing {
        return None;
    }
    match normalizer["normalizers"].as_array().map(Vec::as_slice) {
        Some([prepend, replace])
            if prepend["type"] == "Prepend"
                && prepend["prepend"] == SPACE
                && is_replace(replace) =>
        {
            Some(true)
        }
        Some([replace]) if is_replace(replace) => Some(false),
        None if is_replace(normalizer) => Some(false),
        _ => None,
    }
}

/// Which tokens begin and end texts, and which of them are put there.
fn special_tokens(
    checkpoint: &Checkpoint,
    json: &Json,
    metadata: &mut MetadataFields,
) -> Result<(), GgufWriteError> {
    let tokenizer = checkpoint.tokenizer()?;
    let empty = tokenizer.encode("", true);
    let empty = empty.map_err(|error| refused(error.to_string()))?;
    let config = checkpoint.config();
    let ends = checkpoint.eos_token_ids();
    let mut insert = |name: &str, id: u32| {
        metadata.insert(format!("tokenizer.ggml.{name}_token_id"), id);
    };
    let is_end = |id: &u32| ends.contains(id);
    let (bos, eos) = match *empty.get_ids() {
        [] => (None, None),
        [eos] if is_end(&eos) && config.bos_token_id != Some(eos) => (None, Some(eos)),
        [bos] => (Some(bos), None),
        [bos, eos] => (Some(bos), Some(eos)),
        ref more => {
            let more = more.len();
            return Err(refused(format!("it adds {more} tokens to every text")));
        }
    };
    for (name, id) in [("bos", bos), ("eos", eos)] {
        if let Some(id) = id {
            insert(name, id);
        }
    }
    if let Some(unknown) = json["model"]["unk_token"].as_str()
        && let Some(id) = tokenizer.token_to_id(unknown)
    {
        insert("unknown", id);
    }
    for name in ["<pad>", "<|pad|>", "[PAD]", "<|finetune_right_pad_id|>"] {
        if let Some(id) = tokenizer.token_to_id(name) {
            insert("padding", id);
            break;
        }
    }
    metadata.insert("tokenizer.ggml.add_bos_token", bos.is_some());
    metadata.insert("tokenizer.ggml.add_eos_token", eos.is_some());
    Ok(())
}
