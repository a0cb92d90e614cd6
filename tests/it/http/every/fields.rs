//! The table: each field as JSON has it, and as gRPC does.

use serde_json::{Value, json};
use speculation::verification::Verification;
use wire::v1::draft_length::Policy;
use wire::v1::tree_shape::Shape;
use wire::v1::{
    AcceptAt, DraftLength, Drafting, GenerateRequest, LogitBias, MethodParameters, Plan,
    ProposalForm, SamplingParams, TargetDistribution, TreeShape, target_distribution,
};

use super::told::Told;
use crate::client::With;
use crate::cluster::target;

/// Some fields of a request together.
pub(crate) struct Field {
    pub(crate) json: Value,
    /// Sets the same fields.
    pub(crate) set: Box<dyn Fn(&mut GenerateRequest)>,
    /// Whether the answer to [`super::plain`] is another one with them.
    pub(crate) changes: bool,
    pub(crate) shows: Shows,
}

/// What is told of tokens beside their text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shows {
    pub(crate) tokens: bool,
    pub(crate) logprobs: bool,
}

fn field(json: Value, set: impl Fn(&mut GenerateRequest) + 'static) -> Field {
    Field {
        json,
        set: Box::new(set),
        changes: true,
        shows: Shows::default(),
    }
}

/// Fields that change nothing.
fn idle(json: Value) -> Field {
    Field {
        changes: false,
        ..field(json, |_| {})
    }
}

fn sampling(json: Value, set: impl Fn(&mut SamplingParams) + 'static) -> Field {
    field(json, move |request| {
        set(request.sampling.get_or_insert_default());
    })
}

/// A field of `speculation` and what it needs beside it.
fn speculation(json: Value, set: impl Fn(&mut GenerateRequest) + 'static) -> Field {
    field(json!({ "speculation": json }), set)
}

/// A method with these parameters.
fn method(name: &'static str, json: Value, set: impl Fn(&mut MethodParameters) + 'static) -> Field {
    let mut named = json;
    named["method"] = json!(name);
    speculation(named, move |request| {
        name.clone_into(&mut request.method);
        set(request.parameters.get_or_insert_default());
    })
}

/// The fields of all routes; `base` is the answer without any of them.
pub(crate) fn common(base: &Told) -> Vec<Field> {
    let tokens = &base.tokens[0];
    let (first, second, stop) = (tokens[0], tokens[1], tokens[5]);
    let some: Vec<u32> = tokens.iter().copied().skip(1).step_by(2).collect();
    let eos = target().eos_token_ids[0];
    let bias = |token_id, bias| LogitBias { token_id, bias };
    let text: String = base.texts[0].chars().skip(12).take(5).collect();
    let (allowed, named, texts) = (some.clone(), text.clone(), vec![text.clone()]);
    let unlike = vec![bias(first.min(second), 2.5), bias(first.max(second), -3.5)];
    let biased =
        json!({ (first.min(second)).to_string(): 2.5, (first.max(second)).to_string(): -3.5 });
    let mut fields = vec![
        sampling(json!({ "temperature": 0.25 }), |it| {
            it.temperature = Some(0.25)
        }),
        sampling(json!({ "top_p": 0.5 }), |it| it.top_p = Some(0.5)),
        sampling(json!({ "top_k": 3 }), |it| it.top_k = 3),
        sampling(json!({ "min_p": 0.375 }), |it| it.min_p = 0.375),
        sampling(json!({ "repetition_penalty": 1.5 }), |it| {
            it.repetition_penalty = Some(1.5)
        }),
        sampling(json!({ "presence_penalty": -1.5 }), |it| {
            it.presence_penalty = -1.5
        }),
        sampling(json!({ "frequency_penalty": -1.25 }), |it| {
            it.frequency_penalty = -1.25
        }),
        sampling(json!({ "logit_bias": biased }), move |it| {
            it.logit_bias.clone_from(&unlike)
        }),
        sampling(json!({ "banned_token_ids": [first] }), move |it| {
            it.banned_token_ids = vec![first]
        }),
        sampling(json!({ "allowed_token_ids": some }), move |it| {
            it.allowed_token_ids.clone_from(&allowed);
        }),
        field(
            json!({ "min_tokens": 9, "stop_token_ids": [stop] }),
            move |request| {
                request.sampling.get_or_insert_default().min_tokens = 9;
                request.stop_token_ids = vec![stop];
            },
        ),
        field(json!({ "stop_token_ids": [stop] }), move |request| {
            request.stop_token_ids = vec![stop]
        }),
        field(json!({ "stop": named }), move |request| {
            request.stop.clone_from(&texts)
        }),
        field(json!({ "stop": ["no such text", text] }), move |request| {
            request.stop = vec!["no such text".to_owned(), text.clone()];
        }),
        field(
            json!({ "logit_bias": { eos.to_string(): 50 } }),
            move |request| {
                request.sampling.get_or_insert_default().logit_bias = vec![bias(eos, 50.0)];
            },
        ),
        field(
            json!({ "ignore_eos": true, "logit_bias": { eos.to_string(): 50 } }),
            move |request| {
                request.ignore_eos = true;
                request.sampling.get_or_insert_default().logit_bias = vec![bias(eos, 50.0)];
            },
        ),
        field(json!({ "seed": 13 }), |request| request.seed = Some(13)),
        field(
            json!({ "model": "other", "user": "somebody", "n": 1 }),
            |request| {
                "other".clone_into(&mut request.model);
                "somebody".clone_into(&mut request.tenant);
            },
        ),
        field(
            json!({
                "temperature": 0.75, "top_p": 0.9375, "top_k": 30, "min_p": 0.0078125, "repetition_penalty": 1.125,
                "presence_penalty": 0.5, "frequency_penalty": 0.375, "seed": 11, "logit_bias": { second.to_string(): 1.5 },
                "banned_token_ids": [first], "stop_token_ids": [stop], "min_tokens": 2, "ignore_eos": true,
                "user": "somebody else", "speculation": { "draft_len": 5 },
            }),
            move |request| {
                request.sampling = Some(SamplingParams {
                    temperature: Some(0.75),
                    top_p: Some(0.9375),
                    top_k: 30,
                    min_p: 0.0078125,
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
                request.draft_len = Some(5);
            },
        ),
        // Whatever they hold.
        idle(json!({
            "cache_prompt": true, "client_metadata": { "a": 1 }, "metadata": { "b": "c" }, "prompt_cache_key": "k",
            "prediction": { "type": "content", "content": "x" }, "prompt_cache_options": {}, "service_tier": "flex",
            "prompt_cache_retention": "24h", "reasoning_effort": "low", "safety_identifier": "s", "store": true,
        })),
        // As they are anyway.
        idle(json!({
            "include_stop_str_in_output": false, "length_penalty": 1.0, "priority": 0, "skip_special_tokens": true,
            "spaces_between_special_tokens": true, "use_beam_search": false, "return_token_ids": false,
        })),
    ];
    // The name of the served model is told as it is configured, and the tenant is not.
    fields[17].changes = false;
    fields.extend(methods());
    fields
}

/// The fields of `speculation`.
fn methods() -> Vec<Field> {
    let rejection = |request: GenerateRequest| request.method("rejection").draft_len(3);
    vec![
        speculation(json!({ "enabled": false }), |request| {
            "target-only".clone_into(&mut request.method)
        }),
        method("lossy", json!({ "alpha": 0.25, "beta": 2.5 }), |it| {
            (it.alpha, it.beta) = (Some(0.25), Some(2.5));
        }),
        method("lossy", json!({ "alpha": 0.375, "beta": "tuned" }), |it| {
            (it.alpha, it.beta_tuned) = (Some(0.375), true);
        }),
        method("lossy", json!({ "kl_budget": 0.125 }), |it| {
            it.kl_budget = Some(0.125)
        }),
        method(
            "spec-cascade",
            json!({ "rule": "token-v3", "alpha": 0.3 }),
            |it| {
                (it.rule, it.alpha) = (Some("token-v3".to_owned()), Some(0.3));
            },
        ),
        method("bild", json!({ "fallback": 0.4, "window": 5 }), |it| {
            (it.fallback, it.window) = (Some(0.4), Some(5));
        }),
        method("bild", json!({ "verify_on_finish": true }), |it| {
            it.verify_on_finish = Some(true)
        }),
        method("bild", json!({ "code_variant": true }), |it| {
            it.code_variant = Some(true)
        }),
        method("token-cascade", json!({ "max_run": 3 }), |it| {
            it.max_run = Some(3)
        }),
        method("sequence-cascade", json!({ "mean": false }), |it| {
            it.mean = Some(false)
        }),
        speculation(json!({ "plan": "target-only" }), |request| {
            request.plan = Plan::TargetOnly.into()
        }),
        speculation(
            json!({ "method": "rejection", "draft_len": 3, "target": "lossy", "alpha": 0.2 }),
            move |request| {
                *request = rejection(std::mem::take(request));
                request.target = Some(TargetDistribution {
                    kind: target_distribution::Kind::Lossy.into(),
                    ..Default::default()
                });
                request.parameters.get_or_insert_default().alpha = Some(0.2);
            },
        ),
        speculation(
            json!({ "method": "rejection", "draft_len": 3, "verification": "block" }),
            move |request| {
                *request = rejection(std::mem::take(request));
                request.verification = Verification::BLOCK.wire;
            },
        ),
        speculation(
            json!({ "method": "rejection", "draft_len": "3", "proposal": "sparse:5" }),
            move |request| {
                *request = rejection(std::mem::take(request));
                (request.proposal_form, request.proposal_top) = (ProposalForm::Sparse.into(), 5);
            },
        ),
        speculation(
            json!({ "method": "rejection", "draft_len": 3, "accept_at": "coordinator" }),
            move |request| {
                *request = rejection(std::mem::take(request));
                request.accept_at = AcceptAt::Coordinator.into();
            },
        ),
        speculation(json!({ "drafting": "max-gram" }), |request| {
            request.drafting = Drafting::MaxGram.into();
        }),
        speculation(json!({ "draft_len": 2 }), |request| {
            request.draft_len = Some(2)
        }),
        speculation(json!({ "draft_len": "auto", "draft_cap": 6 }), |request| {
            request.draft_len = Some(6);
            let policy = Some(Policy::Goodput(true));
            request.draft_length = Some(DraftLength { policy });
        }),
        speculation(json!({ "draft_len": 4, "tree": "comb:3" }), |request| {
            request.draft_len = Some(4);
            let shape = Some(Shape::Comb(3));
            request.tree = Some(TreeShape { shape });
        }),
    ]
}

/// Log probabilities with three more likely tokens each.
fn scored(json: Value) -> Field {
    Field {
        shows: Shows {
            logprobs: true,
            ..Shows::default()
        },
        ..field(json, |request| {
            (request.logprobs, request.top_logprobs) = (true, 3);
        })
    }
}

fn with_tokens(json: Value) -> Field {
    Field {
        shows: Shows {
            tokens: true,
            ..Shows::default()
        },
        ..idle(json)
    }
}

/// Fields of requests with several outputs.
fn several() -> [Field; 2] {
    [
        idle(json!({ "n": 3 })),
        with_tokens(json!({ "n": 2, "return_token_ids": true })),
    ]
}

pub(crate) fn of_completions() -> Vec<Field> {
    let mut own = vec![
        scored(json!({ "logprobs": 3 })),
        field(json!({ "max_tokens": 11 }), |request| {
            request.max_tokens = Some(11)
        }),
        idle(json!({ "best_of": 2, "n": 2, "suffix": "", "echo": false })),
    ];
    own.extend(several());
    own
}

pub(crate) fn of_chats() -> Vec<Field> {
    let mut own = vec![
        scored(json!({ "logprobs": true, "top_logprobs": 3 })),
        field(json!({ "max_tokens": 11 }), |request| {
            request.max_tokens = Some(11)
        }),
        field(json!({ "max_completion_tokens": 13 }), |request| {
            request.max_tokens = Some(13)
        }),
        idle(json!({
            "response_format": { "type": "text" }, "modalities": ["text"], "tools": [], "tool_choice": "none",
            "parallel_tool_calls": true, "verbosity": "medium", "echo": false, "best_of": 1,
            "add_generation_prompt": true, "continue_final_message": false, "chat_template_kwargs": {},
        })),
    ];
    own.extend(several());
    own
}

pub(crate) fn of_responses() -> Vec<Field> {
    vec![
        scored(json!({ "top_logprobs": 3, "include": ["message.output_text.logprobs"] })),
        field(json!({ "max_output_tokens": 11 }), |request| {
            request.max_tokens = Some(11)
        }),
        idle(json!({ "instructions": "Once upon", "input": " a time" })),
        idle(json!({
            "background": false, "tools": [], "tool_choice": "auto", "parallel_tool_calls": false,
            "truncation": "disabled", "reasoning": { "effort": "low" },
            "text": { "format": { "type": "text" }, "verbosity": "medium" },
        })),
    ]
}
