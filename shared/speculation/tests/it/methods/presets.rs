//! The methods as they are listed.

use std::collections::HashSet;

use speculation::drafting::policies::CONFIDENCE;
use speculation::drafting::{ProposalOptions, StopRule};
use speculation::methods::{METHODS, PlanKind, TargetKind, find, names};
use speculation::session::Plan;
use speculation::target::{Beta, TargetDistribution, rules};
use speculation::verification::Verification;

use super::{of, resolve};

#[test]
fn every_name_and_alias_is_found_once() {
    let mut seen = HashSet::new();
    for method in METHODS {
        for name in std::iter::once(&method.name).chain(method.aliases) {
            assert!(seen.insert(*name), "{name} stands twice");
            assert_eq!(find(name).map(|found| found.name), Ok(method.name));
        }
    }
    assert_eq!(find("").map(|method| method.name), Ok("coupled"));
    let methods = "coupled rejection block block-greedy lossy spec-cascade spec-cascade-rejection \
                   token-cascade sequence-cascade oracle-cascade bild target-only draft-only";
    assert_eq!(names().join(" "), methods);
    for (alias, name) in [
        ("gumbel", "coupled"),
        ("token", "rejection"),
        ("speculative-sampling", "rejection"),
        ("block-verification", "block"),
        ("speculative-cascade", "spec-cascade"),
    ] {
        assert_eq!(find(alias).map(|found| found.name), Ok(name));
    }
    let error = find("nonsense").expect_err("unknown");
    assert_eq!(error.field, "method");
    assert!(error.problem.contains("target-only"), "{error}");
}

#[test]
fn lossless_reproducible_and_the_need_of_q_follow_from_the_axes() {
    let table = [
        ("coupled", true, true, false),
        ("rejection", true, false, true),
        ("block", true, false, true),
        ("block-greedy", true, false, true),
        ("lossy", false, false, true),
        ("spec-cascade", false, true, true),
        ("spec-cascade-rejection", false, false, true),
        ("token-cascade", false, true, false),
        ("sequence-cascade", false, true, false),
        ("oracle-cascade", false, true, true),
        ("bild", false, true, false),
        ("target-only", true, true, false),
        ("draft-only", false, true, false),
    ];
    assert_eq!(METHODS.len(), table.len());
    for (method, (name, lossless, reproducible, needs_draft_probs)) in METHODS.iter().zip(table) {
        assert_eq!(method.name, name);
        assert_eq!(method.is_lossless(), lossless, "{name}");
        assert_eq!(method.is_reproducible(), reproducible, "{name}");
        assert_eq!(method.needs_draft_probs(), needs_draft_probs, "{name}");
        let choice = resolve(&of(name)).expect(name);
        assert_eq!(choice.name(), name);
        assert_eq!(choice.depends_on_draft(), !lossless, "{name}");
    }
}

#[test]
fn presets_come_to_their_papers_settings() {
    let choice = |name| resolve(&of(name)).expect(name);
    let sequence_cascade = Plan::SequenceCascade {
        threshold: (1.0_f64 - 0.95).ln(),
        mean: true,
    };
    let bild = Plan::Bild {
        window: 10,
        verify_on_finish: false,
        code_variant: false,
    };
    let plans = [
        ("coupled", Plan::Speculative),
        ("token-cascade", Plan::TokenCascade { max_run: 10 }),
        ("sequence-cascade", sequence_cascade),
        ("oracle-cascade", Plan::OracleCascade),
        ("bild", bild),
        ("target-only", Plan::TargetOnly),
        ("draft-only", Plan::DraftOnly),
    ];
    for (name, plan) in plans {
        assert_eq!(choice(name).plan, plan);
        assert_eq!(PlanKind::from(plan), choice(name).method.plan);
    }
    let deferral = |rule, alpha| TargetDistribution::Deferral { rule, alpha };
    let (alpha, beta) = (0.2, Beta::Fixed(1.0));
    let lossy = TargetDistribution::Lossy { alpha, beta };
    assert_eq!(choice("lossy").target, lossy);
    for name in ["spec-cascade", "spec-cascade-rejection"] {
        assert_eq!(choice(name).target, deferral(rules::TOKEN_V3, 0.3));
    }
    assert_eq!(choice("oracle-cascade").target, deferral(rules::DIFF, 0.1));
    // Their rule says who speaks; what the verifier draws is the target model's.
    for name in ["token-cascade", "sequence-cascade", "bild"] {
        assert_eq!(choice(name).target, TargetDistribution::Exact);
    }
    for method in METHODS {
        if let TargetDistribution::Deferral { rule, alpha } = method.target {
            assert_eq!(alpha, rule.alpha.default, "{}", method.name);
        }
    }
    let verifications = [
        ("coupled", Verification::COUPLED),
        ("rejection", Verification::TOKEN),
        ("block", Verification::BLOCK),
        ("block-greedy", Verification::BLOCK_GREEDY),
        ("lossy", Verification::TOKEN),
        ("spec-cascade", Verification::COUPLED),
        ("spec-cascade-rejection", Verification::TOKEN),
        ("oracle-cascade", Verification::COUPLED),
        ("bild", Verification::bild(5.0)),
    ];
    for (name, verification) in verifications {
        assert_eq!(choice(name).verification, verification, "{name}");
    }
}

#[test]
fn the_drafter_is_told_when_to_stop_and_what_to_send() {
    for method in METHODS {
        let choice = resolve(&of(method.name)).expect(method.name);
        let stop = match method.name {
            "token-cascade" => StopRule::new(&CONFIDENCE, 0.5),
            "bild" => StopRule::new(&CONFIDENCE, 0.6),
            _ => StopRule::NEVER,
        };
        let proposal_options = ProposalOptions {
            form: choice.proposal,
            confidence: method.name.starts_with("spec-cascade") || method.name == "oracle-cascade",
            unscaled: false,
        };
        assert_eq!(choice.stop_rule, stop, "{}", method.name);
        assert_eq!(
            choice.proposal_options(),
            proposal_options,
            "{}",
            method.name
        );
        let scored = method.name == "sequence-cascade";
        assert_eq!((choice.scores(), choice.regenerates()), (scored, scored));
    }
}

#[test]
fn reports_name_every_axis_and_parameter() {
    let choice = resolve(&of("bild")).expect("bild");
    let parameters: Vec<_> = choice.effective_parameters().collect();
    let expected = [
        ("alpha", "5"),
        ("fallback", "0.6"),
        ("window", "10"),
        ("verify_on_finish", "false"),
        ("code_variant", "false"),
    ];
    let expected = expected.map(|(name, value)| (name, value.to_owned()));
    assert_eq!(parameters, expected);
    for method in METHODS {
        let [_, (axis, target), ..] = resolve(&of(method.name)).expect("fits").effective_axes();
        let expected = TargetKind::of(method.target).name();
        assert_eq!((axis, &target[..]), ("target", expected), "{}", method.name);
    }
    let choice = resolve(&of("spec-cascade")).expect("spec-cascade");
    let expected = [
        ("plan", "speculative"),
        ("target", "token-v3"),
        ("verification", "coupled"),
        ("proposal", "sparse:32"),
        ("accept_at", "verifier"),
        ("drafting", "model"),
        ("draft_len", "auto"),
        ("tree", "chain"),
        ("schedule", "rounds"),
    ];
    let expected = expected.map(|(axis, value)| (axis, value.to_owned()));
    assert_eq!(choice.effective_axes(), expected);
}
