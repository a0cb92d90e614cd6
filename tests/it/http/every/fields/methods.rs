//! The fields of `speculation`.

use serde_json::{Value, json};
use speculation::methods::SettingValue;

use super::{Field, field};
use crate::client::With;

/// The settings of an object, by the names that they have over gRPC.
fn speculation(json: Value) -> Field {
    let given = json.clone();
    field(Value::from_iter([("speculation", json)]), move |request| {
        for (name, value) in given.as_object().expect("an object") {
            match (&name[..], value) {
                ("enabled", _) => "target-only".clone_into(&mut request.method),
                ("method", Value::String(method)) => method.clone_into(&mut request.method),
                (name, Value::String(text)) => request.set(name, text.as_str()),
                (name, Value::Bool(flag)) => request.set(name, *flag),
                (name, value) => {
                    let number = value.as_f64().expect("a number");
                    request.set(name, SettingValue::Number(number));
                }
            }
        }
    })
}

pub(super) fn fields() -> Vec<Field> {
    let settings = [
        json!({ "enabled": false }),
        json!({ "method": "lossy", "alpha": 0.25, "beta": 2.5 }),
        json!({ "method": "lossy", "alpha": 0.375, "beta": "tuned" }),
        json!({ "method": "lossy", "kl_budget": 0.125 }),
        json!({ "method": "spec-cascade", "rule": "token-v3", "alpha": 0.3 }),
        json!({ "method": "bild", "fallback": 0.4, "window": 5 }),
        json!({ "method": "bild", "verify_on_finish": true }),
        json!({ "method": "bild", "code_variant": true }),
        json!({ "method": "token-cascade", "max_run": 3 }),
        json!({ "method": "sequence-cascade", "mean": false }),
        json!({ "method": "sequence-cascade", "paper_defaults": true }),
        json!({ "plan": "target-only" }),
        json!({ "method": "rejection", "draft_len": 3, "target": "lossy", "alpha": 0.2 }),
        json!({ "method": "rejection", "draft_len": 3, "verification": "block" }),
        json!({ "method": "rejection", "draft_len": "3", "proposal": "sparse:5" }),
        json!({ "method": "rejection", "draft_len": 3, "accept_at": "coordinator" }),
        json!({ "drafting": "max-gram" }),
        json!({
            "drafting": "cascade",
            "cascade_k": "1+3/0+2",
            "cascade_lenience": 2,
            "cascade_max_gram_tokens": 3,
        }),
        json!({ "draft_len": 2 }),
        json!({ "draft_len": "auto", "draft_cap": 6 }),
        json!({ "draft_len": 4, "tree": "comb:3" }),
        json!({ "schedule": "stream" }),
    ];
    settings.map(speculation).into()
}
