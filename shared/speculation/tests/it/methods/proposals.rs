//! How the draft distribution is sent to the verifier.

use speculation::drafting::ProposalOptions;
use speculation::methods::{Choice, METHODS, MethodSpec, SPARSE_TOP, Setup, TargetKind, names};
use speculation::proposal::{ProposalForm, SPARSE_MOST};
use speculation::target::{RULES, Rule, TargetDistribution, rules};

use super::{aimed, at, of, proposed, refused};

const REJECTION: [&str; 3] = ["rejection", "block", "block-greedy"];
const MIXES: [&str; 4] = [
    "lossy",
    "spec-cascade",
    "spec-cascade-rejection",
    "oracle-cascade",
];
const SPARSE: ProposalForm = ProposalForm::Sparse { top: SPARSE_TOP };
const ONE: ProposalForm = ProposalForm::Sparse { top: 1 };
const WHOLE: ProposalForm = ProposalForm::Dense { half: false };
const HALF: ProposalForm = ProposalForm::Dense { half: true };

fn rule(rule: Rule, method: &str) -> MethodSpec {
    aimed(TargetKind::Rule(rule), method)
}

fn form(requested: &MethodSpec, temperature: f32) -> ProposalForm {
    at(requested, temperature).expect("fits").proposal
}

#[test]
fn no_more_is_told_by_default_than_is_needed() {
    for method in METHODS {
        let (greedy, sampling) = match method.name {
            name if REJECTION.contains(&name) => (ProposalForm::Point, SPARSE),
            "lossy" | "spec-cascade" | "oracle-cascade" => (ONE, SPARSE),
            "spec-cascade-rejection" => (ONE, WHOLE),
            _ => (ProposalForm::None, ProposalForm::None),
        };
        assert_eq!(form(&of(method.name), 0.0), greedy, "{}", method.name);
        assert_eq!(form(&of(method.name), 1.0), sampling, "{}", method.name);
    }
    for method in ["coupled", "rejection", "oracle-cascade"] {
        assert_eq!(form(&rule(rules::BILD, method), 0.0), ONE);
        assert_eq!(form(&rule(rules::BILD, method), 0.5), WHOLE);
        let reads_draft = method == "rejection";
        let expected = if reads_draft { WHOLE } else { SPARSE };
        assert_eq!(form(&rule(rules::OPT, method), 0.5), expected);
    }
    assert_eq!(form(&of("lossy").with("kl_budget", 0.1), 0.5), WHOLE);
}

#[test]
fn any_distribution_may_be_told_where_none_is_needed() {
    for method in METHODS {
        for temperature in [0.0, 1.0] {
            for proposal in [ONE, SPARSE, WHOLE, HALF] {
                let requested = proposed(proposal, method.name);
                assert_eq!(form(&requested, temperature), proposal, "{}", method.name);
            }
        }
    }
}

#[test]
fn a_distribution_that_is_needed_cannot_be_left_out() {
    for method in METHODS {
        for proposal in [ProposalForm::None, ProposalForm::Point] {
            for temperature in [0.0, 1.0] {
                let rejects = REJECTION.contains(&method.name);
                let mixes = MIXES.contains(&method.name);
                let is_point = proposal == ProposalForm::Point;
                let fits = match temperature {
                    0.0 => !mixes && (!rejects || is_point),
                    _ => !mixes && !rejects && !is_point,
                };
                let requested = proposed(proposal, method.name);
                if fits {
                    assert_eq!(form(&requested, temperature), proposal, "{}", method.name);
                } else {
                    let (field, problem) = refused(&requested, temperature);
                    assert_eq!(field, "proposal", "{}", method.name);
                    assert!(problem.contains("expected"), "{problem}");
                }
            }
        }
    }
}

#[test]
fn a_part_of_the_distribution_will_not_do_for_a_rule_that_averages_over_it() {
    for method in ["coupled", "block", "spec-cascade", "oracle-cascade"] {
        let requested = |form| rule(rules::BILD, method).with("proposal", names::of_proposal(form));
        let (field, problem) = refused(&requested(SPARSE), 1.0);
        assert_eq!(field, "proposal");
        assert!(problem.contains("dense"), "{problem}");
        assert_eq!(form(&requested(SPARSE), 0.0), SPARSE);
        assert_eq!(form(&requested(HALF), 1.0), HALF);
    }
}

#[test]
fn a_sparse_distribution_has_between_one_and_the_most_tokens() {
    for top in [0, SPARSE_MOST + 1] {
        let requested = proposed(ProposalForm::Sparse { top }, "rejection");
        assert_eq!(refused(&requested, 1.0).0, "proposal");
        let error = names::proposal(&format!("sparse:{top}")).expect_err("out of range");
        assert_eq!(error.field, "proposal");
    }
    for top in [1, SPARSE_MOST] {
        let text = format!("sparse:{top}");
        assert_eq!(names::proposal(&text), Ok(ProposalForm::Sparse { top }));
        assert_eq!(names::of_proposal(ProposalForm::Sparse { top }), text);
    }
    for text in ["none", "point", "dense:f32", "dense:f16"] {
        let form = names::proposal(text).expect(text);
        assert_eq!(names::of_proposal(form), text);
    }
    assert_eq!(names::proposal("dense"), Ok(WHOLE));
    for text in [
        "sparse",
        "sparse:",
        "sparse:x",
        "sparse:-1",
        "dense:f64",
        "",
    ] {
        names::proposal(text).expect_err(text);
    }
}

#[test]
fn what_a_rule_judges_by_is_told_beside_the_distribution() {
    let reported = |rule_: Rule, proposal, temperature, cuts| {
        let mut requested = rule(rule_, "coupled");
        if let Some(form) = proposal {
            requested = requested.with("proposal", names::of_proposal(form));
        }
        let setup = Setup {
            cuts,
            ..Setup::at(temperature)
        };
        let choice = Choice::resolve(&requested, setup);
        choice.expect("fits").proposal_options()
    };
    for rule in RULES.iter().copied() {
        for temperature in [0.0, 0.5, 1.0] {
            let alpha = rule.alpha.default;
            let needs = TargetDistribution::Deferral { rule, alpha }.needs(temperature == 0.0);
            let proposal_options = reported(rule, None, temperature, true);
            let expected = ProposalOptions {
                form: form(&self::rule(rule, "coupled"), temperature),
                confidence: needs.max || needs.entropy,
                unscaled: needs.draft_unscaled,
            };
            assert_eq!(proposal_options, expected, "{rule:?}");
        }
    }
    // A whole distribution that nothing was done to is the unscaled distribution; cut or scaled it is not.
    let unscaled = |proposal, temperature, cuts| {
        reported(rules::TOKEN_V1, Some(proposal), temperature, cuts).unscaled
    };
    assert!(!unscaled(WHOLE, 1.0, false));
    assert!(unscaled(WHOLE, 1.0, true));
    assert!(unscaled(WHOLE, 0.5, false));
    assert!(unscaled(HALF, 1.0, false) && unscaled(HALF, 0.5, false));
    assert!(unscaled(SPARSE, 1.0, false));
}
