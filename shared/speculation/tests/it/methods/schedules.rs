//! Which requests can be streamed, and what the others are told.

use speculation::drafting::{DraftLen, Drafting, Schedule};
use speculation::methods::{METHODS, MethodSpec, PlanKind, names};
use speculation::verification::Verification;

use super::{of, refused, resolve};

fn streamed(method: &str) -> MethodSpec {
    of(method).with("schedule", "stream")
}

#[test]
fn coupled_verification_of_the_exact_target_streams_and_nothing_else_does() {
    for method in METHODS {
        let is_exact = method.is_lossless() && method.verification == Verification::COUPLED;
        if method.plan == PlanKind::Speculative && is_exact {
            let choice = resolve(&streamed(method.name)).expect(method.name);
            let found = (choice.schedule, choice.drafting, choice.draft_len());
            assert_eq!(found, (Schedule::Stream, Drafting::MaxGram, DraftLen::Auto));
            assert!(choice.is_reproducible());
            continue;
        }
        let (field, problem) = refused(&streamed(method.name), 1.0);
        assert_eq!(field, "schedule", "{}", method.name);
        assert!(problem.starts_with("'stream' "), "{problem}");
        assert!(problem.contains("choose"), "{problem}");
    }
}

#[test]
fn what_belongs_to_rounds_is_refused_by_name() {
    for (setting, value, says) in [
        ("accept_at", "coordinator", "expected accept_at verifier"),
        ("tree", "comb:3", "tree 'comb:3'"),
        ("draft_len", "4", "draft_len 'fixed'"),
        (
            "draft_len",
            "confidence:0.4",
            "draft_len 'confidence:0.4:0'",
        ),
        ("drafting", "cascade", "choose drafting model or max-gram"),
        ("verification", "block", "verification coupled"),
        ("target", "lossy", "target exact"),
    ] {
        let (field, problem) = refused(&streamed("coupled").with(setting, value), 1.0);
        assert_eq!(field, "schedule", "{setting}: {problem}");
        assert!(problem.contains(says), "{problem}");
    }
    let bounded = resolve(&streamed("coupled").with("draft_cap", 9)).expect("bounded");
    assert_eq!(bounded.draft_most, Some(9));
}

#[test]
fn schedules_are_called_by_their_names() {
    assert_eq!(
        resolve(&of("coupled")).expect("fits").schedule,
        Schedule::Rounds
    );
    for schedule in [Schedule::Rounds, Schedule::Stream] {
        assert_eq!(
            names::schedule(names::of_schedule(schedule)),
            Ok(Some(schedule))
        );
    }
    assert_eq!(names::schedule("auto"), Ok(None));
    let error = names::schedule("waves").expect_err("unknown");
    let reported = "schedule: 'waves' is unknown, expected one of auto, rounds, stream";
    assert_eq!(error.to_string(), reported);
}
