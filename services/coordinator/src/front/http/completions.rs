//! `/v1/completions`: texts that go on.

use serde_json::json;
use serde_json::value::RawValue;
use wire::grammar;
use wire::status::BadField;
use wire::v1;
use wire::v1::generate_request::Prompt;

use super::answer::AnswerLayout;
use super::fields::{JsonFields, Readable, list};
use super::logprobs;
use super::options;
use super::output::Said;
use super::state::ParsedRequest;
use super::structured::{self, RESPONSE_FORMAT};
use crate::limits::MOST_OUTPUTS;

/// Most prompts of a request: each has an output at least.
const MAX_PROMPTS: usize = MOST_OUTPUTS as usize;

/// Reads the prompts that stand in a request: a text, a list of token ids, or a list of either.
fn prompts(json: &str) -> serde_json::Result<Vec<Prompt>> {
    let tokens = |ids| Prompt::TokenIds(v1::TokenIds { ids });
    let Some(rest) = json.strip_prefix('[') else {
        return serde_json::from_str(json).map(|text| vec![Prompt::Text(text)]);
    };
    // What the first item is decides what all are.
    match rest.trim_start().as_bytes().first() {
        Some(b'"') => {
            let texts = list(json, MAX_PROMPTS)?.into_iter();
            Ok(texts.map(Prompt::Text).collect())
        }
        Some(b'[') => {
            let lists: Vec<&RawValue> = list(json, MAX_PROMPTS)?;
            let ids = lists.into_iter().map(|list| Vec::of_json(list.get()));
            ids.map(|ids| ids.map(tokens)).collect()
        }
        Some(b']') => Ok(Vec::new()),
        _ => Vec::of_json(json).map(|ids| vec![tokens(ids)]),
    }
}

/// Reads a request's body.
pub(super) fn read(body: &[u8]) -> Result<ParsedRequest, BadField> {
    let mut fields = JsonFields::of_body(body)?;
    let (mut request, delivery) = options::read(&mut fields)?;
    let format = structured::format(&mut fields, RESPONSE_FORMAT, RESPONSE_FORMAT)?;
    let grammar = structured::read(&mut fields, format, &mut request)?;
    let prompts = fields.take_by("prompt", prompts).map_err(|bad| {
        let expected = "expected a text, a list of token ids, or a list of either";
        BadField::new("prompt", format!("{}; {expected}", bad.problem))
    })?;
    let top: Option<u32> = fields.take("logprobs")?;
    (request.logprobs, request.top_logprobs) = (top.is_some(), top.unwrap_or_default());
    let echo = fields.take("echo")?.unwrap_or_default();
    request.prompt_logprobs = echo && request.logprobs;
    fields.only("best_of", &[json!(delivery.choices)])?;
    fields.only("suffix", &[json!("")])?;
    // A hint to models that reason, which no template tells here.
    fields.has("reasoning_effort");
    fields.finish()?;
    let prompts = prompts.unwrap_or_default();
    if prompts.is_empty() {
        return Err(BadField::new(
            "prompt",
            "missing; give a text, a list of token ids, or a list of either",
        ));
    }
    Ok(ParsedRequest {
        echo,
        kept_per_token: options::kept_per_token(&request, delivery),
        request,
        delivery,
        names: vec![("top_logprobs", "logprobs"), (grammar::FIELD, grammar)],
        warnings: Vec::new(),
        prompts: prompts.into_iter().map(Some).collect(),
    })
}

/// The layout of completions.
pub(super) static LAYOUT: AnswerLayout = AnswerLayout {
    prefix: "cmpl-",
    whole_object: "text_completion",
    piece_object: "text_completion",
    opening: None,
    whole: |before, output| json!({ "text": before.to_owned() + &output.text() }),
    piece: |said| match said {
        Said::Text(text) => json!({ "text": text }),
        // Of conversations alone.
        Said::Reasoning(_) | Said::Call(..) | Said::Arguments(..) => json!({ "text": "" }),
    },
    closing: || json!({ "text": "" }),
    logprobs: logprobs::OF_COMPLETIONS,
};

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn prompts_come_in_four_forms() {
        let read = |prompt: Value| {
            let body = json!({ "prompt": prompt }).to_string();
            let prompts = read(body.as_bytes()).map(|request| request.prompts);
            prompts.map(|prompts| prompts.into_iter().flatten().collect::<Vec<_>>())
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
