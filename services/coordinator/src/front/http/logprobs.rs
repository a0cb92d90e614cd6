//! Log probabilities in both forms that OpenAI's clients read.

use serde_json::{Map, Value, json};
use text::ServedText;
use wire::v1;

use super::output::{OutputToken, token_text};

/// Returns a list's item for a token that stands after the given number of characters; none if the list skips it.
pub(super) type Item = fn(&ServedText, &OutputToken, usize) -> Option<Value>;

/// A form of log probabilities: an object of lists, whose items belong to the tokens in order.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) lists: &'static [(&'static str, Item)],
    /// Fields that are always null.
    pub(super) nulls: &'static [&'static str],
}

/// The form of completions: parallel lists.
pub(super) static OF_COMPLETIONS: Form = Form {
    lists: &[
        ("tokens", |text, token, _| {
            Some(json!(token_text(text, token.id).0))
        }),
        ("token_logprobs", |_, token, _| {
            let own = token.logprobs.as_ref();
            Some(json!(own.map(|own| number(own.logprob))))
        }),
        ("top_logprobs", |text, token, _| {
            let own = token.logprobs.as_ref();
            Some(json!(own.map(|own| by_text(text, token.id, own))))
        }),
        ("text_offset", |_, _, offset| Some(json!(offset))),
    ],
    nulls: &[],
};

/// The form of chats: an object a token.
pub(super) static OF_CHATS: Form = Form {
    lists: &[("content", |text, token, _| of_token(text, token))],
    nulls: &["refusal"],
};

impl Form {
    /// The log probabilities of `tokens`, before which there are `offset` characters.
    pub(super) fn of(&self, text: &ServedText, tokens: &[OutputToken], offset: usize) -> Value {
        let list = |item: Item| -> Value {
            let mut at = offset;
            let items = tokens.iter().filter_map(|token| {
                let found = item(text, token, at);
                at += token.piece.chars().count();
                found
            });
            items.collect()
        };
        let lists = self.lists.iter();
        let lists = lists.map(|&(name, item)| (name.to_owned(), list(item)));
        let nulls = self
            .nulls
            .iter()
            .map(|&name| (name.to_owned(), Value::Null));
        Value::Object(lists.chain(nulls).collect())
    }
}

/// A log probability as JSON, which has no infinity.
fn number(logprob: f32) -> Value {
    json!(logprob.clamp(-9999.0, 0.0))
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

/// An object for each token.
pub(super) fn of_tokens(text: &ServedText, tokens: &[OutputToken]) -> Value {
    tokens
        .iter()
        .filter_map(|token| of_token(text, token))
        .collect()
}

fn of_token(text: &ServedText, token: &OutputToken) -> Option<Value> {
    let logprobs = token.logprobs.as_ref()?;
    let top = logprobs.top.iter();
    let top = top.map(|top| named(text, top.token_id, top.logprob));
    let mut object = named(text, token.id, logprobs.logprob);
    object["top_logprobs"] = top.collect();
    Some(object)
}

fn named(text: &ServedText, token: u32, logprob: f32) -> Value {
    let (name, bytes) = token_text(text, token);
    json!({ "token": name, "logprob": number(logprob), "bytes": bytes })
}
