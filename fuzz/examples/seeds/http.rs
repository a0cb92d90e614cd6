//! Writes seeds from recorded HTTP bodies and engine answers.

use std::path::Path;

use outrider_fuzz::input::{EngineAnswers, HttpBody};
use serde_json::{Value, json};

use crate::write_bytes;

/// Writes both.
pub fn write_all() {
    for (name, route, body) in bodies() {
        let mut named = HttpBody::ROUTES.iter().filter(|(_, path)| *path == route);
        let (byte, _) = named.next().expect("a route");
        let bytes = [&[*byte], body.to_string().as_bytes()].concat();
        write_bytes("http_bodies", name, &bytes);
    }
    for (name, route, files) in answers() {
        let answers: Vec<_> = files.iter().map(|file| recorded(file)).collect();
        write_bytes(
            "engine_answers",
            name,
            &EngineAnswers::write(route, &answers),
        );
    }
}

fn bodies() -> Vec<(&'static str, &'static str, Value)> {
    let (text, chat, responses) = ("/v1/completions", "/v1/chat/completions", "/v1/responses");
    let turns = json!([{ "role": "system", "content": "Be" }, { "role": "user", "content": [{ "type": "text", "text": "Hi" }] }]);
    vec![
        (
            "text",
            text,
            json!({ "prompt": "Once", "max_tokens": 8, "seed": 7 }),
        ),
        (
            "texts",
            text,
            json!({ "prompt": ["a", "b"], "n": 2, "max_tokens": 4, "stop": ["x", "yz"] }),
        ),
        (
            "ids",
            text,
            json!({ "prompt": [79, 110], "echo": true, "logprobs": 5, "max_tokens": 4 }),
        ),
        (
            "stream",
            text,
            json!({ "prompt": "a", "stream": true, "stream_options": { "include_usage": true }, "max_tokens": 6, "return_token_ids": true }),
        ),
        (
            "sampled",
            text,
            json!({ "prompt": "a", "temperature": 0.7, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "logit_bias": { "65": -1.5 },
                "presence_penalty": 0.5, "frequency_penalty": 0.5, "repetition_penalty": 1.1, "ignore_eos": true, "max_tokens": 5 }),
        ),
        (
            "speculation",
            text,
            json!({ "prompt": "a", "max_tokens": 6, "speculation": { "method": "block", "draft_len": 3 } }),
        ),
        (
            "chat",
            chat,
            json!({ "messages": turns, "max_tokens": 6, "logprobs": true, "top_logprobs": 3 }),
        ),
        (
            "chat-stream",
            chat,
            json!({ "messages": turns, "max_completion_tokens": 6, "stream": true, "n": 2 }),
        ),
        (
            "response",
            responses,
            json!({ "input": "Hi", "max_output_tokens": 6, "instructions": "Be" }),
        ),
        (
            "response-stream",
            responses,
            json!({ "input": turns, "max_output_tokens": 6, "stream": true, "store": false }),
        ),
        (
            "tokenize",
            "/tokenize",
            json!({ "prompt": "Once é", "add_special_tokens": true }),
        ),
        (
            "detokenize",
            "/detokenize",
            json!({ "tokens": [79, 195, 169] }),
        ),
    ]
}

/// Names, the route of the target that they answer, and the recorded answers.
fn answers() -> Vec<(&'static str, u8, Vec<&'static str>)> {
    vec![
        ("sglang-round", 0, vec!["sglang-round"]),
        (
            "sglang-round-of-two",
            1,
            vec!["sglang-round-of-two-sessions"],
        ),
        ("vllm-generate", 2, vec!["vllm-generate"]),
        (
            "vllm-given-tokens",
            3,
            vec!["vllm-generate-with-given-tokens"],
        ),
        ("vllm-completions", 4, vec!["vllm-completions"]),
        ("sglang-tokens", 5, vec!["sglang-round"]),
        (
            "sglang-probe",
            7,
            vec!["sglang-server_info", "sglang-an-id-out-of-range"],
        ),
        (
            "vllm-probe",
            8,
            vec!["vllm-version", "vllm-v1-models", "vllm-generate"],
        ),
    ]
}

/// An answer that `tests/engines/engine capture` recorded, as short as JSON can be.
fn recorded(name: &str) -> Vec<u8> {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../shared/engines/tests/recorded"
    );
    let file = std::fs::read(Path::new(folder).join(format!("{name}.json"))).expect(name);
    let recorded: Value = serde_json::from_slice(&file).expect("JSON");
    let body = recorded["said"].to_string().into_bytes();
    match recorded["status"].as_u64() {
        Some(200) => body,
        _ => [b"!", &body[..]].concat(),
    }
}
