//! The fields of `speculation`.

use serde_json::{Value, json};
use speculation::verification::Verification;
use wire::v1::draft_length::Policy;
use wire::v1::tree_shape::Shape;
use wire::v1::{
    AcceptAt, DraftLength, Drafting, GenerateRequest, MethodParameters, Plan, ProposalForm,
    TargetDistribution, TreeShape, target_distribution,
};

use super::{Field, field};
use crate::client::With;

/// A field of `speculation` and what it needs beside it.
fn speculation(json: Value, set: impl Fn(&mut GenerateRequest) + 'static) -> Field {
    field(Value::from_iter([("speculation", json)]), set)
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

/// The fields of `speculation`.
pub(super) fn fields() -> Vec<Field> {
    let rejection = |request: GenerateRequest| request.method("rejection").draft_len(3);
    vec![
        speculation(json!({ "enabled": false }), |request| {
            "target-only".clone_into(&mut request.method);
        }),
        method("lossy", json!({ "alpha": 0.25, "beta": 2.5 }), |it| {
            (it.alpha, it.beta) = (Some(0.25), Some(2.5));
        }),
        method("lossy", json!({ "alpha": 0.375, "beta": "tuned" }), |it| {
            (it.alpha, it.beta_tuned) = (Some(0.375), true);
        }),
        method("lossy", json!({ "kl_budget": 0.125 }), |it| {
            it.kl_budget = Some(0.125);
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
            it.verify_on_finish = Some(true);
        }),
        method("bild", json!({ "code_variant": true }), |it| {
            it.code_variant = Some(true);
        }),
        method("token-cascade", json!({ "max_run": 3 }), |it| {
            it.max_run = Some(3);
        }),
        method("sequence-cascade", json!({ "mean": false }), |it| {
            it.mean = Some(false);
        }),
        speculation(json!({ "plan": "target-only" }), |request| {
            request.plan = Plan::TargetOnly.into();
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
            request.draft_len = Some(2);
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
