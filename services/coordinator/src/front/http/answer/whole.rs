//! Whole answers in choices, serialised piece by piece as the client reads them: the JSON of log probabilities is many times
//! larger than the tokens that it is made of.

use std::iter;
use std::sync::Arc;

use axum::body::Bytes;
use serde_json::{Value, json};

use super::ChoicesAnswer;
use crate::front::http::output::WholeOutput;
use crate::front::http::report;

impl ChoicesAnswer {
    /// Returns the pieces of the JSON of the answer, in order. The memory reserved for the answer is released with the last.
    pub(super) fn whole(self, outputs: Vec<WholeOutput>) -> impl Iterator<Item = Bytes> + Send {
        let opening = open(&self.object(self.layout.whole_object, &[]), "]}");
        let choices = self.request.delivery.choices as usize;
        let progress: Vec<_> = outputs.iter().map(|output| &output.progress).collect();
        let mut rest = json!({});
        report::add(&mut rest, &progress, choices, true);
        report::warn(&mut rest, &self.request.warnings, &progress);
        // What follows the choices, without the brace that begins it.
        let closing = format!("],{}", rest.to_string().trim_start_matches('{'));
        let choices = outputs.into_iter().enumerate();
        let choices = choices.flat_map(move |(index, output)| self.choice(index, output));
        let whole = iter::once(opening).chain(choices);
        whole.chain(iter::once(closing)).map(Bytes::from)
    }

    /// Returns the pieces of the JSON of one choice, behind a comma unless it is the first.
    fn choice(&self, index: usize, output: WholeOutput) -> Box<dyn Iterator<Item = String> + Send> {
        let before = &self.request.before[index];
        let mut choice = (self.layout.whole)(before, &output);
        choice["index"] = json!(index);
        if let Some(ids) = self.token_ids(output.own_tokens()) {
            choice["token_ids"] = json!(ids);
        }
        choice["finish_reason"] = json!(output.progress.finish_reason());
        choice["logprobs"] = Value::Null;
        let separator = if index == 0 { "" } else { "," };
        if !self.request.logprobs {
            return Box::new(iter::once(format!("{separator}{choice}")));
        }
        let opening = format!("{separator}{}", open(&choice, "null}"));
        // If the prompt's are told too, its tokens come first.
        let offset = if output.progress.prompt_tokens == 0 {
            before.chars().count()
        } else {
            0
        };
        let text = Arc::clone(&self.request.text);
        let logprobs = self.layout.logprobs.pieces(text, output.tokens, offset);
        let pieces = iter::once(opening).chain(logprobs);
        Box::new(pieces.chain(iter::once("}".to_owned())))
    }
}

/// Returns the JSON of `object` without its `end`.
fn open(object: &Value, end: &str) -> String {
    let json = object.to_string();
    json.strip_suffix(end).unwrap_or(&json).to_owned()
}
