//! The post-processor of a `tokenizer.json` that puts special tokens around texts.

use serde_json::{Map, Value as Json, json};
use speculation::TokenId;

/// A special token.
#[derive(Clone, Debug)]
pub(crate) struct Special {
    pub(crate) id: TokenId,
    pub(crate) text: String,
}

/// Returns the post-processor that begins each text with `bos` and ends it with `eos`; null if there is neither.
pub(crate) fn around(bos: Option<&Special>, eos: Option<&Special>) -> Json {
    if bos.is_none() && eos.is_none() {
        return Json::Null;
    }
    let special = bos.iter().chain(&eos).map(|token| {
        let described = json!({"id": token.text, "ids": [token.id], "tokens": [token.text]});
        (token.text.clone(), described)
    });
    // A text alone, or the one or the other of a pair.
    let text = |sequence: &str, kind: u8| -> Vec<Json> {
        let special =
            |token: &Special| json!({"SpecialToken": {"id": token.text, "type_id": kind}});
        let sequence = json!({"Sequence": {"id": sequence, "type_id": kind}});
        let begin = bos.map(special).into_iter();
        begin.chain([sequence]).chain(eos.map(special)).collect()
    };
    let first = text("A", 0);
    let both = [first.clone(), text("B", 1)].concat();
    json!({
        "type": "TemplateProcessing",
        "single": first,
        "pair": both,
        "special_tokens": special.collect::<Map<String, Json>>(),
    })
}
