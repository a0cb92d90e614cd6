//! Drafters that are lost, come back, or say nothing: the target goes on without them.

use wire::v1::{FinishReason, Origin};

use super::{requested, target_only};
use crate::client::{With, begin, collect, generate, request, with_fault};
use crate::cluster::{
    PATIENCE, config, coordinator, draft, drafter, pair, silent, target, verifier,
};
use crate::prompts;
use crate::relay::Relay;
use crate::same::assert_same;

#[tokio::test]
async fn a_drafter_killed_mid_stream_is_done_without() {
    let (verifier, _) = verifier(target()).await;
    for (index, prompt) in prompts::mixed(4).iter().enumerate() {
        let (drafter, _) = drafter(draft()).await;
        let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
        let requested = requested(index, prompt);
        let expected = target_only(&coordinator, &requested).await;
        let answer = with_fault(&coordinator, requested.clone(), 20, || drop(drafter)).await;
        assert_same(&requested, &answer.tokens, &expected);
        assert_eq!(answer.finished.reason(), FinishReason::Length);
        assert!(answer.fallbacks() > 0, "the loss is told");
        assert!(answer.finished.exact);
    }
}

#[tokio::test]
async fn a_drafter_that_was_never_there_is_done_without() {
    let (verifier, _) = verifier(target()).await;
    let nobody = "http://127.0.0.1:9".to_owned();
    let coordinator = coordinator(config(&[nobody], &[verifier.url()])).await;
    let requested = requested(1, "Once upon a time");
    let expected = target_only(&coordinator, &requested).await;
    let answer = generate(&coordinator, requested.clone()).await;
    assert_same(&requested, &answer.tokens, &expected);
    assert_eq!(answer.finished.effective_method, "target-only");
    assert!(answer.fallbacks() > 0);
}

#[tokio::test]
async fn a_drafter_that_comes_back_is_used_again() {
    let (drafter, verifier) = pair().await;
    let relay = Relay::start(drafter.address).await;
    let coordinator = coordinator(config(&[relay.url()], &[verifier.url()])).await;
    let requested = request("Once upon a time", 400).ignoring_eos();
    let expected = target_only(&coordinator, &requested).await;
    let parts = begin(&coordinator, requested.clone()).await;
    let (mut gone, mut back) = (false, false);
    let answer = collect(parts, |tokens| {
        if tokens >= 20 && !gone {
            gone = true;
            relay.lead_to(None);
        }
        if tokens >= 40 && !back {
            back = true;
            relay.lead_to(Some(drafter.address));
        }
    });
    let answer = answer.await;
    assert_same(&requested, &answer.tokens, &expected);
    assert!(gone && back);
    let fallbacks = &answer.statistics().fallbacks;
    let after = fallbacks.last().expect("the loss is told").position as usize;
    let again = &answer.origins[after..];
    assert!(
        again.contains(&Origin::Accepted),
        "drafting goes on: {again:?}"
    );
}

#[tokio::test]
async fn a_silent_drafter_is_not_waited_for_long() {
    let (_silent, address, _) = silent().await;
    let (drafter, verifier) = pair().await;
    let relay = Relay::start(drafter.address).await;
    let mut config = config(&[relay.url()], &[verifier.url()]);
    config.draft_timeout_ms = 300.try_into().expect("not zero");
    config.round_timeout_ms = 300_000.try_into().expect("not zero");
    let coordinator = coordinator(config).await;
    let requested = requested(1, "Once upon a time");
    let expected = target_only(&coordinator, &requested).await;
    let began = std::time::Instant::now();
    let answer = with_fault(&coordinator, requested.clone(), 20, || {
        relay.lead_to(Some(address));
    })
    .await;
    assert_same(&requested, &answer.tokens, &expected);
    assert!(answer.fallbacks() > 0);
    assert!(began.elapsed() < PATIENCE);
}
