//! What answers count and echo, against what gRPC tells of the same requests.

use serde_json::{Value, json};
use wire::v1::GenerateRequest;

use super::{Serving, serving};
use crate::client::{With, generate, request};

const PROMPTS: [&str; 2] = ["Once upon a time", "One day a girl found"];

async fn completion(serving: &Serving, body: Value) -> Value {
    let reply = serving.post("/v1/completions", &body).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

fn texts(answer: &Value) -> Vec<&str> {
    let choices = answer["choices"].as_array().expect("choices").iter();
    choices
        .map(|choice| choice["text"].as_str().expect("text"))
        .collect()
}

/// Two prompts of unlike lengths, two outputs of each.
#[tokio::test]
async fn each_prompt_is_counted_once_and_each_output_is_grpcs() {
    let serving = serving(|_| {}).await;
    let answer = completion(
        &serving,
        json!({ "prompt": PROMPTS, "n": 2, "max_tokens": 12, "temperature": 1, "seed": 5,
            "speculation": { "draft_len": 3 } }),
    )
    .await;
    let (mut expected, mut prompt_tokens) = (Vec::new(), 0);
    let [mut completion_tokens, mut steps, mut drafted, mut accepted] = [0_u32; 4];
    for prompt in PROMPTS {
        for choice in 0..2 {
            let same = GenerateRequest {
                choice,
                ..request(prompt, 12).seed(5).temperature(1.0).draft_len(3)
            };
            let alone = generate(&serving.coordinator, same).await;
            prompt_tokens += if choice == 0 {
                alone.started.prompt_tokens
            } else {
                0
            };
            completion_tokens += alone.tokens.len() as u32;
            let of = alone.statistics();
            steps += of.num_spec_steps;
            drafted += of.num_draft_tokens;
            accepted += of.num_accepted_draft_tokens;
            expected.push(alone.text);
        }
    }
    assert_eq!(texts(&answer), expected);
    let usage = &answer["usage"];
    assert_eq!(usage["prompt_tokens"], prompt_tokens);
    assert_eq!(usage["completion_tokens"], completion_tokens);
    assert_eq!(usage["total_tokens"], prompt_tokens + completion_tokens);
    let figures = &answer["metrics"]["speculative_decoding"];
    assert_eq!(figures["num_spec_steps"], steps);
    assert_eq!(figures["num_draft_tokens"], drafted);
    assert_eq!(figures["num_accepted_draft_tokens"], accepted);
    assert!(accepted > 0, "{figures}");
    let mean = 1.0 + f64::from(accepted) / f64::from(steps);
    assert_eq!(figures["mean_acceptance_length"], mean);
    let rate = f64::from(accepted) / f64::from(drafted);
    assert_eq!(figures["draft_acceptance_rate"], rate);
    assert_eq!(figures["fallback_reasons"], json!([]));
}

/// As llama.cpp tells them.
#[tokio::test]
async fn the_timings_are_those_of_the_first_output() {
    let serving = serving(|_| {}).await;
    let answer = completion(
        &serving,
        json!({ "prompt": PROMPTS, "max_tokens": 12, "seed": 5, "ignore_eos": true, "speculation": { "draft_len": 3 } }),
    )
    .await;
    let same = request(PROMPTS[0], 12).seed(5).draft_len(3).ignoring_eos();
    let alone = generate(&serving.coordinator, same).await;
    let timings = &answer["timings"];
    let number = |name: &str| timings[name].as_f64().expect(name);
    let of = alone.statistics();
    assert_ne!(of.num_draft_tokens, of.num_accepted_draft_tokens);
    assert_ne!(alone.started.prompt_tokens, 12);
    assert_eq!(timings["prompt_n"], alone.started.prompt_tokens);
    assert_eq!(timings["predicted_n"], 12);
    assert_eq!(timings["draft_n"], of.num_draft_tokens);
    assert_eq!(timings["draft_n_accepted"], of.num_accepted_draft_tokens);
    // The first token comes with the prompt's time.
    for (rate, tokens, ms) in [
        ("prompt_per_second", number("prompt_n"), number("prompt_ms")),
        ("predicted_per_second", 11.0, number("predicted_ms")),
    ] {
        let expected = tokens / ms * 1e3;
        assert!(
            ms > 0.0 && (number(rate) - expected).abs() < 1e-6 * expected,
            "{timings}"
        );
    }
}

/// Whole, the time of an answer that came at once is that of its prompt, and nothing is left for the rest.
#[tokio::test]
async fn one_token_takes_the_time_of_the_prompt() {
    let serving = serving(|_| {}).await;
    let body = json!({ "prompt": PROMPTS[0], "max_tokens": 1, "ignore_eos": true });
    let timings = completion(&serving, body).await["timings"].clone();
    let [prompt, rest] = ["prompt_ms", "predicted_ms"].map(|name| timings[name].as_f64());
    let (prompt, rest) = (prompt.expect("a time"), rest.expect("a time"));
    assert!(rest < prompt, "{timings}");
}

#[tokio::test]
async fn why_nothing_was_drafted_is_told() {
    let nobody = "http://127.0.0.1:9".to_owned();
    let serving = serving(|config| config.models[0].drafters = vec![nobody]).await;
    let body = json!({ "prompt": PROMPTS[0], "max_tokens": 4, "speculation": { "draft_len": 3 } });
    let answer = completion(&serving, body).await;
    let figures = &answer["metrics"]["speculative_decoding"];
    let [reason] = figures["fallback_reasons"]
        .as_array()
        .expect("reasons")
        .as_slice()
    else {
        panic!("one reason: {figures}");
    };
    let reason = reason.as_str().expect("a text");
    assert!(reason.contains("no drafter is reachable"), "{reason}");
    assert_eq!(figures["num_draft_tokens"], 0);
    assert_eq!(figures["draft_acceptance_rate"], Value::Null);
}

#[tokio::test]
async fn as_many_outputs_as_there_may_be_are_given() {
    let serving = serving(|_| {}).await;
    let body = |n: u32| json!({ "prompt": PROMPTS, "n": n, "max_tokens": 1 });
    let most = completion(&serving, body(64)).await;
    assert_eq!(most["choices"].as_array().map(Vec::len), Some(128));
    let more = serving.post("/v1/completions", &body(65)).await;
    more.refused(400, Some("n"));
}

#[tokio::test]
async fn the_seed_that_is_told_repeats_all_outputs_and_those_of_a_prompt_alone() {
    let serving = serving(|_| {}).await;
    let body = json!({ "prompt": PROMPTS, "n": 2, "max_tokens": 12, "temperature": 1 });
    let drawn = completion(&serving, body.clone()).await;
    let seed = &drawn["speculation"]["seed"];
    assert!(seed.is_u64(), "{drawn}");
    let mut again = body;
    again["seed"] = seed.clone();
    let again = completion(&serving, again).await;
    let all = texts(&drawn);
    assert_eq!(all, texts(&again));
    assert!(all[0] != all[1] && all[2] != all[3], "{all:?}");
    for (prompt, expected) in PROMPTS.iter().zip(all.chunks(2)) {
        let alone =
            json!({ "prompt": prompt, "n": 2, "max_tokens": 12, "temperature": 1, "seed": seed });
        assert_eq!(texts(&completion(&serving, alone).await), expected);
    }
}

#[tokio::test]
async fn pieces_say_that_their_usage_comes_last_where_it_is_asked_for() {
    let serving = serving(|_| {}).await;
    let chat = json!([{ "role": "user", "content": "Once upon a time" }]);
    for (path, input) in [
        ("/v1/completions", json!({ "prompt": "Once upon a time" })),
        ("/v1/chat/completions", json!({ "messages": chat })),
    ] {
        for is_wanted in [false, true] {
            let mut body = input.clone();
            body["max_tokens"] = json!(6);
            body["stream"] = json!(true);
            body["stream_options"] = json!({ "include_usage": is_wanted });
            let events = serving.post(path, &body).await.events();
            let (last, pieces) = events.split_last().expect("events");
            assert_eq!(last["usage"].is_object(), is_wanted, "{path}: {last}");
            assert!(!pieces.is_empty(), "{path}");
            // Who chose no usage is told all the same how the tokens were made.
            let end = if is_wanted {
                &pieces[pieces.len() - 1]
            } else {
                last
            };
            assert_eq!(end["choices"][0]["finish_reason"], "length");
            assert_eq!(end["speculation"]["method"], "coupled", "{path}: {end}");
            for piece in pieces {
                let usage = piece.get("usage");
                let expected = is_wanted.then_some(&Value::Null);
                assert_eq!(usage, expected, "{path}: {piece}");
            }
        }
    }
}

#[tokio::test]
async fn a_response_echoes_each_field_as_it_was_sent() {
    let serving = serving(|_| {}).await;
    let echoed = json!({
        "instructions": "Be brief.", "max_output_tokens": 17, "temperature": 0.25, "top_p": 0.75, "top_logprobs": 3,
        "user": "somebody",
    });
    let mut body = echoed.clone();
    body["input"] = json!("Once");
    let reply = serving.post("/v1/responses", &body).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let answer = reply.json();
    for (name, value) in echoed.as_object().expect("an object") {
        assert_eq!(&answer[name], value, "{name}: {answer}");
    }
}

/// Each field that may be refused behind the front, with a value that is.
#[tokio::test]
async fn every_refused_field_has_the_name_that_the_request_gave_it() {
    let serving = serving(|_| {}).await;
    let lossy = |more: Value| {
        let mut body = json!({ "speculation": { "method": "lossy" } });
        for (name, value) in more.as_object().expect("an object") {
            body["speculation"][name] = value.clone();
        }
        body
    };
    for (more, param) in [
        (json!({ "temperature": -1 }), "temperature"),
        (json!({ "top_p": 1.5 }), "top_p"),
        (json!({ "min_p": 2 }), "min_p"),
        (json!({ "repetition_penalty": 0 }), "repetition_penalty"),
        (json!({ "presence_penalty": 1e6 }), "presence_penalty"),
        (json!({ "frequency_penalty": 1e6 }), "frequency_penalty"),
        (json!({ "logit_bias": { "99999999": 1 } }), "logit_bias"),
        (
            json!({ "banned_token_ids": [99_999_999] }),
            "banned_token_ids",
        ),
        (
            json!({ "allowed_token_ids": [99_999_999] }),
            "allowed_token_ids",
        ),
        (json!({ "min_tokens": 99 }), "min_tokens"),
        (json!({ "stop_token_ids": [99_999_999] }), "stop_token_ids"),
        (json!({ "stop": [""] }), "stop"),
        (json!({ "user": "u".repeat(5000) }), "user"),
        (json!({ "logprobs": 21 }), "logprobs"),
        (
            json!({ "speculation": { "method": "guess" } }),
            "speculation.method",
        ),
        (
            json!({ "speculation": { "plan": "guess" } }),
            "speculation.plan",
        ),
        (
            json!({ "speculation": { "target": "guess" } }),
            "speculation.target",
        ),
        (
            json!({ "speculation": { "verification": "guess" } }),
            "speculation.verification",
        ),
        (
            json!({ "speculation": { "proposal": "guess" } }),
            "speculation.proposal",
        ),
        (
            json!({ "speculation": { "accept_at": "guess" } }),
            "speculation.accept_at",
        ),
        (
            json!({ "speculation": { "drafting": "guess" } }),
            "speculation.drafting",
        ),
        (
            json!({ "speculation": { "draft_len": 99 } }),
            "speculation.draft_len",
        ),
        (
            json!({ "speculation": { "tree": "comb:99" } }),
            "speculation.tree",
        ),
        (lossy(json!({ "kl_budget": -1 })), "speculation.kl_budget"),
        (lossy(json!({ "alpha": 2 })), "speculation.alpha"),
        (lossy(json!({ "beta": -1 })), "speculation.beta"),
        (lossy(json!({ "mean": "guess" })), "speculation.mean"),
        (
            json!({ "speculation": { "method": "spec-cascade", "rule": "guess" } }),
            "speculation.rule",
        ),
        (
            json!({ "speculation": { "method": "bild", "max_run": 0 } }),
            "speculation.max_run",
        ),
        (
            json!({ "speculation": { "method": "bild", "fallback": 7 } }),
            "speculation.fallback",
        ),
        (
            json!({ "speculation": { "method": "block-greedy", "window": 0 } }),
            "speculation.window",
        ),
    ] {
        let reply = serving.completion(more.clone()).await;
        assert_eq!(reply.status, 400, "{more}: {reply:?}");
        let error = &reply.json()["error"];
        assert_eq!(error["param"], param, "{more}: {error}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.starts_with(param), "{more}: {message}");
    }
}
