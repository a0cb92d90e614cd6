//! Axes and parameters that are unknown, out of range, or do not go together: refused by name.

use coordinator::CoordinatorConfig;
use speculation::methods::METHODS;
use tonic::Code;
use wire::v1::target_distribution::Kind;
use wire::v1::{
    GenerateRequest, ListMethodsRequest, MethodParameters, ProposalForm, TargetDistribution,
    Verification,
};

use crate::client::{With, request, try_generate};
use crate::cluster::{Cluster, client, config, coordinator, draft, drafter, target, verifier};
use crate::errors::Case;

fn base() -> GenerateRequest {
    request("Once upon a time", 8)
}

fn with(method: &str, parameters: MethodParameters) -> GenerateRequest {
    GenerateRequest {
        parameters: Some(parameters),
        ..base().method(method)
    }
}

/// `spec-cascade` with a rule.
fn rule(name: &str, alpha: Option<f64>) -> GenerateRequest {
    let parameters = MethodParameters {
        rule: Some(name.to_owned()),
        alpha,
        ..Default::default()
    };
    with("spec-cascade", parameters)
}

fn bad_parameters() -> Vec<Case> {
    let alpha = |method: &str, alpha: f64| {
        let parameters = MethodParameters {
            alpha: Some(alpha),
            ..Default::default()
        };
        with(method, parameters)
    };
    let beta = |beta, beta_tuned| MethodParameters {
        beta: Some(beta),
        beta_tuned,
        ..Default::default()
    };
    let bild = |parameters| with("bild", parameters);
    vec![
        (rule("chaw", None), "rule", "chaw"),
        (rule("chow", Some(1.5)), "alpha", "1.5"),
        (rule("token-v3", Some(f64::NAN)), "alpha", "NaN"),
        (alpha("lossy", 1.0), "alpha", "1"),
        (alpha("lossy", -0.1), "alpha", "-0.1"),
        (alpha("coupled", 0.5), "alpha", "coupled"),
        (with("lossy", beta(0.1, false)), "beta", "0.1"),
        (with("lossy", beta(2.0, true)), "beta", "tuned"),
        (
            bild(MethodParameters {
                fallback: Some(1.5),
                ..Default::default()
            }),
            "fallback",
            "1.5",
        ),
        (
            bild(MethodParameters {
                window: Some(0),
                ..Default::default()
            }),
            "window",
            "0",
        ),
    ]
}

fn bad_axes() -> Vec<Case> {
    let form = |method: &str, form: ProposalForm, top: u32| GenerateRequest {
        proposal_form: form.into(),
        proposal_top: top,
        ..base().method(method)
    };
    let target = |kind, rule: &str| GenerateRequest {
        target: Some(TargetDistribution {
            kind,
            rule: rule.to_owned(),
            ..Default::default()
        }),
        ..base()
    };
    vec![
        (
            GenerateRequest {
                verification: Verification::Block.into(),
                ..base().method("target-only")
            },
            "verification",
            "target-only",
        ),
        (
            GenerateRequest {
                verification: 77,
                ..base()
            },
            "verification",
            "77",
        ),
        (GenerateRequest { plan: 77, ..base() }, "plan", "77"),
        (
            form("block", ProposalForm::Unspecified, 8),
            "proposal_top",
            "SPARSE",
        ),
        (
            form("block", ProposalForm::DenseF32, 8),
            "proposal_top",
            "SPARSE",
        ),
        (target(9, ""), "target.kind", "9"),
        (target(0, "chow"), "target.rule", "chow"),
        (target(0, ""), "target.kind", "missing"),
        (target(Kind::Lossy.into(), "chow"), "target.rule", "chow"),
        (target(Kind::Deferral.into(), "chaw"), "target.rule", "chaw"),
        (form("block", ProposalForm::None, 0), "proposal", "none"),
        (form("block", ProposalForm::Point, 0), "proposal", "point"),
        (form("block", ProposalForm::Sparse, 0), "proposal_top", "0"),
        (
            form("block", ProposalForm::Sparse, 1_025),
            "proposal_top",
            "1025",
        ),
        (
            GenerateRequest {
                proposal_form: ProposalForm::Sparse.into(),
                proposal_top: 32,
                ..rule("bild", None)
            },
            "proposal",
            "bild",
        ),
        (
            GenerateRequest {
                report_laws: true,
                ..base()
            },
            "report_laws",
            "accept_at",
        ),
    ]
}

#[tokio::test]
async fn each_bad_choice_is_named() {
    let cluster = Cluster::start(draft()).await;
    for (request, field, part) in [bad_parameters(), bad_axes()].concat() {
        let refused = try_generate(&cluster.coordinator, request).await;
        let status = refused.expect_err(field);
        assert_eq!(status.code(), Code::InvalidArgument, "{field}: {status:?}");
        let message = status.message();
        assert!(
            message.split(':').next() == Some(field) && message.contains(part),
            "{field}: {message}"
        );
    }
}

/// A deployment may allow only methods whose tokens are exact samples of the target model.
#[tokio::test]
async fn only_lossless_methods_are_served_where_the_operator_says_so() {
    let (drafter, _) = drafter(draft()).await;
    let (verifier, _) = verifier(target()).await;
    let config = CoordinatorConfig {
        lossless_only: true,
        ..config(&[drafter.url()], &[verifier.url()])
    };
    let coordinator = coordinator(config).await;
    let listed = client(&coordinator)
        .list_methods(ListMethodsRequest {})
        .await;
    for (method, listed) in METHODS
        .iter()
        .zip(listed.expect("a list").into_inner().methods)
    {
        let asked = try_generate(&coordinator, base().method(method.name)).await;
        assert_eq!(asked.is_ok(), method.is_lossless(), "{}", method.name);
        assert_eq!(listed.allowed, method.is_lossless(), "{}", method.name);
        if let Err(status) = asked {
            assert_eq!(status.code(), Code::InvalidArgument);
            let message = status.message();
            assert!(message.starts_with("method: ") && message.contains("lossless"));
        }
    }
    let mut cascade = base();
    cascade.target = Some(TargetDistribution {
        kind: Kind::Deferral.into(),
        rule: "opt".to_owned(),
        ..Default::default()
    });
    let status = try_generate(&coordinator, cascade)
        .await
        .expect_err("lossy");
    assert!(
        status.message().contains("as it is asked for"),
        "{}",
        status.message()
    );
}

#[tokio::test]
async fn a_cascade_needs_a_drafter() {
    let (verifier, _) = verifier(target()).await;
    let coordinator = coordinator(config(&[], &[verifier.url()])).await;
    for method in METHODS {
        let asked = try_generate(&coordinator, base().method(method.name)).await;
        assert_eq!(asked.is_ok(), method.is_lossless(), "{}", method.name);
    }
}
