//! How tokens are drawn, and when an output ends.

use serde_json::{Value, json};
use wire::v1::{LogitBias, SamplingParams};

use super::super::told::Told;
use super::{Field, field};
use crate::client::With;
use crate::cluster::target;

fn sampling(json: Value, set: impl Fn(&mut SamplingParams) + 'static) -> Field {
    field(json, move |request| {
        set(request.sampling.get_or_insert_default());
    })
}

fn bias(token_id: u32, bias: f32) -> LogitBias {
    LogitBias { token_id, bias }
}

/// What changes the distribution.
pub(super) fn fields(base: &Told) -> Vec<Field> {
    let tokens = &base.tokens[0];
    let (less, more) = (tokens[0].min(tokens[1]), tokens[0].max(tokens[1]));
    let first = tokens[0];
    let some: Vec<u32> = tokens.iter().copied().skip(1).step_by(2).collect();
    vec![
        sampling(json!({ "temperature": 0.25 }), |it| {
            it.temperature = Some(0.25);
        }),
        sampling(json!({ "top_p": 0.5 }), |it| it.top_p = Some(0.5)),
        sampling(json!({ "top_k": 3 }), |it| it.top_k = 3),
        sampling(json!({ "min_p": 0.375 }), |it| it.min_p = 0.375),
        sampling(json!({ "repetition_penalty": 1.5 }), |it| {
            it.repetition_penalty = Some(1.5);
        }),
        // Below 0 the two differ from the second time on that a token comes.
        sampling(json!({ "presence_penalty": -1.5 }), |it| {
            it.presence_penalty = -1.5;
        }),
        sampling(json!({ "frequency_penalty": -1.25 }), |it| {
            it.frequency_penalty = -1.25;
        }),
        sampling(
            json!({ "logit_bias": { less.to_string(): 2.5, more.to_string(): -3.5 } }),
            move |it| it.logit_bias = vec![bias(less, 2.5), bias(more, -3.5)],
        ),
        sampling(json!({ "banned_token_ids": [first] }), move |it| {
            it.banned_token_ids = vec![first];
        }),
        sampling(json!({ "allowed_token_ids": some }), move |it| {
            it.allowed_token_ids.clone_from(&some);
        }),
        field(json!({ "seed": 13 }), |request| request.seed = Some(13)),
    ]
}

/// What ends an output.
pub(super) fn ends(base: &Told) -> Vec<Field> {
    let stop = base.tokens[0][5];
    let eos = target().eos_token_ids[0];
    let text: String = base.texts[0].chars().skip(12).take(5).collect();
    let one = vec![text.clone()];
    let several = vec!["no such text".to_owned(), text.clone()];
    let likely = json!({ eos.to_string(): 50 });
    vec![
        field(json!({ "stop_token_ids": [stop] }), move |request| {
            request.stop_token_ids = vec![stop];
        }),
        field(
            json!({ "min_tokens": 9, "stop_token_ids": [stop] }),
            move |request| {
                request.sampling.get_or_insert_default().min_tokens = 9;
                request.stop_token_ids = vec![stop];
            },
        ),
        field(json!({ "stop": text }), move |request| {
            request.stop.clone_from(&one);
        }),
        field(json!({ "stop": several.clone() }), move |request| {
            request.stop.clone_from(&several);
        }),
        sampling(json!({ "logit_bias": likely.clone() }), move |it| {
            it.logit_bias = vec![bias(eos, 50.0)];
        }),
        field(
            json!({ "ignore_eos": true, "logit_bias": likely }),
            move |request| {
                request.ignore_eos = true;
                request.sampling.get_or_insert_default().logit_bias = vec![bias(eos, 50.0)];
            },
        ),
    ]
}

/// Many fields at once, no two of one value.
pub(super) fn together(base: &Told) -> Field {
    let tokens = &base.tokens[0];
    let (first, second, stop) = (tokens[0], tokens[1], tokens[5]);
    field(
        json!({
            "temperature": 0.75, "top_p": 0.9375, "top_k": 30, "min_p": 0.0625, "repetition_penalty": 1.125,
            "presence_penalty": 0.5, "frequency_penalty": 0.375, "seed": 11, "logit_bias": { second.to_string(): 1.5 },
            "banned_token_ids": [first], "stop_token_ids": [stop], "min_tokens": 2, "ignore_eos": true,
            "user": "somebody else", "speculation": { "draft_len": 5 },
        }),
        move |request| {
            request.sampling = Some(SamplingParams {
                temperature: Some(0.75),
                top_p: Some(0.9375),
                top_k: 30,
                min_p: 0.0625,
                repetition_penalty: Some(1.125),
                presence_penalty: 0.5,
                frequency_penalty: 0.375,
                logit_bias: vec![bias(second, 1.5)],
                banned_token_ids: vec![first],
                min_tokens: 2,
                ..Default::default()
            });
            (request.seed, request.ignore_eos) = (Some(11), true);
            request.stop_token_ids = vec![stop];
            request.set("draft_len", 5);
        },
    )
}
