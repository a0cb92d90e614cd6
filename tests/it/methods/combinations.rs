//! What the coordinator admits, its peers accept; what it refuses, it refuses by a field of the request.

use coordinator::CoordinatorConfig;
use speculation::methods::METHODS;
use tonic::Code;
use wire::v1::draft_length::Policy;
use wire::v1::target_distribution::Kind;
use wire::v1::tree_shape::Shape;
use wire::v1::{
    AcceptAt, DraftLength, Drafting, GenerateRequest, LearnedStop, Plan, ProposalForm,
    TargetDistribution, TreeShape, Verification,
};

use crate::client::{With, request, try_generate};
use crate::cluster::{config, coordinator, target, verifier};
use crate::drafter::three_with_heads;

/// Requests that are tried, of all that the axes make.
const TRIED: usize = 600;

/// Takes values of axes from one number.
struct Picks(usize);

impl Picks {
    fn one<T: Copy>(&mut self, values: &[T]) -> T {
        let value = values[self.0 % values.len()];
        self.0 /= values.len();
        value
    }
}

/// A request with an axis each from `number`, most of them left to the method.
fn with_axes(number: usize) -> GenerateRequest {
    let mut picks = Picks(number);
    let names: Vec<&str> = METHODS.iter().map(|method| method.name).collect();
    let mut requested = request("Question: What is 12 + 30?\nAnswer:", 6).method(picks.one(&names));
    requested = requested.temperature(picks.one(&[0.0, 1.0]));
    requested.drafting = picks
        .one(&[
            Drafting::Unspecified,
            Drafting::Model,
            Drafting::MaxGram,
            Drafting::Cascade,
        ])
        .into();
    let learned = Policy::Learned(LearnedStop {
        threshold: 0.5,
        min_tokens: 1,
    });
    let policies = [Policy::Confidence(0.3), learned, Policy::Goodput(true)];
    let policy = picks.one(&[0, 0, 0, 0, 1, 2, 3]);
    requested.draft_length = policies.get(policy).map(|policy| DraftLength {
        policy: Some(policy.clone()),
    });
    let tree = picks.one(&[
        None,
        None,
        None,
        None,
        Some(Shape::Comb(2)),
        Some(Shape::Alternates(1)),
    ]);
    requested.tree = tree.map(|shape| TreeShape { shape: Some(shape) });
    let verifications =
        [0, 0, 0, 0, 1, 2, 3, 4].map(|number| Verification::try_from(number).expect("one"));
    requested.verification = picks.one(&verifications).into();
    requested.proposal_form = picks
        .one(&[
            ProposalForm::Unspecified,
            ProposalForm::Unspecified,
            ProposalForm::Unspecified,
            ProposalForm::Unspecified,
            ProposalForm::Unspecified,
            ProposalForm::None,
            ProposalForm::Point,
            ProposalForm::Sparse,
            ProposalForm::DenseF16,
        ])
        .into();
    if requested.proposal_form() == ProposalForm::Sparse {
        requested.proposal_top = 16;
    }
    let at_coordinator = picks.one(&[false, true]);
    if at_coordinator {
        requested.accept_at = AcceptAt::Coordinator.into();
    }
    requested.report_distributions = at_coordinator && picks.one(&[false, true]);
    let plans = [
        Plan::Unspecified,
        Plan::Unspecified,
        Plan::Unspecified,
        Plan::Speculative,
        Plan::OracleCascade,
    ];
    requested.plan = picks.one(&plans).into();
    let target = picks.one(&["", "", "", "", "", "exact", "opt", "token-v2"]);
    requested.target = (!target.is_empty()).then(|| TargetDistribution {
        kind: match target {
            "exact" => Kind::Exact.into(),
            _ => Kind::Deferral.into(),
        },
        rule: target.strip_prefix("exact").unwrap_or(target).to_owned(),
        ..Default::default()
    });
    requested
}

/// Whether `requested` says something of `field`.
fn is_given(requested: &GenerateRequest, field: &str) -> bool {
    match field {
        "plan" => requested.plan != 0,
        "target" | "target.rule" => requested.target.is_some(),
        "verification" => requested.verification != 0,
        "proposal" => requested.proposal_form != 0,
        "accept_at" => requested.accept_at != 0,
        "drafting" => requested.drafting != 0,
        "draft_length" => requested.draft_length.is_some(),
        "tree" => requested.tree.is_some(),
        "report_distributions" => requested.report_distributions,
        _ => false,
    }
}

#[tokio::test]
async fn what_is_admitted_is_carried_out() {
    let (drafter, (verifier, _)) = (three_with_heads().await, verifier(target()).await);
    let coordinator = coordinator(CoordinatorConfig {
        allow_distribution_reports: true,
        ..config(&[drafter.url()], &[verifier.url()])
    })
    .await;
    let (mut admitted, mut refused) = (0, 0);
    for number in 0..TRIED {
        // A step without a factor in common with the number of combinations.
        let requested = with_axes(number * 1_000_003);
        match try_generate(&coordinator, requested.clone()).await {
            Ok(answer) => {
                admitted += 1;
                assert_eq!(answer.finished.error, "", "{requested:?}");
                // A peer that refuses is done without.
                assert_eq!(answer.fallbacks(), 0, "{requested:?}");
            }
            Err(status) => {
                refused += 1;
                assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
                let (field, _) = status.message().split_once(": ").expect("a field");
                assert!(is_given(&requested, field), "{requested:?}: {status:?}");
            }
        }
    }
    assert!(admitted > 50 && refused > 50, "{admitted} {refused}");
}
