//! A drafter lost mid-stream, whoever it drafted with; and one that comes back with less.

use wire::v1::{FinishReason, Origin};

use super::{Choosing, drafter, every_way, max_gram_alone, plain_drafter, serving};
use crate::client::{With, collect, generate, request, with_fault};
use crate::cluster::{client, config, coordinator, draft, target, verifier};
use crate::relay::Relay;

const MAX_TOKENS: u32 = 100;

#[tokio::test]
async fn a_drafter_lost_mid_stream_is_done_without_in_every_way() {
    let requested = request("Once upon a time", MAX_TOKENS).ignoring_eos();
    let whole = {
        let drafter = plain_drafter().await;
        let serving = serving(&[&drafter]).await;
        generate(
            &serving.coordinator,
            requested.clone().method("target-only"),
        )
        .await
    };
    for (what, requested) in every_way(&requested) {
        let drafter = drafter(vec![draft()], |_| {}).await;
        let serving = serving(&[&drafter]).await;
        let answer = with_fault(&serving.coordinator, requested, 20, || drop(drafter)).await;
        assert_eq!(answer.tokens, whole.tokens, "{what}");
        assert_eq!(answer.finished.reason(), FinishReason::Length, "{what}");
        // A request that rests does not miss its drafter.
        let rested = what.contains("goodput") && answer.statistics().rested_tokens > 0;
        let lost = answer.fallbacks() > 0;
        assert!((lost || rested) && answer.finished.exact, "{what}");
    }
}

/// Where the other replica cannot draft as asked, the target goes on alone, and the reason is told.
#[tokio::test]
async fn a_drafter_that_comes_back_without_its_cascade_is_not_asked_for_it() {
    let able = drafter(vec![draft()], |_| {}).await;
    let plain = plain_drafter().await;
    let relay = Relay::start(able.address).await;
    let (verifier, _) = verifier(target()).await;
    let coordinator = coordinator(config(&[relay.url()], &[verifier.url()])).await;
    let requested = request("Once upon a time", MAX_TOKENS).ignoring_eos();
    let whole = generate(&coordinator, requested.clone().method("target-only")).await;
    let come_back = || relay.lead_to(Some(plain.address));
    let requested = requested.by("cascade");
    let answer = with_fault(&coordinator, requested, 20, come_back).await;
    assert_eq!(answer.tokens, whole.tokens);
    let fallbacks = &answer.statistics().fallbacks;
    let mut reasons = fallbacks.iter().map(|fallback| &fallback.reason);
    let is_told = reasons.any(|reason| reason.contains("configure drafter.cascade"));
    assert!(is_told, "{fallbacks:?}");
}

/// A drafter that was started anew with what it lacked is asked again before a request is refused; and
/// one that lost it is found out.
#[tokio::test]
async fn what_a_restarted_drafter_can_do_is_asked_again() {
    let able = drafter(vec![draft()], |_| {}).await;
    let plain = plain_drafter().await;
    let relay = Relay::start(plain.address).await;
    let (verifier, _) = verifier(target()).await;
    let coordinator = coordinator(config(&[relay.url()], &[verifier.url()])).await;
    let requested = request("Once upon a time", 24).by("cascade");
    let refused = client(&coordinator).generate(requested.clone()).await;
    let refused = refused.expect_err("no cascade").message().to_owned();
    assert!(refused.contains("holds no cascade"), "{refused}");
    relay.lead_to(Some(able.address));
    let answer = generate(&coordinator, requested.clone()).await;
    assert!(answer.origins.contains(&Origin::Accepted));
    relay.lead_to(Some(plain.address));
    let mut message = None;
    // The first request may still be admitted by what was known.
    for _ in 0..3 {
        match client(&coordinator).generate(requested.clone()).await {
            Ok(parts) => drop(collect(parts.into_inner(), |_| ()).await),
            Err(status) => message = Some(status.message().to_owned()),
        }
    }
    let message = message.expect("refused once it is known");
    assert!(message.contains("holds no cascade"), "{message}");
}

/// While the drafter that can is away, one that cannot makes no request fail.
#[tokio::test]
async fn a_drafter_that_cannot_does_not_stand_for_one_that_is_away() {
    let (able, alone) = (drafter(vec![draft()], |_| {}).await, max_gram_alone().await);
    let relay = Relay::start(able.address).await;
    let (verifier, _) = verifier(target()).await;
    let drafters = [relay.url(), alone.url()];
    let coordinator = coordinator(config(&drafters, &[verifier.url()])).await;
    let requested = request("Once upon a time", 24);
    let whole = generate(&coordinator, requested.clone().method("target-only")).await;
    for away in [false, true] {
        relay.lead_to((!away).then_some(able.address));
        for who in ["model", "cascade", "max-gram"] {
            for _ in 0..3 {
                let answer = generate(&coordinator, requested.clone().by(who)).await;
                assert_eq!(answer.tokens, whole.tokens, "{who:?}, away: {away}");
            }
        }
    }
}

/// Of two drafters the request goes to the one that can.
#[tokio::test]
async fn a_request_goes_to_a_drafter_that_can() {
    let (able, plain) = (drafter(vec![draft()], |_| {}).await, plain_drafter().await);
    let serving = serving(&[&plain, &able]).await;
    let mut accepted = false;
    for seed in 0..8 {
        let requested = request("Once upon a time", 24).seed(seed);
        let answer = generate(&serving.coordinator, requested.by("cascade")).await;
        assert_eq!(answer.fallbacks(), 0, "{:?}", answer.statistics().fallbacks);
        accepted |= answer.origins.contains(&Origin::Accepted);
    }
    assert!(accepted);
}
