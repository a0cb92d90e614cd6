//! Answers: the same tokens as over gRPC, whole and as events.

use ops::config::Switch;
use serde_json::{Value, json};

use wire::v1;
use wire::v1::generate_request::Prompt;

use super::serving;
use crate::client::{With, generate, request};

/// The texts of the events of output `index`, put together.
fn streamed(events: &[Value], index: u64, text: impl Fn(&Value) -> Option<&str>) -> String {
    let choices = events
        .iter()
        .flat_map(|event| event["choices"].as_array().expect("choices"));
    let own = choices.filter(|choice| choice["index"] == index);
    own.filter_map(text).collect()
}

#[tokio::test]
async fn completions_are_those_of_grpc_whole_and_as_events() {
    let serving = serving(|_| {}).await;
    for temperature in [0.0, 1.0] {
        let same = request("Once upon a time", 24)
            .seed(7)
            .temperature(temperature);
        let expected = generate(&serving.coordinator, same).await;
        let whole = serving
            .completion(json!({ "temperature": temperature }))
            .await;
        assert_eq!(whole.status, 200, "{whole:?}");
        let answer = whole.json();
        assert_eq!(answer["choices"][0]["text"], expected.text);
        assert_eq!(answer["choices"][0]["finish_reason"], "length");
        assert_eq!(answer["object"], "text_completion");
        let usage = &answer["usage"];
        assert_eq!(usage["prompt_tokens"], expected.started.prompt_tokens);
        assert_eq!(usage["completion_tokens"], 24);
        let of_drafts = expected.statistics().num_accepted_draft_tokens;
        let spec = &answer["metrics"]["speculative_decoding"];
        assert_eq!(spec["num_accepted_draft_tokens"], of_drafts);
        assert_eq!(answer["timings"]["draft_n_accepted"], of_drafts);
        assert_eq!(answer["speculation"]["method"], "coupled");

        let stream = json!({ "temperature": temperature, "stream": true, "stream_options": { "include_usage": true } });
        let stream = serving.completion(stream).await;
        assert!(
            stream.headers.contains("content-type: text/event-stream"),
            "{stream:?}"
        );
        assert!(
            stream.body.trim_end().ends_with("data: [DONE]"),
            "{stream:?}"
        );
        let events = stream.events();
        assert_eq!(
            streamed(&events, 0, |choice| choice["text"].as_str()),
            expected.text
        );
        let last = events.last().expect("events");
        assert_eq!(last["choices"], json!([]));
        assert_eq!(last["usage"]["completion_tokens"], 24);
        assert!(events.iter().all(|event| event["id"] == events[0]["id"]));
    }
}

#[tokio::test]
async fn several_prompts_and_choices_are_told_apart() {
    let serving = serving(|_| {}).await;
    let two = json!({ "prompt": ["Once upon a time", "The king"], "n": 2, "echo": true });
    let whole = serving.completion(two.clone()).await.json();
    let choices = whole["choices"].as_array().expect("choices");
    assert_eq!(choices.len(), 4);
    let texts: Vec<_> = choices
        .iter()
        .map(|choice| choice["text"].as_str().expect("text"))
        .collect();
    assert!(texts[0].starts_with("Once upon a time") && texts[1].starts_with("Once upon a time"));
    assert_ne!(texts[0], texts[1], "choices differ");
    for choice in 0..2 {
        let mut same = request("Once upon a time", 24).seed(7);
        same.choice = choice;
        let expected = generate(&serving.coordinator, same).await;
        assert_eq!(
            texts[choice as usize],
            format!("Once upon a time{}", expected.text)
        );
    }
    assert_eq!(whole["usage"]["completion_tokens"], 96);
    let mut two = two;
    two["stream"] = json!(true);
    let events = serving.completion(two).await.events();
    for (index, text) in texts.iter().enumerate() {
        let found = streamed(&events, index as u64, |choice| choice["text"].as_str());
        assert_eq!(found, *text);
    }
}

#[tokio::test]
async fn log_probabilities_come_in_both_forms() {
    let serving = serving(|_| {}).await;
    let mut same = request("Once upon a time", 24).seed(7);
    (same.logprobs, same.top_logprobs) = (true, 3);
    let expected = generate(&serving.coordinator, same).await;
    let whole = serving.completion(json!({ "logprobs": 3 })).await.json();
    let logprobs = &whole["choices"][0]["logprobs"];
    let of_tokens = logprobs["token_logprobs"].as_array().expect("numbers");
    assert_eq!(of_tokens.len(), 24);
    let text = whole["choices"][0]["text"].as_str().expect("text");
    for (at, expected) in expected.logprobs.iter().enumerate() {
        assert_eq!(
            of_tokens[at].as_f64().map(|it| it as f32),
            Some(expected.logprob)
        );
        let top = logprobs["top_logprobs"][at].as_object().expect("an object");
        assert!((3..=4).contains(&top.len()), "{top:?}");
        let token = logprobs["tokens"][at].as_str().expect("a text");
        let offset = logprobs["text_offset"][at].as_u64().expect("an offset");
        let from: String = text.chars().skip(offset as usize).collect();
        assert!(from.starts_with(token), "{token:?} at {offset} of {text:?}");
    }
    let stream = serving
        .completion(json!({ "logprobs": 3, "stream": true }))
        .await
        .events();
    let of_stream: Vec<_> = stream
        .iter()
        .filter_map(|event| event["choices"][0]["logprobs"]["token_logprobs"].as_array())
        .flatten()
        .cloned()
        .collect();
    assert_eq!(&of_stream, of_tokens);

    let chat = json!({
        "messages": [{ "role": "user", "content": "Once upon a time" }],
        "max_completion_tokens": 24, "seed": 7, "logprobs": true, "top_logprobs": 2,
    });
    let chat = serving.post("/v1/chat/completions", &chat).await.json();
    let content = chat["choices"][0]["logprobs"]["content"]
        .as_array()
        .expect("tokens");
    assert_eq!(content.len(), 24);
    for (token, expected) in content.iter().zip(&expected.logprobs) {
        assert_eq!(
            token["logprob"].as_f64().map(|it| it as f32),
            Some(expected.logprob)
        );
        assert_eq!(token["top_logprobs"].as_array().map(Vec::len), Some(2));
    }
}

#[tokio::test]
async fn the_ids_of_tokens_come_where_they_are_wanted() {
    let serving = serving(|_| {}).await;
    let expected = generate(
        &serving.coordinator,
        request("Once upon a time", 24).seed(7),
    )
    .await;
    let wanted = |stream: bool| json!({ "return_token_ids": true, "stream": stream });
    let whole = serving.completion(wanted(false)).await.json();
    assert_eq!(whole["choices"][0]["token_ids"], json!(expected.tokens));
    let events = serving.completion(wanted(true)).await.events();
    let ids = events
        .iter()
        .filter_map(|event| event["choices"][0]["token_ids"].as_array());
    let ids: Vec<_> = ids.flatten().cloned().collect();
    assert_eq!(json!(ids), json!(expected.tokens));
    let silent = serving.completion(json!({})).await.json();
    assert!(silent["choices"][0].get("token_ids").is_none());
}

#[tokio::test]
async fn an_echoed_prompt_comes_with_its_log_probabilities() {
    let serving = serving(|_| {}).await;
    let mut same = request("", 3).seed(7);
    let prompt: Vec<u32> = (0..70).map(|at| 60 + at * 31 % 900).collect();
    let ids = v1::TokenIds {
        ids: prompt.clone(),
    };
    same.prompt = Some(Prompt::TokenIds(ids));
    (same.logprobs, same.top_logprobs, same.prompt_logprobs) = (true, 1, true);
    let expected = generate(&serving.coordinator, same).await;
    let both = [&expected.prompt_logprobs[..], &expected.logprobs].concat();
    let body = json!({ "prompt": [prompt], "max_tokens": 3, "logprobs": 1, "echo": true });
    let whole = serving.completion(body.clone()).await.json();
    let choice = &whole["choices"][0];
    let of_tokens = choice["logprobs"]["token_logprobs"].as_array();
    let of_tokens = of_tokens.expect("numbers");
    assert_eq!(of_tokens.len(), 73);
    assert!(of_tokens[0].is_null() && choice["logprobs"]["top_logprobs"][0].is_null());
    for (found, expected) in of_tokens[1..].iter().zip(&both) {
        assert_eq!(
            found.as_f64().map(|found| found as f32),
            Some(expected.logprob)
        );
    }
    let text = choice["text"].as_str().expect("text");
    assert!(text.ends_with(&expected.text) && text.len() > expected.text.len());
    let offsets = choice["logprobs"]["text_offset"].as_array();
    let offsets: Vec<_> = offsets
        .expect("offsets")
        .iter()
        .map(Value::as_u64)
        .collect();
    assert_eq!(offsets[0], Some(0));
    assert!(offsets.is_sorted() && offsets[72] < Some(text.chars().count() as u64));

    let mut body = body;
    body["stream"] = json!(true);
    let events = serving.completion(body).await.events();
    let found = streamed(&events, 0, |choice| choice["text"].as_str());
    assert_eq!(found, text);
    for (name, whole) in [
        ("token_logprobs", &choice["logprobs"]["token_logprobs"]),
        ("text_offset", &choice["logprobs"]["text_offset"]),
    ] {
        let of_stream = events
            .iter()
            .filter_map(|event| event["choices"][0]["logprobs"][name].as_array());
        let of_stream: Vec<_> = of_stream.flatten().cloned().collect();
        assert_eq!(json!(of_stream), *whole, "{name}");
    }
    // A request may ask for no output.
    let none =
        json!({ "prompt": "Once upon a time", "max_tokens": 0, "logprobs": 0, "echo": true });
    let none = serving.completion(none).await.json();
    assert_eq!(none["choices"][0]["text"], "Once upon a time");
    assert_eq!(none["choices"][0]["finish_reason"], "length");
    assert_eq!(none["usage"]["completion_tokens"], 0);
}

#[tokio::test]
async fn a_chat_goes_through_the_template() {
    let serving = serving(|_| {}).await;
    let chat = |stream: bool| {
        json!({
            "messages": [
                { "role": "system", "content": "Once upon " },
                { "role": "user", "content": [{ "type": "text", "text": "a time" }] },
            ],
            "max_tokens": 24, "seed": 7, "temperature": 1, "stream": stream, "user": "somebody",
        })
    };
    // The template makes of it what the tokenizer makes of the text.
    let expected = generate(
        &serving.coordinator,
        request("Once upon a time", 24).seed(7),
    )
    .await;
    let whole = serving
        .post("/v1/chat/completions", &chat(false))
        .await
        .json();
    let message = &whole["choices"][0]["message"];
    assert_eq!(message["content"], expected.text);
    assert_eq!(
        (&message["role"], &whole["object"]),
        (&json!("assistant"), &json!("chat.completion"))
    );
    let events = serving
        .post("/v1/chat/completions", &chat(true))
        .await
        .events();
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    let text = streamed(&events, 0, |choice| choice["delta"]["content"].as_str());
    assert_eq!(text, expected.text);
    let last = events.last().expect("events");
    assert_eq!(last["choices"][0]["finish_reason"], "length");
    assert!(last["usage"].is_null(), "nobody asked for it");
}

#[tokio::test]
async fn a_method_is_chosen_per_request_and_told() {
    let serving = serving(|_| {}).await;
    let cascade =
        json!({ "speculation": { "method": "spec-cascade", "rule": "token-v3", "alpha": 0.3 } });
    let answer = serving.completion(cascade).await.json();
    assert_eq!(answer["speculation"]["method"], "spec-cascade");
    assert_eq!(answer["speculation"]["settings"]["alpha"], "0.3");
    assert_eq!(answer["speculation"]["lossless"], false);
    let off = json!({ "speculation": { "enabled": false } });
    let off = serving.completion(off).await.json();
    assert_eq!(off["speculation"]["method"], "target-only");
    let on = serving
        .completion(json!({ "speculation": { "draft_len": 3 } }))
        .await
        .json();
    assert_eq!(off["choices"], on["choices"]);
    assert!(on["timings"]["draft_n"].as_u64() > Some(0));
}

#[tokio::test]
async fn models_tokens_and_states_are_told() {
    let serving = serving(|config| config.http.any_model = Switch::Off).await;
    let models = serving.get("/v1/models").await.json();
    assert_eq!(models["data"][0]["id"], "default");
    assert_eq!(
        serving.get("/v1/models/default").await.json()["object"],
        "model"
    );
    let tokens = json!({ "prompt": "Once upon a time" });
    let tokens = serving.post("/tokenize", &tokens).await.json();
    let count = tokens["count"].as_u64().expect("a number");
    assert_eq!(
        tokens["tokens"].as_array().map(|all| all.len() as u64),
        Some(count)
    );
    let text = json!({ "tokens": tokens["tokens"] });
    let text = serving.post("/detokenize", &text).await.json();
    assert_eq!(text["prompt"], "Once upon a time");
    let info = serving.get("/tokenizer_info?model=default").await.json();
    assert_eq!(info["chat_template"], super::TEMPLATE);
    let end = json!({ "prompt": info["eos_token"], "add_special_tokens": false });
    let end = serving.post("/tokenize", &end).await.json();
    assert_eq!(end["count"], 1, "{info}");
    let other = serving.get("/tokenizer_info?model=other").await;
    other.refused(404, Some("model"));
    for path in ["/health", "/ready"] {
        assert_eq!(serving.get(path).await.status, 200, "{path}");
    }
    assert!(serving.get("/version").await.json()["version"].is_string());
}
