//! Output under a grammar: it is of the grammar, and the target's own, whatever drafts it.

mod exactness;
mod faults;
mod refusals;
mod schemas;

use serde_json::Value;
use wire::v1::{FinishReason, GenerateRequest, Grammar};

use crate::client::{Answer, request};

/// A request whose output follows `schema`.
fn under(schema: &Value, max_tokens: u32) -> GenerateRequest {
    let grammar = Grammar {
        json_schema: schema.to_string(),
        ..Default::default()
    };
    following(grammar, max_tokens)
}

fn following(grammar: Grammar, max_tokens: u32) -> GenerateRequest {
    let mut requested = request(
        "Question: Tom has 3 red balls. What does he have?\nAnswer:",
        max_tokens,
    );
    requested.sampling.get_or_insert_default().grammar = Some(grammar);
    requested
}

/// Checks that a whole answer is what `schema` describes, and that one cut short says so. Returns whether it is whole.
fn validates(answer: &Answer, schema: &Value, what: &str) -> bool {
    if answer.finished.reason() == FinishReason::Length {
        return false;
    }
    assert_eq!(answer.finished.reason(), FinishReason::Stop, "{what}");
    let value = serde_json::from_str(&answer.text);
    let value: Value = value.unwrap_or_else(|error| panic!("{what}: {error}: {}", answer.text));
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(schema);
    let validator = validator.expect("a schema");
    if let Err(error) = validator.validate(&value) {
        panic!("{what}: {error}: {}", answer.text);
    }
    true
}
