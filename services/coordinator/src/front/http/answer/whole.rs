//! Whole answers, serialised piece by piece as the client reads them: the JSON of log probabilities is many times larger
//! than the tokens that it is made of.

use std::sync::Arc;

use axum::body::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use text::ServedText;

use super::{Answering, Head, Layout};
use crate::front::http::logprobs::Form;
use crate::front::http::output::{OutputToken, WholeOutput};
use crate::front::http::report;

/// Number of tokens that are serialised in one piece.
const GROUP: usize = 64;

impl<L: Layout> Answering<L> {
    /// Returns the pieces of the JSON of the answer, in order. The memory reserved for the answer is released with the last.
    pub(super) fn pieces(
        self,
        head: &Head,
        outputs: Vec<WholeOutput>,
    ) -> impl Iterator<Item = Bytes> + Send + use<L> {
        let opening = open(
            &head.object(L::OBJECTS.0, &[]),
            "\"choices\":[]",
            "\"choices\":[",
        );
        let choices = self.admitted.delivery.choices as usize;
        let counts: Vec<_> = outputs.iter().map(|output| &output.counts).collect();
        let mut rest = json!({});
        report::add(&mut rest, &counts, choices);
        // What follows the choices, without the brace that begins it.
        let closing = format!("],{}", rest.to_string().trim_start_matches('{'));
        let choices = outputs.into_iter().enumerate();
        let choices = choices.flat_map(move |(index, output)| self.choice(index, output));
        let whole = std::iter::once(opening.into()).chain(choices);
        whole.chain(std::iter::once(closing.into()))
    }

    /// Returns the pieces of the JSON of one choice.
    fn choice(
        &self,
        index: usize,
        output: WholeOutput,
    ) -> impl Iterator<Item = Bytes> + Send + use<L> {
        let before = &self.before[index];
        let text = format!("{before}{}", output.text);
        let mut choice = self.layout.text(&text, true);
        choice["index"] = json!(index);
        self.add_ids(&mut choice, output.own_tokens());
        choice["finish_reason"] = json!(output.counts.finish_reason());
        choice["logprobs"] = Value::Null;
        let separator = if index == 0 { "" } else { "," };
        if !self.admitted.logprobs {
            return Pieces::Plain(Some(format!("{separator}{choice}").into()));
        }
        let opening = open(&choice, "\"logprobs\":null}", "\"logprobs\":");
        // If the prompt's are told too, its tokens come first.
        let offset = if output.counts.prompt_tokens == 0 {
            before.chars().count()
        } else {
            0
        };
        Pieces::Scored(Scores {
            opening: Some(format!("{separator}{opening}").into()),
            form: self.layout.logprobs(),
            text: Arc::clone(&self.admitted.text),
            tokens: output.tokens,
            offset,
            list: 0,
            next: 0,
            at: offset,
            is_first: true,
        })
    }
}

/// Returns the JSON of `object`, which ends with `end`, with `begin` in place of that end.
fn open(object: &Value, end: &str, begin: &str) -> String {
    let json = object.to_string();
    let closed = json.trim_end_matches('}');
    let end = end.trim_end_matches('}');
    format!("{}{begin}", closed.strip_suffix(end).unwrap_or(closed))
}

/// The pieces of a choice: one, or more if it has log probabilities.
enum Pieces {
    Plain(Option<Bytes>),
    Scored(Scores),
}

/// Serialises the log probabilities of a choice, list by list.
struct Scores {
    opening: Option<Bytes>,
    form: &'static Form,
    text: Arc<ServedText>,
    tokens: Vec<OutputToken>,
    /// Characters before the first token.
    offset: usize,
    /// The list that is being serialised, its next token, and the number of characters before that token.
    list: usize,
    next: usize,
    at: usize,
    /// Whether the list has no item yet.
    is_first: bool,
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        match self {
            Self::Plain(piece) => piece.take(),
            Self::Scored(scores) => scores.next(),
        }
    }
}

impl Iterator for Scores {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if let Some(opening) = self.opening.take() {
            return Some(opening);
        }
        let lists = self.form.lists;
        if self.list > lists.len() {
            return None;
        }
        let Some(&(name, item)) = lists.get(self.list) else {
            self.list += 1;
            let mut end = String::new();
            for name in self.form.nulls {
                for part in [",\"", name, "\":null"] {
                    end.push_str(part);
                }
            }
            // The end of the log probabilities, and of their choice.
            end.push_str("}}");
            return Some(end.into());
        };
        let mut json = Vec::new();
        if self.next == 0 {
            let separator = if self.list == 0 { '{' } else { ',' };
            json.extend_from_slice(format!("{separator}\"{name}\":[").as_bytes());
        }
        let end = self.tokens.len().min(self.next + GROUP);
        for token in &self.tokens[self.next..end] {
            if let Some(value) = item(&self.text, token, self.at) {
                if !std::mem::take(&mut self.is_first) {
                    json.push(b',');
                }
                write(&mut json, &value);
            }
            self.at += token.piece.chars().count();
        }
        self.next = end;
        if end == self.tokens.len() {
            json.push(b']');
            (self.list, self.next, self.at) = (self.list + 1, 0, self.offset);
            self.is_first = true;
        }
        Some(json.into())
    }
}

/// Appends the JSON of `value`.
fn write(json: &mut Vec<u8>, value: &impl Serialize) {
    // Values have JSON, and memory takes all of it.
    let _ = serde_json::to_writer(json, value);
}
