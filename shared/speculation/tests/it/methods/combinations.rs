//! Every combination of the axes, with every method.

use speculation::bad_value::BadValue;
use speculation::methods::table::{DRAFTING, PLAN, TARGET};
use speculation::methods::{Choice, METHODS, MethodSpec, Options, PlanKind, Setting, names};
use speculation::proposal::ProposalForm;
use speculation::target::TargetDistribution;
use speculation::verification::Verification;

use super::drafting::{LENS, TREES};
use super::{at, of, with_all};

/// `values`, and none.
fn optional(values: &[&'static str]) -> Vec<&'static str> {
    [&[""], values].concat()
}

#[test]
fn whatever_is_accepted_fits_together() {
    let targets = optional(&TARGET.forms());
    let verifications = optional(&["coupled", "token", "block", "block-greedy"]);
    let proposals = optional(&["none", "point", "sparse:32", "dense:f32", "dense:f16"]);
    let (mut accepted, mut refused) = (0, 0);
    for method in METHODS {
        for plan in optional(&PLAN.forms()) {
            for &target in &targets {
                for &verification in &verifications {
                    for &proposal in &proposals {
                        for temperature in [0.0, 1.0] {
                            let settings = [
                                ("plan", plan),
                                ("target", target),
                                ("verification", verification),
                                ("proposal", proposal),
                            ];
                            let requested = with_all(of(method.name), &settings);
                            match at(&requested, temperature) {
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

fn fits_together(requested: &MethodSpec, choice: &Choice, temperature: f32) {
    let kind = PlanKind::from(choice.plan);
    let text = |name: &str| requested.text(Setting::find(name).expect(name));
    let plan = text("plan").map(|name| names::plan(&name).expect("a plan"));
    assert_eq!(kind, plan.unwrap_or(choice.method.plan));
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
    let form = text("proposal").map(|name| names::proposal(&name).expect("a form"));
    assert_eq!(choice.proposal, form.unwrap_or(choice.proposal));
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
    let targets = optional(&["exact", "lossy", "opt", "bild"]);
    let verifications = optional(&["coupled", "token", "block", "block-greedy"]);
    let proposals = optional(&["none", "point", "sparse:32", "dense:f32"]);
    let (mut accepted, mut refused) = (0, 0);
    let draftings = DRAFTING.forms();
    for_each(
        (METHODS, &draftings, &LENS, &TREES),
        |method, drafting, len, tree| {
            for_each(
                (
                    &targets,
                    &verifications,
                    &proposals,
                    &[("", 0.0), ("", 1.0), ("coordinator", 1.0)],
                ),
                |&target, &verification, &proposal, &(accept_at, temperature)| {
                    let settings = [
                        ("target", target),
                        ("verification", verification),
                        ("proposal", proposal),
                        ("accept_at", accept_at),
                        ("drafting", *drafting),
                        ("draft_len", &names::of_draft_len(*len)),
                        ("tree", &names::of_tree(*tree)),
                    ];
                    let requested = with_all(of(method.name), &settings);
                    match at(&requested, temperature) {
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

fn goes_together_at_peers(choice: &Choice, requested: &MethodSpec, temperature: f32) {
    let proposal = choice.proposal_options();
    let at_peers = Options {
        target: choice.target,
        verification: choice.verification,
        drafting: choice.drafting,
        draft_len: choice.draft_len(),
        tree: choice.tree,
        schedule: choice.schedule,
        accept_at_coordinator: choice.accept_at_coordinator,
        greedy: temperature == 0.0,
        proposal: Some(proposal.form),
        bonus_q: choice.bonus_q(),
        more_fields: proposal.confidence || proposal.unscaled || choice.scores(),
    };
    assert_eq!(at_peers.check(), Ok(()), "{requested:?}");
}

fn is_about_what_was_asked(requested: &MethodSpec, error: &BadValue) {
    let named = Setting::find(&error.field).expect("a setting");
    assert!(requested.gives(named), "{requested:?}: {error}");
}
