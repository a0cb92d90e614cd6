//! SentencePiece BPE: pieces with scores, bytes for what no piece covers.
//!
//! SentencePiece joins the two neighbours whose piece has the best score. A `tokenizer.json` has a
//! list of merges instead, which Hugging Face's converter makes so: every way of cutting a piece in
//! two pieces is a merge, those of better pieces first.

use std::collections::HashMap;

use serde_json::{Value as Json, json};

use super::{GgufToken, added, begin_and_end, kind, vocabulary};
use crate::gguf::{
    GgufError,
    value::{GgufMetadata, MOST_ITEMS},
};

/// What stands for a space.
pub(crate) const SPACE: &str = "\u{2581}";
/// Most bytes that are looked up to cut all pieces, a square of the length for each; ten times that of Gemma's.
const MOST_WORK: usize = 1 << 28;

pub(super) fn json(metadata: &GgufMetadata, tokens: &[GgufToken<'_>]) -> Result<Json, GgufError> {
    let scores = metadata
        .reals("tokenizer.ggml.scores")?
        .ok_or_else(|| GgufError::MissingKey("tokenizer.ggml.scores".to_owned()))?;
    let prefix = metadata
        .bool("tokenizer.ggml.add_space_prefix")?
        .unwrap_or(true);
    let pieces = tokens
        .iter()
        .filter(|token| token.kind == kind::NORMAL || token.kind == kind::UNUSED)
        .map(|token| {
            let score = scores.get(token.id).copied();
            let missing = || GgufError::Tokenizer(format!("token {} has no score", token.id));
            Ok((token.text, token.id, score.ok_or_else(missing)?))
        })
        .collect::<Result<Vec<_>, GgufError>>()?;
    let unknown = tokens.iter().find(|token| token.kind == kind::UNKNOWN);
    // llama.cpp's converter writes tokens a user defined with spaces. They are looked for in the
    // text as it is where it is changed at the beginning, and in the changed text otherwise.
    let space = if prefix { " " } else { SPACE };
    let text = |token: &str| token.replace(' ', space);
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": SPACE});
    let mut decoders = vec![
        json!({"type": "Replace", "pattern": {"String": SPACE}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    let normalizer = if prefix {
        decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
        json!({"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": SPACE}, replace,
        ]})
    } else {
        replace
    };
    Ok(json!({
        "added_tokens": added(tokens, text, !prefix),
        "normalizer": normalizer,
        "pre_tokenizer": null,
        "post_processor": begin_and_end(metadata, true)?,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {
            "type": "BPE",
            "unk_token": unknown.map(|token| token.text),
            "fuse_unk": true,
            "byte_fallback": true,
            "ignore_merges": false,
            "vocab": vocabulary(tokens, text)?,
            "merges": merges(&pieces)?,
        },
    }))
}

/// Merges of pieces `(text, id, score)`, the first to be applied first.
///
/// # Errors
/// If they are too many, or the pieces too long: of pieces that all begin and end with others there is a merge for
/// each character.
fn merges<'a>(pieces: &[(&'a str, usize, f64)]) -> Result<Vec<[&'a str; 2]>, GgufError> {
    let ids: HashMap<&str, usize> = pieces.iter().map(|(text, id, _)| (*text, *id)).collect();
    let mut merges = Vec::new();
    let mut work = 0_usize;
    let too_many = || GgufError::Tokenizer("its pieces make too many merges".to_owned());
    for &(text, _, score) in pieces {
        work = work.saturating_add(text.len().saturating_mul(text.len()));
        if work > MOST_WORK {
            return Err(too_many());
        }
        let mut cuts: Vec<_> = text
            .char_indices()
            .skip(1)
            .filter_map(|(at, _)| {
                let (left, right) = text.split_at(at);
                Some(((*ids.get(left)?, *ids.get(right)?), [left, right]))
            })
            .collect();
        cuts.sort_unstable_by_key(|(ids, _)| *ids);
        if merges.len() + cuts.len() > MOST_ITEMS {
            return Err(too_many());
        }
        merges.extend(cuts.into_iter().map(|(_, cut)| (score, cut)));
    }
    let lengths = |[left, right]: [&str; 2]| (left.chars().count(), right.chars().count());
    merges.sort_by(|(a, left), (b, right)| {
        b.total_cmp(a)
            .then_with(|| lengths(*right).cmp(&lengths(*left)))
    });
    Ok(merges.into_iter().map(|(_, cut)| cut).collect())
}
