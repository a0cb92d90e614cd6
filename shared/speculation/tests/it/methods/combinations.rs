//! Every combination of the axes, with every method.

use speculation::bad_value::BadValue;
use speculation::drafting::Drafting;
use speculation::methods::{Choice, METHODS, MethodRequest, Options, PlanKind, names};
use speculation::proposal::ProposalForm;
use speculation::target::TargetDistribution;
use speculation::verification::Verification;

use super::drafting::{LENS, TREES, with};
use super::of;

/// Nothing, or one of `values`.
fn optional<T>(values: impl IntoIterator<Item = T>) -> Vec<Option<T>> {
    std::iter::once(None)
        .chain(values.into_iter().map(Some))
        .collect()
}

#[test]
fn whatever_is_accepted_fits_together() {
    let targets = optional(
        names::targets()
            .into_iter()
            .map(|name| names::target(name).expect(name)),
    );
    let verifications = ["coupled", "token", "block", "block-greedy"].map(names::verification);
    let verifications = optional(verifications.map(|found| found.expect("a name")));
    let proposals = ["none", "point", "sparse:32", "dense:f32", "dense:f16"].map(names::proposal);
    let proposals = optional(proposals.map(|found| found.expect("a name")));
    let (mut accepted, mut refused) = (0, 0);
    for method in METHODS {
        for plan in optional(PlanKind::ALL) {
            for &target in &targets {
                for &verification in &verifications {
                    for &proposal in &proposals {
                        for temperature in [0.0, 1.0] {
                            let requested = MethodRequest {
                                plan,
                                target,
                                verification,
                                proposal,
                                ..of(method.name)
                            };
                            match Choice::resolve(&requested, temperature, false) {
                                Ok(choice) => {
                                    accepted += 1;
                                    fits_together(&requested, &choice, temperature);
                                }
                                Err(error) => {
                                    refused += 1;
                                    is_about_what_was_asked(&requested, &error);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(accepted > 10_000 && refused > 10_000);
}

fn fits_together(requested: &MethodRequest<'_>, choice: &Choice, temperature: f32) {
    let kind = PlanKind::of(choice.plan);
    assert_eq!(kind, requested.plan.unwrap_or(choice.method.plan));
    let is_bild = choice.verification.is_bild();
    assert_eq!(is_bild, kind == PlanKind::Bild, "{requested:?}");
    let compares_distributions = !is_bild && choice.verification != Verification::COUPLED;
    assert!(
        !compares_distributions || kind == PlanKind::Speculative,
        "{requested:?}"
    );
    choice.target.validate().expect("in range");
    let (probs, point) = match choice.proposal {
        ProposalForm::Sparse { .. } | ProposalForm::Dense { .. } => (true, false),
        ProposalForm::Point => (false, true),
        ProposalForm::None => (false, false),
    };
    let needs = choice.needs();
    assert!(
        probs || !(needs.draft_probs || choice.bonus_q()),
        "{requested:?}"
    );
    assert!(
        probs || (point && temperature == 0.0) || !compares_distributions,
        "{requested:?}"
    );
    assert!(!point || temperature == 0.0, "{requested:?}");
    let dense = matches!(choice.proposal, ProposalForm::Dense { .. });
    assert!(dense || !needs.dense, "{requested:?}");
    assert_eq!(
        choice.proposal,
        requested.proposal.unwrap_or(choice.proposal)
    );
    // What draws from the target model alone is lossless, and nothing else.
    let from_target = !matches!(
        kind,
        PlanKind::DraftOnly | PlanKind::TokenCascade | PlanKind::SequenceCascade | PlanKind::Bild
    );
    let lossless = from_target && choice.target == TargetDistribution::Exact;
    assert_eq!(choice.is_lossless(), lossless, "{requested:?}");
    assert_eq!(
        choice.is_reproducible(),
        !compares_distributions,
        "{requested:?}"
    );
}

/// The options of drafting beside all others: what is admitted goes together as the peers see it, whose session says
/// what is sent.
#[test]
fn whatever_is_accepted_is_accepted_by_peers() {
    let targets =
        optional(["exact", "lossy", "opt", "bild"].map(|name| names::target(name).expect(name)));
    let verifications = ["coupled", "token", "block", "block-greedy"].map(names::verification);
    let verifications = optional(verifications.map(|found| found.expect("a name")));
    let proposals = ["none", "point", "sparse:32", "dense:f32"].map(names::proposal);
    let proposals = optional(proposals.map(|found| found.expect("a name")));
    let (mut accepted, mut refused) = (0, 0);
    let draftings = [Drafting::Model, Drafting::MaxGram, Drafting::Cascade];
    for_each(
        (METHODS, &draftings, &LENS, &TREES),
        |method, drafting, len, tree| {
            for_each(
                (
                    &targets,
                    &verifications,
                    &proposals,
                    &[(false, 0.0), (false, 1.0), (true, 1.0)],
                ),
                |&target, &verification, &proposal, &(accept_at_coordinator, temperature)| {
                    let requested = MethodRequest {
                        target,
                        verification,
                        proposal,
                        accept_at_coordinator,
                        ..with(method.name, *drafting, *len, *tree)
                    };
                    match Choice::resolve(&requested, temperature, false) {
                        Ok(choice) => {
                            accepted += 1;
                            goes_together_at_peers(&choice, &requested, temperature);
                        }
                        Err(_) => refused += 1,
                    }
                },
            );
        },
    );
    assert!(accepted > 5_000 && refused > 5_000, "{accepted} {refused}");
}

fn for_each<A, B, C, D>(
    (first, second, third, fourth): (&[A], &[B], &[C], &[D]),
    mut visit: impl FnMut(&A, &B, &C, &D),
) {
    for a in first {
        for b in second {
            for c in third {
                for d in fourth {
                    visit(a, b, c, d);
                }
            }
        }
    }
}

fn goes_together_at_peers(choice: &Choice, requested: &MethodRequest<'_>, temperature: f32) {
    let proposal = choice.proposal_options();
    let at_peers = Options {
        target: choice.target,
        verification: choice.verification,
        drafting: choice.drafting,
        draft_len: choice.draft_len(),
        tree: choice.tree,
        accept_at_coordinator: choice.accept_at_coordinator,
        greedy: temperature == 0.0,
        proposal: Some(proposal.form),
        bonus_q: choice.bonus_q(),
        more_fields: proposal.confidence || proposal.unscaled || choice.scores(),
    };
    assert_eq!(at_peers.check(), Ok(()), "{requested:?}");
}

fn is_about_what_was_asked(requested: &MethodRequest<'_>, error: &BadValue) {
    let given = match error.field.as_str() {
        "target" => requested.target.is_some(),
        "verification" => requested.verification.is_some(),
        "proposal" => requested.proposal.is_some(),
        _ => false,
    };
    assert!(given, "{requested:?}: {error}");
}
