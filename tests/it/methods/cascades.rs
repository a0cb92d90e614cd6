//! What each cascade promises: against the models alone, and against each other.

use speculation::target::RULES;
use wire::v1::{GenerateRequest, Origin};

use super::Choosing;
use crate::client::{Answer, With, generate, request};
use crate::cluster::{Cluster, draft, random_draft};
use crate::prompts;

/// Coupled tokens are the verifier's choices from π(q, p), whatever was drafted and however far.
#[tokio::test]
async fn a_coupled_cascade_equals_the_oracle_cascade() {
    let cluster = Cluster::start(draft()).await;
    for (index, prompt) in prompts::mixed(2).iter().enumerate() {
        for rule in RULES {
            let requested = request(prompt, 24).seed(index as u64).rule(rule.name);
            let oracle = generate(
                &cluster.coordinator,
                requested.clone().method("oracle-cascade"),
            );
            let oracle = oracle.await;
            let counts = oracle.statistics();
            assert_eq!(counts.target_forwards as usize, oracle.tokens.len());
            assert_eq!(counts.draft_forwards as usize, oracle.tokens.len());
            assert_eq!(counts.num_draft_tokens, 0);
            // The default α of the two methods differs; the oracle's rules it here.
            let alpha = oracle
                .setting("alpha")
                .expect("a setting")
                .parse()
                .expect("a number");
            for draft_len in [1, 3, 8] {
                let requested = requested.clone().method("spec-cascade").alpha(alpha);
                let cascade = generate(&cluster.coordinator, requested.draft_len(draft_len)).await;
                assert_eq!(
                    cascade.tokens, oracle.tokens,
                    "{} K={draft_len} {prompt:?}",
                    rule.name
                );
                let (a, b) = (cascade.statistics(), counts);
                let (a, b) = (
                    a.deferral_rate.expect("a rate"),
                    b.deferral_rate.expect("one"),
                );
                assert!((a - b).abs() < 1e-6, "{} {a} {b}", rule.name);
            }
        }
    }
}

/// Chow's rule reads q alone, so asking for the target only where it defers changes nothing.
#[tokio::test]
async fn the_token_cascade_without_a_limit_equals_the_oracle_cascade() {
    let cluster = Cluster::start(draft()).await;
    let mut deferred = 0;
    for (rule, alpha) in [("chow", 0.5), ("chow-log", 1.5)] {
        for (index, prompt) in prompts::mixed(3).iter().enumerate() {
            // The same distribution on both sides: the oracle would cut it to what it sends by default.
            let requested = request(prompt, 40)
                .proposal("dense:f32")
                .seed(index as u64)
                .rule(rule)
                .alpha(alpha);
            let oracle = generate(
                &cluster.coordinator,
                requested.clone().method("oracle-cascade"),
            );
            let oracle = oracle.await;
            let mut requested = requested.method("token-cascade");
            requested.set("max_run", 0);
            let cascade = generate(&cluster.coordinator, requested.clone()).await;
            assert_eq!(cascade.tokens, oracle.tokens, "{rule} {prompt:?}");
            let of_target = |answer: &Answer| {
                let is_deferred = |origin: &&Origin| **origin == Origin::Deferred;
                answer.origins.iter().filter(is_deferred).count()
            };
            assert_eq!(
                cascade.statistics().target_forwards as usize,
                of_target(&cascade)
            );
            deferred += of_target(&cascade);
            requested.set("max_run", 3);
            let limited = generate(&cluster.coordinator, requested).await;
            let runs = limited.origins.split(|&origin| origin == Origin::Deferred);
            assert!(runs.into_iter().all(|run| run.len() <= 3));
        }
    }
    assert!(deferred > 10, "{deferred} tokens deferred");
}

#[tokio::test]
async fn the_sequence_cascade_keeps_an_answer_whole_or_gives_it_anew() {
    let cluster = Cluster::start(draft()).await;
    let (mut kept, mut anew, mut same) = (0, 0, 0);
    for (index, prompt) in prompts::mixed(4).iter().enumerate() {
        let requested = request(prompt, 16).seed(index as u64);
        let small = generate(&cluster.coordinator, requested.clone().method("draft-only")).await;
        for alpha in [0.0, 0.999_999, 1.0] {
            let requested = requested.clone().method("sequence-cascade").alpha(alpha);
            let answer = generate(&cluster.coordinator, requested).await;
            let is_small = answer
                .origins
                .iter()
                .all(|&origin| origin == Origin::Accepted);
            if is_small {
                assert_eq!(answer.tokens, small.tokens);
                assert_eq!(answer.statistics().target_forwards, 0);
                kept += 1;
            } else {
                assert!(
                    answer
                        .origins
                        .iter()
                        .all(|&origin| origin == Origin::Deferred)
                );
                assert_eq!(answer.statistics().discarded as usize, small.tokens.len());
                assert_eq!(answer.statistics().deferral_rate, Some(1.0));
                // Noise of its own: that the first answer was discarded depends on the noise of that.
                let alone = request(prompt, 16).seed(index as u64).method("target-only");
                let alone = generate(&cluster.coordinator, alone).await;
                same += usize::from(answer.tokens == alone.tokens);
                anew += 1;
            }
            assert!(alpha < 1.0 || is_small, "α = 1 keeps every answer");
        }
    }
    assert!(kept > 3 && anew > 3, "{kept} kept, {anew} anew");
    assert_eq!(same, 0, "the target alone wrote the same with other noise");
}

/// At its defaults the method is a cascade: the models share the answers, long ones too.
#[tokio::test]
async fn the_sequence_cascade_keeps_some_answers_of_any_length() {
    let cluster = Cluster::start(draft()).await;
    for max_tokens in [8, 64] {
        let mut kept = 0;
        let prompts = prompts::mixed(24);
        for (index, prompt) in prompts.iter().enumerate() {
            let requested = request(prompt, max_tokens).seed(index as u64);
            let answer = generate(&cluster.coordinator, requested.method("sequence-cascade")).await;
            kept += usize::from(answer.statistics().deferral_rate == Some(0.0));
        }
        let share = kept as f64 / prompts.len() as f64;
        assert!(
            (0.1..=0.9).contains(&share),
            "{max_tokens} tokens: {share} kept"
        );
    }
}

/// A stop text ends the small model's answer before it is scored.
#[tokio::test]
async fn the_sequence_cascade_scores_an_answer_up_to_its_stop_text() {
    let cluster = Cluster::start(draft()).await;
    let mut requested = request("Once upon a time", 60).method("draft-only");
    let whole = generate(&cluster.coordinator, requested.clone()).await;
    let stop = whole.text.chars().skip(20).take(6).collect::<String>();
    requested.stop = vec![stop.clone()];
    let small = generate(&cluster.coordinator, requested.clone()).await;
    assert!(small.tokens.len() < whole.tokens.len());
    let kept = generate(
        &cluster.coordinator,
        requested.clone().method("sequence-cascade").alpha(1.0),
    )
    .await;
    assert_eq!((kept.text, kept.tokens), (small.text, small.tokens.clone()));
    // What comes after the stop text does not count: the sum over all of it would be too low.
    let of_whole = |requested: GenerateRequest| {
        let mut requested = requested.method("sequence-cascade").alpha(1.0 - 1e-9);
        requested.set("mean", false);
        requested
    };
    requested.stop.clear();
    let anew = generate(&cluster.coordinator, of_whole(requested.clone())).await;
    assert_eq!(anew.statistics().deferral_rate, Some(1.0));
    requested.stop = vec![stop];
    let kept = generate(&cluster.coordinator, of_whole(requested)).await;
    assert_eq!(kept.statistics().deferral_rate, Some(0.0));
}

/// α = 0 is the target itself, and any smaller α of TokenV3 too.
#[tokio::test]
async fn targets_that_come_to_p_equal_the_target_alone() {
    let cluster = Cluster::start(draft()).await;
    for (index, prompt) in prompts::mixed(3).iter().enumerate() {
        let requested = request(prompt, 40).seed(index as u64);
        let alone = generate(
            &cluster.coordinator,
            requested.clone().method("target-only"),
        )
        .await;
        let mut lossy = requested.clone().method("lossy").alpha(0.0);
        lossy.set("verification", "coupled");
        assert_eq!(
            generate(&cluster.coordinator, lossy).await.tokens,
            alone.tokens
        );
        for (rule, alpha) in [("token-v3", -0.1), ("diff", -1.0), ("chow", 0.0)] {
            let cascade = requested
                .clone()
                .method("spec-cascade")
                .rule(rule)
                .alpha(alpha);
            let cascade = generate(&cluster.coordinator, cascade).await;
            assert_eq!(cascade.tokens, alone.tokens, "{rule}");
            assert_eq!(cascade.statistics().deferral_rate, Some(1.0), "{rule}");
        }
    }
}

/// At the other end a cascade is the draft model alone.
#[tokio::test]
async fn targets_that_come_to_q_equal_the_draft_model_alone() {
    let cluster = Cluster::start(random_draft(|_| {})).await;
    let requested = request("Once upon a time", 40).proposal("dense:f32");
    let alone = generate(&cluster.coordinator, requested.clone().method("draft-only")).await;
    for (rule, alpha) in [("token-v3", 1.0), ("diff", 1.0), ("chow", 1.0)] {
        let cascade = requested
            .clone()
            .method("spec-cascade")
            .rule(rule)
            .alpha(alpha);
        let cascade = generate(&cluster.coordinator, cascade).await;
        assert_eq!(cascade.tokens, alone.tokens, "{rule}");
        assert_eq!(cascade.statistics().deferral_rate, Some(0.0), "{rule}");
    }
}

/// At temperature 0 BiLD is the authors' algorithm: an unsure drafter hands over, and a token the
/// target finds too unlikely is replaced.
#[tokio::test]
async fn bild_lies_between_the_models() {
    let cluster = Cluster::start(draft()).await;
    let requested = request("Once upon a time", 48)
        .temperature(0.0)
        .method("bild")
        .ignoring_eos();
    let strict = |fallback, rollback| {
        let mut requested = requested.clone().alpha(rollback);
        requested.set("fallback", fallback);
        requested.set("verify_on_finish", true);
        requested
    };
    let target = requested.clone().method("target-only");
    let target = generate(&cluster.coordinator, target).await;
    let draft_only = requested.clone().method("draft-only");
    let draft_only = generate(&cluster.coordinator, draft_only).await;
    // A drafter that always hands over.
    let handing = generate(&cluster.coordinator, strict(1.0, 5.0)).await;
    assert_eq!(handing.tokens, target.tokens);
    // A drafter that is never unsure, and a target that never objects.
    let mut free = requested.clone().alpha(100.0);
    free.set("fallback", 0.0);
    free.set("window", 64);
    let free = generate(&cluster.coordinator, free).await;
    assert_eq!(free.tokens, draft_only.tokens);
    assert_eq!(free.statistics().target_forwards, 0);
    let between = generate(&cluster.coordinator, requested).await;
    let calls = between.statistics().target_calls_per_token;
    assert!(calls > 0.0 && calls < 1.0, "{calls}");
}
