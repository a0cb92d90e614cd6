//! Log probabilities in both forms that OpenAI's clients read.

use std::iter;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use text::ServedText;
use wire::v1;

use super::output::{OutputToken, token_text};

/// Number of tokens whose log probabilities are serialised in one piece.
const GROUP: usize = 64;

/// Returns a list's item for a token that stands after the given number of characters; none if the list skips it.
type ItemOfToken = fn(&ServedText, &OutputToken, usize) -> Option<Value>;

/// A form of log probabilities: an object of lists, whose items belong to the tokens in order.
#[derive(Debug)]
pub(super) struct LogprobsForm {
    /// At least one.
    lists: &'static [(&'static str, ItemOfToken)],
    /// Fields that are always null.
    nulls: &'static [&'static str],
}

/// The form of completions: parallel lists.
pub(super) const OF_COMPLETIONS: LogprobsForm = LogprobsForm {
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
pub(super) const OF_CHATS: LogprobsForm = LogprobsForm {
    lists: &[("content", |text, token, _| of_token(text, token))],
    nulls: &["refusal"],
};

impl LogprobsForm {
    /// Returns the log probabilities of `tokens`, before which there are `offset` characters.
    pub(super) fn of(&self, text: &ServedText, tokens: &[OutputToken], offset: usize) -> Value {
        let lists = self.lists.iter().map(|&(name, item)| {
            let mut chars = offset;
            let list = items(item, text, tokens, &mut chars).collect();
            (name.to_owned(), list)
        });
        let nulls = self.nulls.iter();
        let nulls = nulls.map(|&name| (name.to_owned(), Value::Null));
        Value::Object(lists.chain(nulls).collect())
    }

    /// Returns the JSON of the same in pieces, which are made one by one.
    pub(super) fn pieces(
        &'static self,
        text: Arc<ServedText>,
        tokens: Vec<OutputToken>,
        offset: usize,
    ) -> impl Iterator<Item = String> + Send {
        let tokens: Arc<[_]> = tokens.into();
        let lists = self.lists.iter().enumerate();
        let lists = lists.flat_map(move |(index, &(name, item))| {
            let begin = if index == 0 { '{' } else { ',' };
            let (text, tokens) = (Arc::clone(&text), Arc::clone(&tokens));
            let (mut chars, mut separator) = (offset, "");
            let groups = (0..tokens.len()).step_by(GROUP).map(move |from| {
                let group = &tokens[from..tokens.len().min(from + GROUP)];
                let items = items(item, &text, group, &mut chars);
                let separated = items.map(|item| {
                    let separator = std::mem::replace(&mut separator, ",");
                    format!("{separator}{item}")
                });
                separated.collect::<String>()
            });
            let opening = iter::once(format!("{begin}\"{name}\":["));
            opening.chain(groups).chain(iter::once("]".to_owned()))
        });
        let nulls = self.nulls.iter();
        let nulls = nulls.map(|name| format!(",\"{name}\":null"));
        lists.chain(nulls).chain(iter::once("}".to_owned()))
    }
}

/// Returns the items of a list for `tokens`, before which stand `chars` characters; counts those of the tokens to them.
fn items<'a>(
    item: ItemOfToken,
    text: &'a ServedText,
    tokens: &'a [OutputToken],
    chars: &'a mut usize,
) -> impl Iterator<Item = Value> + 'a {
    tokens.iter().filter_map(move |token| {
        let found = item(text, token, *chars);
        *chars += token.piece.chars().count();
        found
    })
}

/// Returns a log probability as JSON, which has no infinity.
fn number(logprob: f32) -> Value {
    json!(logprob.clamp(-9999.0, 0.0))
}

/// Returns the alternatives by their texts, and the token itself. Tokens of one text are told apart by their ids.
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

/// Returns an object for each token.
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

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENIZER: &str = r#"{"version": "1.0", "added_tokens": [], "normalizer": null, "decoder": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "truncation": null, "padding": null, "post_processor": null,
        "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "ü": 1, "c": 2}}}"#;

    /// A client reads the same JSON, however an answer is sent.
    #[test]
    fn pieces_together_are_the_whole() {
        let text = ServedText::new(TOKENIZER.as_bytes(), v1::TokenizerPart::default());
        let text = Arc::new(text.expect("a tokenizer"));
        let token = |at: u32| OutputToken {
            id: at % 3,
            piece: ["a", "ü", "cc"][at as usize % 3].to_owned(),
            // As the first token of a prompt, the first has none.
            origin: v1::Origin::Target,
            logprobs: (at > 0).then(|| v1::TokenLogprobs {
                logprob: -0.5 - at as f32,
                top: vec![v1::TopLogprob {
                    token_id: (at + 1) % 3,
                    logprob: f32::NEG_INFINITY,
                }],
                log_normaliser: 0.0,
            }),
        };
        for form in [&OF_COMPLETIONS, &OF_CHATS] {
            for count in [0, 1, 2, 64, 65, 200] {
                let tokens: Vec<_> = (0..count).map(token).collect();
                let whole = form.of(&text, &tokens, 7).to_string();
                let pieces = form.pieces(Arc::clone(&text), tokens, 7);
                assert_eq!(pieces.collect::<String>(), whole, "{count} tokens");
            }
        }
    }
}
