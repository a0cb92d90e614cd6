//! What the output must follow.

use serde_json::{Value, json};
use wire::v1::Grammar;

use super::{Field, field};

/// A schema of few values, so that it ends soon.
fn schema() -> Value {
    json!({ "enum": ["once", "twice"] })
}

fn under(json: Value, set: impl Fn(&mut Grammar) + 'static) -> Field {
    field(json, move |request| {
        let mut grammar = Grammar::default();
        set(&mut grammar);
        request.sampling.get_or_insert_default().grammar = Some(grammar);
    })
}

fn by_schema(json: Value) -> Field {
    under(json, |it| it.json_schema = schema().to_string())
}

/// The fields that vLLM has for it.
pub(super) fn fields() -> Vec<Field> {
    let lark = "start: \"a\" \"b\"";
    let texts = || vec!["one day".to_owned(), "never".to_owned()];
    vec![
        by_schema(json!({ "guided_json": schema() })),
        by_schema(json!({ "guided_json": schema().to_string() })),
        by_schema(json!({ "structured_outputs": { "json": schema() } })),
        under(json!({ "guided_regex": "x+y" }), |it| {
            "x+y".clone_into(&mut it.regex);
        }),
        under(json!({ "structured_outputs": { "regex": "x+y" } }), |it| {
            "x+y".clone_into(&mut it.regex);
        }),
        under(json!({ "guided_choice": texts() }), move |it| {
            it.choice = texts();
        }),
        under(json!({ "guided_grammar": lark }), move |it| {
            lark.clone_into(&mut it.lark);
        }),
    ]
}

/// OpenAI's field, with the schema in an object of its own if `nested`.
pub(super) fn of_format(name: &str, nested: bool) -> Field {
    let described = json!({ "name": "a word", "strict": true, "schema": schema() });
    let format = if nested {
        json!({ "type": "json_schema", "json_schema": described })
    } else {
        let mut flat = described;
        flat["type"] = json!("json_schema");
        flat
    };
    by_schema(json!({ name: format }))
}

/// `text.format` of `/v1/responses`, which holds the schema beside its type.
pub(super) fn of_text() -> Field {
    let of = of_format("format", false);
    Field {
        json: json!({ "text": of.json }),
        ..of
    }
}
