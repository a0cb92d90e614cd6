//! `/openapi.json`: what the routes take and give, for tools that read such a description.
//!
//! The description is a file, `openapi.json`: requests are read field by field, so there are no types to derive it from.
//! The settings of `speculation` and the sampling parameters come from their tables.
//! A test here compares the fields of its requests with those that are read; `tests/clients` compares its answers, by
//! schemathesis, with those that are served.

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use speculation::methods::{Range, SETTINGS, Setting, SettingKind};
use speculation::sampling::SamplingParams;
use wire::sampling::{FIELDS, SamplingField, SamplingKind};

const FILE: &str = include_str!("openapi.json");

/// The whole description.
static DESCRIPTION: LazyLock<Bytes> = LazyLock::new(|| {
    let mut description: Value = serde_json::from_str(FILE).unwrap_or_default();
    let properties = &mut description["components"]["schemas"]["Speculation"]["properties"];
    for setting in SETTINGS {
        properties[setting.name] = schema(setting);
    }
    for request in ["CompletionRequest", "ChatRequest", "ResponseRequest"] {
        let properties = &mut description["components"]["schemas"][request]["properties"];
        for field in &FIELDS {
            properties[field.name] = of_sampling(field);
        }
    }
    description.to_string().into()
});

/// Returns the description.
pub(super) async fn describe() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], DESCRIPTION.clone())
}

/// Returns the schema of the values of `setting`.
fn schema(setting: &Setting) -> Value {
    let types: &[&str] = match setting.kind {
        SettingKind::Axis { .. } if setting.forms().contains(&"K") => &["integer", "string"],
        SettingKind::Axis { .. } => &["string"],
        SettingKind::Parameter { range, .. } => match range {
            Range::Number(..) | Range::NumberBelow(..) | Range::NumberOrNone(..) => &["number"],
            Range::Count(..) => &["integer"],
            Range::Flag => &["boolean"],
            Range::Rule(_) => &["string"],
            Range::Beta(..) => &["number", "string"],
        },
    };
    let or_null: Vec<_> = types.iter().chain(&["null"]).collect();
    let mut schema = json!({ "type": or_null, "description": setting.help });
    if types.contains(&"string") {
        schema["maxLength"] = json!(256);
    }
    schema
}

/// Returns the schema of the values of a sampling parameter.
fn of_sampling(field: &SamplingField) -> Value {
    let mut schema = match field.kind {
        SamplingKind::Number((least, most), _) => {
            json!({ "type": ["number", "null"], "minimum": least, "maximum": most })
        }
        SamplingKind::Count(most, _) => {
            // Other servers write -1 where nothing is to be cut.
            let least = if field.name == "top_k" { -1 } else { 0 };
            json!({ "type": ["integer", "null"], "minimum": least, "maximum": most })
        }
        SamplingKind::TokenIds(most, _) => {
            let id = json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
            json!({ "type": ["array", "null"], "items": id, "maxItems": most })
        }
        SamplingKind::Biases(most, _) => {
            let shift = SamplingParams::MAX_SHIFT;
            let bias = json!({ "type": "number", "minimum": -shift, "maximum": shift });
            json!({ "type": ["object", "null"], "additionalProperties": bias, "maxProperties": most })
        }
    };
    schema["description"] = match field.name {
        "top_k" => json!(format!("{}, as does -1", field.help)),
        _ => json!(field.help),
    };
    schema
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::front::http::fields::taken::taken;
    use crate::front::http::{chat, completions, responses};

    fn description() -> Value {
        serde_json::from_slice(&DESCRIPTION).expect("JSON")
    }

    /// The names of the properties of a schema, those of closed objects within it after a dot.
    fn properties(all: &Value, schema: &Value, path: &str, names: &mut BTreeSet<String>) {
        let referred = schema["$ref"].as_str();
        let schema = referred.map_or(schema, |reference| {
            &all["components"]["schemas"][reference.rsplit('/').next().unwrap_or_default()]
        });
        for inner in schema["anyOf"].as_array().into_iter().flatten() {
            properties(all, inner, path, names);
        }
        if schema["additionalProperties"] == false {
            for (name, inner) in schema["properties"].as_object().expect("properties") {
                names.insert(format!("{path}{name}"));
                properties(all, inner, &format!("{path}{name}."), names);
            }
        }
    }

    #[test]
    fn requests_take_the_fields_that_are_described_and_no_others() {
        let all = description();
        let message = json!([{ "role": "user", "content": "x" }]);
        let mut streamed = json!({ "stream": true, "stream_options": {}, "speculation": {} });
        streamed["prediction"] = json!({ "content": "x" });
        let with = |more: Value| {
            let mut body = streamed.clone();
            for (name, value) in more.as_object().expect("an object") {
                body[name] = value.clone();
            }
            body.to_string().into_bytes()
        };
        let (completion, chat_turn, response) = (
            with(json!({ "prompt": "x" })),
            with(json!({ "messages": message })),
            with(json!({ "input": "x", "text": {} })),
        );
        let read = [
            (
                "CompletionRequest",
                taken(|| completions::read(&completion).map(drop)),
            ),
            ("ChatRequest", taken(|| chat::read(&chat_turn).map(drop))),
            (
                "ResponseRequest",
                taken(|| responses::read(&response).map(drop)),
            ),
        ];
        for (name, (read, mut taken)) in read {
            assert_eq!(read, Ok(()), "{name}");
            let mut described = BTreeSet::new();
            properties(
                &all,
                &all["components"]["schemas"][name],
                "",
                &mut described,
            );
            // Messages have schemas of their own.
            taken.retain(|field| !field.starts_with("messages."));
            if name == "ResponseRequest" {
                // The reader looks for it only to say that its name is max_output_tokens.
                taken.remove("max_tokens");
            }
            assert_eq!(described, taken, "{name}");
        }
    }

    #[test]
    fn references_lead_somewhere_and_the_version_is_the_programs() {
        let all = description();
        assert_eq!(all["info"]["version"], env!("CARGO_PKG_VERSION"));
        for part in FILE.split("\"$ref\": \"#").skip(1) {
            let pointer = part.split('"').next().expect("a pointer");
            assert!(all.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
