//! What of prompts was not computed anew, as answers tell it.

use serde_json::{Value, json};

use super::serving;
use crate::reuse::prompt;

#[tokio::test]
async fn cached_tokens_are_told_over_http() {
    let serving = serving(|_| {}).await;
    let body = |more: Value| {
        let mut body = json!({ "model": "default", "max_tokens": 4, "temperature": 0 });
        let own = body.as_object_mut().expect("an object");
        own.extend(more.as_object().expect("an object").clone());
        body
    };
    let asked = body(json!({ "prompt": prompt(2) }));
    let first = serving.post("/v1/completions", &asked).await.json();
    assert!(first["usage"]["prompt_tokens_details"].is_null(), "{first}");
    let second = serving.post("/v1/completions", &asked).await.json();
    let found = &second["usage"]["prompt_tokens_details"]["cached_tokens"];
    assert!(found.as_u64() >= Some(128), "{second}");
    assert_eq!(first["choices"][0]["text"], second["choices"][0]["text"]);
    let asked = json!({ "input": prompt(3), "max_output_tokens": 4, "temperature": 0 });
    let cached = async || {
        let mut answer = serving.post("/v1/responses", &asked).await.json();
        answer["usage"]["input_tokens_details"]["cached_tokens"].take()
    };
    assert_eq!(cached().await, 0);
    assert!(cached().await.as_u64() >= Some(64));
    let long = body(json!({ "prompt": "a", "cache_salt": "s".repeat(1 << 20) }));
    let refused = serving.post("/v1/completions", &long).await;
    let message = refused.refused(400, Some("cache_salt"));
    assert!(message.contains("256"), "{message}");
}
