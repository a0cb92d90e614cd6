use serde_json::Value;

use super::*;

fn read_json(value: &Value) -> Result<(v1::GenerateRequest, Delivery), BadField> {
    let body = value.to_string();
    let mut fields = JsonFields::of_body(body.as_bytes())?;
    let read = read(&mut fields)?;
    fields.finish()?;
    Ok(read)
}

#[test]
fn fields_come_to_what_a_grpc_client_would_send() {
    let (request, delivery) = read_json(&json!({
        "model": "m", "max_tokens": 7, "temperature": 0.5, "top_k": -1, "seed": -1, "stop": "x",
        "logit_bias": { "5": -100 }, "stream": true, "stream_options": { "include_usage": true }, "n": 2,
        "user": "u", "ignore_eos": null, "store": false,
        "speculation": { "method": "spec-cascade", "rule": "token-v3", "alpha": 0.3, "draft_len": 4 },
    }))
    .expect("in order");
    assert_eq!(
        (request.max_tokens, request.seed),
        (Some(7), Some(u64::MAX))
    );
    assert_eq!(request.stop, ["x"]);
    let expected = MethodSpec::new("spec-cascade")
        .with("rule", "token-v3")
        .with("alpha", 0.3)
        .with("draft_len", 4);
    assert_eq!(settings::from_wire(&request), Ok(expected));
    let sampling = request.sampling.expect("sampling");
    assert_eq!((sampling.temperature, sampling.top_k), (Some(0.5), 0));
    let bias = v1::LogitBias {
        token_id: 5,
        bias: -100.0,
    };
    assert_eq!(sampling.logit_bias, [bias]);
    assert!(delivery.stream && delivery.include_usage && !delivery.continuous_usage);
    assert_eq!((delivery.choices, &request.tenant[..]), (2, "u"));
    let (off, _) = read_json(&json!({ "speculation": { "enabled": false } })).expect("off");
    assert_eq!(off.method, "target-only");
}

/// No two fields have the same value, and none its default: one in another's place is noticed.
#[test]
fn each_field_is_its_own() {
    let (request, delivery) = read_json(&json!({
        "model": "m", "max_tokens": 11, "temperature": 0.25, "top_p": 0.5, "top_k": 12, "min_p": 0.125,
        "repetition_penalty": 1.5, "presence_penalty": 1.25, "frequency_penalty": 1.75, "seed": 13,
        "logit_bias": { "14": 2.5, "15": -3.5 }, "banned_token_ids": [16], "allowed_token_ids": [17, 18],
        "min_tokens": 2, "stop": ["s", "t"], "stop_token_ids": [19, 20], "ignore_eos": true, "user": "u", "n": 3,
        "return_token_ids": true, "stream": true, "stream_options": { "continuous_usage_stats": true },
    }))
    .expect("in order");
    let bias = |token_id, bias| v1::LogitBias { token_id, bias };
    let expected = v1::GenerateRequest {
        model: "m".to_owned(),
        max_tokens: Some(11),
        sampling: Some(v1::SamplingParams {
            temperature: Some(0.25),
            top_p: Some(0.5),
            top_k: 12,
            min_p: 0.125,
            repetition_penalty: Some(1.5),
            presence_penalty: 1.25,
            frequency_penalty: 1.75,
            logit_bias: vec![bias(14, 2.5), bias(15, -3.5)],
            banned_token_ids: vec![16],
            allowed_token_ids: vec![17, 18],
            min_tokens: 2,
            grammar: None,
        }),
        seed: Some(13),
        stop: vec!["s".to_owned(), "t".to_owned()],
        stop_token_ids: vec![19, 20],
        ignore_eos: true,
        tenant: "u".to_owned(),
        ..Default::default()
    };
    assert_eq!(request, expected);
    assert!(delivery.stream && delivery.token_ids && delivery.continuous_usage);
    assert!(!delivery.include_usage);
    assert_eq!(delivery.choices, 3);
}

#[test]
fn what_is_wrong_is_named() {
    for (value, field) in [
        (json!({ "temperature": "hot" }), "temperature"),
        (json!({ "n": 0 }), "n"),
        (json!({ "top_k": -2 }), "top_k"),
        (json!({ "logit_bias": { "a": 1 } }), "logit_bias"),
        // Another name of a token that may stand beside it.
        (json!({ "logit_bias": { "5": 1, "05": 2 } }), "logit_bias"),
        (json!({ "logit_bias": { "+5": 1 } }), "logit_bias"),
        (json!({ "stop": ["a", 3] }), "stop"),
        (json!({ "stop": 3 }), "stop"),
        (json!({ "stream_options": {} }), "stream_options"),
        (
            json!({ "stream": true, "stream_options": { "x": 1 } }),
            "stream_options.x",
        ),
        (json!({ "best_of": 3 }), "best_of"),
        (
            json!({ "speculation": { "depth": 3 } }),
            "speculation.depth",
        ),
        (
            json!({ "speculation": { "tree": "bush" } }),
            "speculation.tree",
        ),
        (
            json!({ "speculation": { "enabled": false, "method": "block" } }),
            "speculation.enabled",
        ),
    ] {
        assert_eq!(read_json(&value).expect_err(field).field, field);
    }
}

/// Clients send these to every server, most of them unasked.
#[test]
fn hints_are_taken_whatever_they_hold() {
    let (request, _) = read_json(&json!({
        "store": true, "metadata": { "a": "b" }, "service_tier": "flex",
        "prompt_cache_key": "k", "prompt_cache_retention": "24h",
        "client_metadata": { "c": 1 }, "safety_identifier": "s",
    }))
    .expect("in order");
    assert_eq!(request, read_json(&json!({})).expect("empty").0);
}

#[test]
fn what_is_reused_can_be_parted_and_switched_off() {
    let (request, _) =
        read_json(&json!({ "cache_salt": "s", "cache_prompt": false })).expect("in order");
    assert_eq!(
        (&request.cache_salt[..], request.cache_prompt),
        ("s", Some(false))
    );
    for (name, value) in [("cache_salt", json!(1)), ("cache_prompt", json!("no"))] {
        assert_eq!(
            read_json(&json!({ name: value })).expect_err(name).field,
            name
        );
    }
}

#[test]
fn a_prediction_is_a_text_or_parts_of_text() {
    let read = |prediction: Value| read_json(&json!({ "prediction": prediction }));
    let parts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
    for (content, text) in [(json!("a b"), "a b"), (parts, "a\nb"), (json!(""), "")] {
        let (request, _) = read(json!({ "type": "content", "content": content })).expect(text);
        assert_eq!(request.prediction, text);
    }
    assert_eq!(read(json!(null)).expect("none").0.prediction, "");
    for (prediction, field) in [
        (json!("a"), "prediction"),
        (json!({ "type": "content" }), "prediction.content"),
        (json!({ "type": "file", "content": "a" }), "prediction.type"),
        (json!({ "content": 3 }), "prediction.content"),
        (
            json!({ "content": [{ "type": "image" }] }),
            "prediction.content.0.type",
        ),
        (
            json!({ "content": "a", "contents": "b" }),
            "prediction.contents",
        ),
    ] {
        assert_eq!(read(prediction).expect_err(field).field, field);
    }
}

#[test]
fn a_seed_that_an_answer_tells_can_be_sent_again() {
    for seed in [0, 5, u64::MAX - 4, u64::MAX] {
        let (request, _) = read_json(&json!({ "seed": seed })).expect("unsigned");
        assert_eq!(request.seed, Some(seed));
    }
    let (request, _) =
        read_json(&json!({ "seed": -5, "max_tokens": 5.0, "n": 2.0 })).expect("signed");
    assert_eq!(
        (request.seed, request.max_tokens),
        (Some(u64::MAX - 4), Some(5))
    );
}

#[test]
fn a_top_p_of_nothing_leaves_the_most_likely_token() {
    for body in [json!({ "top_p": 0 }), json!({ "top_p": 0.0, "top_k": 40 })] {
        let sampling = read_json(&body).expect("in order").0.sampling;
        let sampling = sampling.expect("sampling");
        assert_eq!((sampling.top_p, sampling.top_k), (None, 1));
    }
}

#[test]
fn whole_numbers_may_be_written_as_floats_everywhere() {
    let (request, _) = read_json(&json!({
        "top_k": 40.0, "min_tokens": 1.0, "stop_token_ids": [7.0], "speculation": { "draft_len": 4.0 },
    }))
    .expect("in order");
    let sampling = request.sampling.as_ref().expect("sampling");
    assert_eq!((sampling.top_k, sampling.min_tokens), (40, 1));
    assert_eq!(request.stop_token_ids, [7]);
    let expected = MethodSpec::default().with("draft_len", 4);
    assert_eq!(settings::from_wire(&request), Ok(expected));
    let capped = json!({ "speculation": { "draft_len": "auto", "draft_cap": 9.0 } });
    assert!(read_json(&capped).is_ok());
    let half = read_json(&json!({ "speculation": { "draft_len": 4.5 } })).expect_err("a half");
    assert_eq!(half.field, "speculation.draft_len");
}
