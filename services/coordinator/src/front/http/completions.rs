//! `/v1/completions`: texts that go on.

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use wire::status::BadField;
use wire::v1;
use wire::v1::generate_request::Prompt;

use super::answer::{Answering, Layout};
use super::error::ApiError;
use super::fields::{Fields, Items, Readable, problem};
use super::guard::Caller;
use super::logprobs::{self, Form};
use super::names;
use super::options::{self, MOST_OUTPUTS};
use super::run::Order;
use super::state::Front;

/// Most prompts of a request: each has an output at least.
const MAX_PROMPTS: usize = MOST_OUTPUTS as usize;

/// The prompts that stand in a request: a text, a list of token ids, or a list of either.
fn prompts(written: &RawValue) -> Result<Vec<Prompt>, serde_json::Error> {
    let json = written.get();
    let tokens = |ids| Prompt::TokenIds(v1::TokenIds { ids });
    let lists = |Items(lists): Items<&RawValue, MAX_PROMPTS>| {
        let ids = lists.into_iter().map(|list| Vec::of_json(list.get()));
        ids.map(|ids| ids.map(tokens)).collect()
    };
    let Some(list) = json.strip_prefix('[') else {
        return serde_json::from_str(json).map(|text| vec![Prompt::Text(text)]);
    };
    // What the first item is decides what all are.
    match list.trim_start().as_bytes().first() {
        Some(b'"') => {
            let Items(texts) = Items::<String, MAX_PROMPTS>::of_json(json)?;
            Ok(texts.into_iter().map(Prompt::Text).collect())
        }
        Some(b'[') => Items::of_json(json).and_then(lists),
        Some(b']') => Ok(Vec::new()),
        _ => Vec::of_json(json).map(|ids| vec![tokens(ids)]),
    }
}

/// Answers a request.
pub(super) async fn create(
    State(front): State<Front>,
    caller: Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    let ((order, echo), reading) = front.read(body, read).await?;
    let admitted = front.admit(order, &caller, &headers, reading).await?;
    let mut answering = Answering::new(Completion, admitted);
    if echo {
        answering.echo();
    }
    answering.respond().await
}

/// Reads a request's body; and whether prompts are to be echoed.
pub(super) fn read(body: &[u8]) -> Result<(Order, bool), BadField> {
    let mut fields = Fields::of_body(body)?;
    let (mut request, delivery) = options::read(&mut fields)?;
    let written = fields.take_raw("prompt");
    let prompts = written.map(prompts).transpose().map_err(|error| {
        let problem = problem(&error);
        let expected = "expected a text, a list of token ids, or a list of either";
        BadField::new("prompt", format!("{problem}; {expected}"))
    })?;
    let top: Option<u32> = fields.take("logprobs")?;
    (request.logprobs, request.top_logprobs) = (top.is_some(), top.unwrap_or_default());
    let echo = fields.take("echo")?.unwrap_or_default();
    request.prompt_logprobs = echo && request.logprobs;
    fields.only("best_of", &[json!(delivery.choices)])?;
    fields.only("suffix", &[json!("")])?;
    fields.finish()?;
    let prompts = prompts.unwrap_or_default();
    if prompts.is_empty() {
        return Err(BadField::new(
            "prompt",
            "missing; give a text, a list of token ids, or a list of either",
        ));
    }
    let order = Order {
        keeps_prompts: echo,
        kept_per_token: options::kept_per_token(&request, delivery),
        request,
        delivery,
        names: names::OF_COMPLETIONS,
        prompts: prompts.into_iter().map(Some).collect(),
    };
    Ok((order, echo))
}

/// The layout of completions.
#[derive(Clone, Copy)]
pub(super) struct Completion;

impl Layout for Completion {
    const PREFIX: &'static str = "cmpl-";
    const OBJECTS: (&'static str, &'static str) = ("text_completion", "text_completion");

    fn opening(self) -> Option<Value> {
        None
    }

    fn text(self, text: &str, _is_whole: bool) -> Value {
        json!({ "text": text })
    }

    fn closing(self) -> Value {
        json!({ "text": "" })
    }

    fn logprobs(self) -> &'static Form {
        &logprobs::OF_COMPLETIONS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_come_in_four_forms() {
        let read = |prompt: Value| {
            let body = json!({ "prompt": prompt }).to_string();
            read(body.as_bytes())
                .map(|(order, _)| order.prompts.into_iter().flatten().collect::<Vec<_>>())
        };
        let text = |text: &str| Prompt::Text(text.to_owned());
        let tokens = |ids: &[u32]| Prompt::TokenIds(v1::TokenIds { ids: ids.to_vec() });
        assert_eq!(read(json!("a")), Ok(vec![text("a")]));
        assert_eq!(read(json!(["a", "b"])), Ok(vec![text("a"), text("b")]));
        assert_eq!(read(json!([1, 2])), Ok(vec![tokens(&[1, 2])]));
        assert_eq!(
            read(json!([[1], [2, 3]])),
            Ok(vec![tokens(&[1]), tokens(&[2, 3])])
        );
        for bad in [
            json!(null),
            json!([]),
            json!(3),
            json!([1, "a"]),
            json!([-1]),
        ] {
            assert_eq!(read(bad).expect_err("refused").field, "prompt");
        }
    }
}
