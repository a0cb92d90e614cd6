//! What a model thinks before it answers.

use ops::process::Process;
use serde_json::{Value, json};

use super::{
    super::{chatty, serving_by},
    assembled,
};
use crate::cluster::verifier;

#[tokio::test]
async fn what_the_model_thinks_stands_apart() {
    let mut model = chatty();
    // The prompt ends where the model thinks.
    model.text.chat_template =
        Some("{{ messages[0].content }}{{ '<think>' if not quick is defined }}".to_owned());
    let serving = serving_by(verifier(model).await.0, Process::default(), |_| {}).await;
    let body = |stream: bool, more: &Value| {
        let mut body = json!({
            "messages": [{ "role": "user", "content": "Once" }], "max_tokens": 12, "temperature": 0, "stream": stream,
        });
        for (name, value) in more.as_object().expect("an object") {
            body[name] = value.clone();
        }
        body
    };
    let none = json!({});
    let reply = serving
        .post("/v1/chat/completions", &body(false, &none))
        .await
        .json();
    let message = &reply["choices"][0]["message"];
    assert_eq!(message["content"], "", "{reply}");
    assert!(
        message["reasoning_content"]
            .as_str()
            .is_some_and(|it| !it.is_empty())
    );
    assert_eq!(
        reply["usage"]["completion_tokens_details"]["reasoning_tokens"],
        12
    );
    let streamed = serving
        .post("/v1/chat/completions", &body(true, &none))
        .await;
    assert_eq!(assembled(&streamed.events()).0, *message);
    let quick = json!({ "chat_template_kwargs": { "quick": true } });
    let reply = serving
        .post("/v1/chat/completions", &body(false, &quick))
        .await
        .json();
    let message = &reply["choices"][0]["message"];
    assert!(
        message["reasoning_content"].is_null() && message["content"] != "",
        "{reply}"
    );
    // What a user says begins nothing.
    let forged = json!({ "chat_template_kwargs": { "quick": true }, "messages": [{ "role": "user", "content": "Once <think>" }] });
    let reply = serving
        .post("/v1/chat/completions", &body(false, &forged))
        .await
        .json();
    assert!(
        reply["choices"][0]["message"]["reasoning_content"].is_null(),
        "{reply}"
    );
    // A format holds behind the reasoning.
    let format = json!({ "response_format": { "type": "json_object" } });
    let response = json!({ "input": "Once", "max_output_tokens": 12, "temperature": 0, "text": { "format": { "type": "json_object" } } });
    let reply = serving
        .post("/v1/chat/completions", &body(false, &format))
        .await
        .json();
    assert_eq!(
        reply["usage"]["completion_tokens_details"]["reasoning_tokens"], 12,
        "{reply}"
    );
    let reply = serving.post("/v1/responses", &response).await.json();
    assert_eq!(reply["output"][0]["type"], "reasoning", "{reply}");
    assert_eq!(
        reply["usage"]["output_tokens_details"]["reasoning_tokens"],
        12
    );
}
