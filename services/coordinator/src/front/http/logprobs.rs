//! Log probabilities in both forms that OpenAI's clients read.

use serde_json::{Map, Value, json};
use text::ServedText;
use wire::v1;

use super::output::{OutputToken, token_text};

/// A log probability as JSON, which has no infinity.
fn number(logprob: f32) -> Value {
    json!(logprob.clamp(-9999.0, 0.0))
}

/// The form of completions: parallel lists. `offset` is where the text of the first token begins, in characters.
pub(super) fn of_completion(text: &ServedText, tokens: &[OutputToken], offset: usize) -> Value {
    let mut offsets = Vec::new();
    let mut at = offset;
    for token in tokens {
        offsets.push(at);
        at += token.piece.chars().count();
    }
    let names: Vec<_> = tokens
        .iter()
        .map(|token| token_text(text, token.id).0)
        .collect();
    let own = |token: &OutputToken| token.logprobs.as_ref().map(|of| number(of.logprob));
    let top = |token: &OutputToken| {
        token
            .logprobs
            .as_ref()
            .map(|of| by_text(text, token.id, of))
    };
    json!({
        "tokens": names,
        "token_logprobs": tokens.iter().map(own).collect::<Vec<_>>(),
        "top_logprobs": tokens.iter().map(top).collect::<Vec<_>>(),
        "text_offset": offsets,
    })
}

/// The alternatives by their texts, and the token itself. Tokens of one text are told apart by their ids.
fn by_text(text: &ServedText, token: u32, of_token: &v1::TokenLogprobs) -> Value {
    let mut all = Map::new();
    let mut add = |token: u32, logprob: f32| {
        let (name, _) = token_text(text, token);
        let name = if all.contains_key(&name) {
            format!("token_id:{token}")
        } else {
            name
        };
        all.insert(name, number(logprob));
    };
    for top in &of_token.top {
        add(top.token_id, top.logprob);
    }
    if of_token.top.iter().all(|top| top.token_id != token) {
        add(token, of_token.logprob);
    }
    Value::Object(all)
}

/// The form of chats: an object a token.
pub(super) fn of_chat(text: &ServedText, tokens: &[OutputToken]) -> Value {
    json!({ "content": of_tokens(text, tokens), "refusal": null })
}

/// An object for each token.
pub(super) fn of_tokens(text: &ServedText, tokens: &[OutputToken]) -> Value {
    let of_token = |token: &OutputToken| {
        let logprobs = token.logprobs.as_ref()?;
        let top = logprobs.top.iter();
        let top = top.map(|top| named(text, top.token_id, top.logprob));
        let mut object = named(text, token.id, logprobs.logprob);
        object["top_logprobs"] = top.collect();
        Some(object)
    };
    tokens.iter().filter_map(of_token).collect()
}

fn named(text: &ServedText, token: u32, logprob: f32) -> Value {
    let (name, bytes) = token_text(text, token);
    json!({ "token": name, "logprob": number(logprob), "bytes": bytes })
}
