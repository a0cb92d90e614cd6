//! Axes given beside a method.

use speculation::drafting::StopRule;
use speculation::drafting::policies::CONFIDENCE;
use speculation::methods::table::{PLAN, TARGET, VERIFICATION};
use speculation::methods::{METHODS, PlanKind, TargetKind, names};
use speculation::session::Plan;
use speculation::target::{Beta, RULES, TargetDistribution};
use speculation::verification::Verification;
use strum::VariantArray;

use super::{aimed, of, planned, refused, resolve};

const ONE_TARGET: [&str; 5] = [
    "token-cascade",
    "sequence-cascade",
    "bild",
    "target-only",
    "draft-only",
];

#[test]
fn a_target_given_replaces_the_methods() {
    let requested = aimed(TargetKind::Lossy, "coupled");
    let choice = resolve(&requested).expect("fits");
    assert_eq!(
        choice.target,
        TargetDistribution::Lossy {
            alpha: 0.2,
            beta: Beta::Fixed(1.0)
        }
    );
    assert!(!choice.is_lossless() && choice.is_reproducible() && choice.bonus_q());
    let exact = aimed(TargetKind::Exact, "spec-cascade");
    let choice = resolve(&exact).expect("fits");
    assert!(choice.is_lossless() && !choice.needs_draft_probs() && !choice.bonus_q());
    for rule in RULES.iter().copied() {
        for method in ["coupled", "rejection", "block", "lossy", "oracle-cascade"] {
            let requested = aimed(TargetKind::Rule(rule), method);
            let choice = resolve(&requested).expect(method);
            let alpha = rule.alpha.default;
            assert_eq!(choice.target, TargetDistribution::Deferral { rule, alpha });
            assert!(choice.bonus_q() && choice.needs().draft_probs && !choice.is_lossless());
        }
    }
}

#[test]
fn a_verification_given_replaces_the_methods() {
    for (name, verification) in [
        ("coupled", Verification::COUPLED),
        ("token", Verification::TOKEN),
        ("block", Verification::BLOCK),
        ("block-greedy", Verification::BLOCK_GREEDY),
    ] {
        for method in ["coupled", "lossy", "spec-cascade"] {
            let requested = of(method).with("verification", name);
            let choice = resolve(&requested).expect(method);
            assert_eq!(choice.verification, verification);
            assert_eq!(
                choice.is_reproducible(),
                verification == Verification::COUPLED
            );
            let mixes_bonus =
                method == "spec-cascade" || ["coupled", "block-greedy"].contains(&name);
            assert_eq!(choice.bonus_q(), method != "coupled" && mixes_bonus);
        }
    }
}

#[test]
fn a_plan_given_replaces_the_methods_and_brings_what_belongs_to_it() {
    for method in METHODS {
        for &plan in PlanKind::VARIANTS {
            let requested = planned(plan, method.name);
            let choice = resolve(&requested).expect(method.name);
            assert_eq!(PlanKind::from(choice.plan), plan, "{}", method.name);
            let is_bild = choice.verification.is_bild();
            assert_eq!(is_bild, plan == PlanKind::Bild);
            if plan.takes_any_target() {
                assert_eq!(choice.target, method.target, "{}", method.name);
            } else {
                assert_eq!(choice.target, TargetDistribution::Exact, "{}", method.name);
            }
            if plan != PlanKind::Speculative && !is_bild {
                assert_eq!(choice.verification, Verification::COUPLED);
            }
        }
    }
    let requested = planned(PlanKind::TokenCascade, "spec-cascade");
    let choice = resolve(&requested).expect("fits");
    assert_eq!(choice.plan, Plan::TokenCascade { max_run: 10 });
    assert_eq!(choice.stop_rule, StopRule::new(&CONFIDENCE, 0.5));
    let requested = planned(PlanKind::TargetOnly, "lossy");
    assert!(resolve(&requested).expect("fits").is_lossless());
}

#[test]
fn plans_made_for_one_target_refuse_others() {
    for method in ONE_TARGET {
        for name in TARGET.forms() {
            let target = names::target(name).expect(name);
            let requested = aimed(target, method);
            let own = match method {
                "token-cascade" => ["chow", "chow-log"].contains(&name),
                "sequence-cascade" => name == "chow",
                _ => name == "exact",
            };
            if own {
                resolve(&requested).expect(name);
            } else {
                let (field, problem) = refused(&requested, 1.0);
                assert_eq!(field, "target", "{method} {name}");
                assert!(
                    problem.contains(name) && problem.contains(method),
                    "{problem}"
                );
                assert!(problem.contains("expected"), "{problem}");
            }
        }
    }
}

#[test]
fn plans_without_a_block_to_verify_refuse_a_verification() {
    for method in ONE_TARGET.into_iter().chain(["oracle-cascade"]) {
        for name in VERIFICATION.forms() {
            let requested = of(method).with("verification", name);
            if name == "coupled" && method != "bild" {
                resolve(&requested).expect(method);
            } else {
                let (field, problem) = refused(&requested, 1.0);
                assert_eq!(field, "verification", "{method} {name}");
                assert!(problem.contains("plan speculative"), "{problem}");
            }
        }
    }
    for method in ["coupled", "bild"] {
        let requested = of(method).with("verification", "bild");
        assert_eq!(refused(&requested, 1.0).0, "verification");
    }
}

#[test]
fn a_rule_that_contradicts_the_target_is_refused() {
    let requested = |rule: &str| of("spec-cascade").with("target", "opt").with("rule", rule);
    assert_eq!(refused(&requested("chow"), 1.0).0, "rule");
    resolve(&requested("opt")).expect("they agree");
}

#[test]
fn only_a_lossy_target_that_loses_nothing_is_lossless() {
    for (alpha, beta, lossless) in [
        (0.0, Beta::Fixed(1.0), true),
        (0.0, Beta::Tuned, true),
        (0.0, Beta::Fixed(2.0), false),
        (0.1, Beta::Fixed(1.0), false),
        (0.1, Beta::Tuned, false),
    ] {
        let spec = of("lossy").with("alpha", alpha);
        let spec = match beta {
            Beta::Fixed(beta) => spec.with("beta", beta),
            Beta::Tuned => spec.with("beta", "tuned"),
        };
        let choice = resolve(&spec).expect("fits");
        assert_eq!(choice.is_lossless(), lossless, "{alpha} {beta:?}");
        assert_eq!(choice.depends_on_draft(), !lossless, "{alpha} {beta:?}");
    }
}

#[test]
fn acceptance_is_decided_where_asked() {
    for (who, at_coordinator) in [("verifier", false), ("coordinator", true)] {
        let requested = of("block").with("accept_at", who);
        let choice = resolve(&requested).expect("fits");
        assert_eq!(choice.accept_at_coordinator, at_coordinator);
        let [.., (_, reported), _, _, _, _] = choice.effective_axes();
        assert_eq!(names::accepts_at_coordinator(&reported), Ok(at_coordinator));
    }
}

#[test]
fn names_and_values_of_the_axes_belong_together() {
    for name in PLAN.forms() {
        assert_eq!(names::plan(name).map(PlanKind::name), Ok(name));
    }
    for name in TARGET.forms() {
        assert_eq!(names::target(name).map(TargetKind::name), Ok(name));
    }
    for name in VERIFICATION.forms() {
        let verification = names::verification(name).expect(name);
        assert_eq!(verification.name, name);
    }
    for (field, error) in [
        ("plan", names::plan("x").err()),
        ("target", names::target("x").err()),
        ("verification", names::verification("bild").err()),
        ("proposal", names::proposal("x").err()),
        ("rule", of("").with("rule", "exact").check().err()),
        ("accept_at", names::accepts_at_coordinator("x").err()),
    ] {
        let error = error.expect(field);
        assert_eq!(error.field, field);
        assert!(error.problem.contains("expected one of"), "{error}");
    }
}
