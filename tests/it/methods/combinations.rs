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
    let mut asked = request("Question: What is 12 + 30?\nAnswer:", 6).method(picks.one(&names));
    asked = asked.temperature(picks.one(&[0.0, 1.0]));
    asked.drafting = picks
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
    asked.draft_length = policies.get(policy).map(|policy| DraftLength {
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
    asked.tree = tree.map(|shape| TreeShape { shape: Some(shape) });
    let verifications =
        [0, 0, 0, 0, 1, 2, 3, 4].map(|number| Verification::try_from(number).expect("one"));
    asked.verification = picks.one(&verifications).into();
    asked.proposal_form = picks
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
    if asked.proposal_form() == ProposalForm::Sparse {
        asked.proposal_top = 16;
    }
    let at_coordinator = picks.one(&[false, true]);
    if at_coordinator {
        asked.accept_at = AcceptAt::Coordinator.into();
    }
    asked.report_distributions = at_coordinator && picks.one(&[false, true]);
    let plans = [
        Plan::Unspecified,
        Plan::Unspecified,
        Plan::Unspecified,
        Plan::Speculative,
        Plan::OracleCascade,
    ];
    asked.plan = picks.one(&plans).into();
    let target = picks.one(&["", "", "", "", "", "exact", "opt", "token-v2"]);
    asked.target = (!target.is_empty()).then(|| TargetDistribution {
        kind: match target {
            "exact" => Kind::Exact.into(),
            _ => Kind::Deferral.into(),
        },
        rule: target.strip_prefix("exact").unwrap_or(target).to_owned(),
        ..Default::default()
    });
    asked
}

/// Whether `asked` says something of `field`.
fn is_given(asked: &GenerateRequest, field: &str) -> bool {
    match field {
        "plan" => asked.plan != 0,
        "target" | "target.rule" => asked.target.is_some(),
        "verification" => asked.verification != 0,
        "proposal" => asked.proposal_form != 0,
        "accept_at" => asked.accept_at != 0,
        "drafting" => asked.drafting != 0,
        "draft_length" => asked.draft_length.is_some(),
        "tree" => asked.tree.is_some(),
        "report_distributions" => asked.report_distributions,
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
        let asked = with_axes(number * 1_000_003);
        match try_generate(&coordinator, asked.clone()).await {
            Ok(answer) => {
                admitted += 1;
                assert_eq!(answer.finished.error, "", "{asked:?}");
                // A peer that refuses is done without.
                assert_eq!(answer.fallbacks(), 0, "{asked:?}");
            }
            Err(status) => {
                refused += 1;
                assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
                let (field, _) = status.message().split_once(": ").expect("a field");
                assert!(is_given(&asked, field), "{asked:?}: {status:?}");
            }
        }
    }
    assert!(admitted > 50 && refused > 50, "{admitted} {refused}");
}
