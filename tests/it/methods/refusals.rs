//! Axes and parameters that are unknown, out of range, or do not go together: refused by name.

use coordinator::CoordinatorConfig;
use speculation::methods::METHODS;
use tonic::Code;
use wire::v1::target_distribution::Kind;
use wire::v1::{GenerateRequest, ListMethodsRequest, MethodParameters, ProposalForm, Verification};

use crate::client::{With, request, try_generate};
use crate::cluster::{Cluster, client, config, coordinator, draft, drafter, target, verifier};
use crate::errors::{Case, case, each_refused};

fn base() -> GenerateRequest {
    request("Once upon a time", 8)
}

/// `method` with these parameters; that each is held to its range is tested in `speculation`.
fn with(expected: &'static str, method: &str, change: impl FnOnce(&mut MethodParameters)) -> Case {
    case(expected, |asked| {
        method.clone_into(&mut asked.method);
        change(asked.parameters.get_or_insert_default());
    })
}

fn bad_parameters() -> Vec<Case> {
    let alpha = |expected, method, alpha| with(expected, method, |p| p.alpha = Some(alpha));
    let rule =
        |expected, rule: &str| with(expected, "spec-cascade", |p| p.rule = Some(rule.to_owned()));
    vec![
        rule("rule | chaw", "chaw"),
        alpha("alpha | 1.5", "spec-cascade", 1.5),
        alpha("alpha | NaN", "spec-cascade", f64::NAN),
        alpha("alpha | 1", "lossy", 1.0),
        alpha("alpha | -0.1", "lossy", -0.1),
        alpha("alpha | coupled", "coupled", 0.5),
        with("beta | 0.1", "lossy", |p| p.beta = Some(0.1)),
        with("beta | tuned", "lossy", |p| {
            (p.beta, p.beta_tuned) = (Some(2.0), true);
        }),
        with("fallback | 1.5", "bild", |p| p.fallback = Some(1.5)),
        with("window | 0", "bild", |p| p.window = Some(0)),
    ]
}

fn bad_axes() -> Vec<Case> {
    let form = |expected, form: ProposalForm, top: u32| {
        case(expected, |asked| {
            "block".clone_into(&mut asked.method);
            (asked.proposal_form, asked.proposal_top) = (form.into(), top);
        })
    };
    let target = |expected, kind: i32, rule: &str| {
        case(expected, |asked| {
            let target = asked.target.get_or_insert_default();
            (target.kind, target.rule) = (kind, rule.to_owned());
        })
    };
    vec![
        case("verification | target-only", |asked| {
            "target-only".clone_into(&mut asked.method);
            asked.verification = Verification::Block.into();
        }),
        case("verification | 77", |asked| asked.verification = 77),
        form("proposal_top | SPARSE", ProposalForm::Unspecified, 8),
        form("proposal_top | SPARSE", ProposalForm::DenseF32, 8),
        form("proposal | none", ProposalForm::None, 0),
        form("proposal | point", ProposalForm::Point, 0),
        form("proposal_top | 0", ProposalForm::Sparse, 0),
        form("proposal_top | 1025", ProposalForm::Sparse, 1_025),
        target("target.rule | chow", 0, "chow"),
        target("target.kind | missing", 0, ""),
        target("target.rule | chow", Kind::Lossy.into(), "chow"),
        target("target.rule | chaw", Kind::Deferral.into(), "chaw"),
        case("proposal | bild", |asked| {
            "spec-cascade".clone_into(&mut asked.method);
            asked.parameters.get_or_insert_default().rule = Some("bild".to_owned());
            (asked.proposal_form, asked.proposal_top) = (ProposalForm::Sparse.into(), 32);
        }),
        case("report_laws | accept_at", |asked| asked.report_laws = true),
    ]
}

#[tokio::test]
async fn each_bad_choice_is_named() {
    let cluster = Cluster::start(draft()).await;
    let cases = [bad_parameters(), bad_axes()].concat();
    each_refused(&cluster.coordinator, cases).await;
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
    let mut client = client(&coordinator);
    let listed = client.list_methods(ListMethodsRequest {}).await;
    let listed = listed.expect("a list").into_inner().methods;
    for (method, listed) in METHODS.iter().zip(listed) {
        let asked = try_generate(&coordinator, base().method(method.name)).await;
        assert_eq!(asked.is_ok(), method.is_lossless(), "{}", method.name);
        assert_eq!(listed.allowed, method.is_lossless(), "{}", method.name);
        if let Err(status) = asked {
            assert_eq!(status.code(), Code::InvalidArgument);
            let said = status.message();
            assert!(said.starts_with("method: ") && said.contains("lossless"));
        }
    }
    let (_, cascade) = case("lossy", |asked| {
        let target = asked.target.get_or_insert_default();
        (target.kind, target.rule) = (Kind::Deferral.into(), "opt".to_owned());
    });
    let status = try_generate(&coordinator, cascade)
        .await
        .expect_err("lossy");
    assert!(
        status.message().contains("as it is asked for"),
        "{status:?}"
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
