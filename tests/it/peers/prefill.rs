//! A peer that computes is not a peer that is dead.

use std::time::Instant;

use wire::v1::GenerateRequest;

use super::{MS, ended, ms, paced_verifier, resting, retries};
use crate::client::{With, generate, request};
use crate::cluster::{config, coordinator, draft, drafter, target, verifier};
use crate::paced::Pace;

/// A prompt of some 250 tokens.
fn long() -> GenerateRequest {
    GenerateRequest {
        cache_prompt: Some(false),
        ..request(&"The cat sat on the mat. ".repeat(36), 6).ignoring_eos()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefill_longer_than_the_round_timeout_is_waited_for() {
    let pace = Pace::default();
    let verifier = paced_verifier(&pace, target(), |config| {
        config.engine.max_batch_tokens = 16.try_into().expect("not zero");
    });
    let verifier = verifier.await;
    let (drafter, _) = drafter(draft()).await;
    let mut config = config(&[drafter.url()], &[verifier.url()]);
    config.round_timeout_ms = ms(1_000);
    let coordinator = coordinator(config).await;
    // Known before the engine slows down.
    let expected = generate(&coordinator, long()).await.tokens;
    pace.slow(MS * 100);
    for method in ["", "target-only"] {
        let began = Instant::now();
        let answer = generate(&coordinator, long().method(method)).await;
        assert!(began.elapsed() > MS * 1_000, "the prefill was not long");
        assert_eq!(answer.tokens, expected, "{method}");
        let statistics = answer.statistics();
        assert_eq!((statistics.retries, statistics.migrations), (0, 0));
    }
    assert_eq!(
        (retries(&coordinator), resting(&coordinator, "verifier")),
        (0.0, 0.0)
    );
}

/// Its health check answers all the while: that is not enough.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_makes_no_progress_is_given_up() {
    let pace = Pace::default();
    let stuck = paced_verifier(&pace, target(), |_| {}).await;
    let (well, _) = verifier(target()).await;
    let mut config = config(&[], &[stuck.url(), well.url()]);
    config.round_timeout_ms = ms(1_500);
    let coordinator = coordinator(config).await;
    let expected = generate(&coordinator, long()).await.tokens;
    pace.hold();
    let mut migrations = 0;
    for _ in 0..8 {
        let answer = generate(&coordinator, long()).await;
        assert_eq!(answer.tokens, expected);
        migrations += answer.statistics().migrations;
    }
    pace.release();
    assert!(migrations > 0, "no session was at the stuck verifier");
    assert!(ended(&stuck, "late") > 0.0);
    assert_eq!(ended(&stuck, "overloaded"), 0.0);
}
