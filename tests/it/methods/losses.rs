//! Methods under faults: retries repeat every draw, and what is false never reaches the output.

use wire::v1::{FinishReason, Origin};

use super::Choosing;
use crate::client::{With, generate, request, try_generate, with_fault};
use crate::cluster::{config, coordinator, draft, drafter, drafter_with, pair, target, verifier};
use crate::relay::Relay;
use crate::tampering::{Forgery, Mode, Tampering, tampered};

/// Retries repeat every draw, and residual layers live with the request.
#[tokio::test]
async fn each_reply_lost_once_changes_no_token_of_any_method() {
    let (drafter, verifier) = pair().await;
    let calm = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    for (method, at_coordinator) in [
        ("block", false),
        ("block-greedy", false),
        ("block-greedy", true),
        ("spec-cascade", false),
        ("spec-cascade", true),
        ("token-cascade", false),
        ("sequence-cascade", false),
        ("bild", true),
    ] {
        // Each loss costs a pause, so the output is short.
        let mut requested = request("Once upon a time", 10).method(method);
        if at_coordinator {
            requested = requested.at_coordinator();
        }
        let expected = generate(&calm, requested.clone()).await;
        let (tampering, coordinator) = tampered(Mode::LoseOnce, &drafter, &verifier).await;
        let answer = generate(&coordinator, requested).await;
        assert_eq!(answer.tokens, expected.tokens, "{method}");
        assert!(answer.finished.exact, "{method}");
        assert!(tampering.count() > 0, "{method}");
    }
}

/// A window of BiLD takes several drafts, and what the target refuses of it the drafter still holds: a drafter
/// whose stream broke goes on after the output, and not after that.
#[tokio::test]
async fn a_drafter_does_not_resume_on_tokens_that_were_refused() {
    let (drafter, _) = drafter_with(draft(), |config| {
        config.max_draft_tokens = 3.try_into().expect("not zero");
    })
    .await;
    let (verifier, _) = verifier(target()).await;
    let calm = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    for seed in 0..4 {
        let requested = request("Once upon a time", 24).method("bild").seed(seed);
        // The drafter is never unsure, and the target refuses much.
        let mut requested = requested.alpha(2.0).ignoring_eos();
        requested.set("window", 8);
        requested.set("fallback", 0.0);
        let expected = generate(&calm, requested.clone()).await;
        let refused = expected.origins.contains(&Origin::Recovered);
        assert!(refused, "nothing was refused with seed {seed}");
        let (tampering, coordinator) = tampered(Mode::LoseOnce, &drafter, &verifier).await;
        let answer = generate(&coordinator, requested).await;
        assert!(tampering.count() > 0);
        assert_eq!(answer.tokens, expected.tokens, "seed {seed}");
        assert!(answer.finished.exact);
    }
}

/// Nothing of a lie reaches the output: the target goes on alone, and says that this is not what
/// was asked for where it is not.
#[tokio::test]
async fn a_drafter_that_lies_about_its_distributions_is_done_without() {
    const OF_RULES: [Forgery; 2] = [Forgery::ConfidencesNotNumbers, Forgery::NoConfidences];
    let (drafter, verifier) = pair().await;
    let of_distributions = [
        Forgery::TokensWithoutMass,
        Forgery::NoWeights,
        Forgery::TooFew,
    ];
    for forgery in of_distributions.into_iter().chain(OF_RULES) {
        let mode = Mode::Forge(forgery);
        let (_tampering, coordinator) = tampered(mode, &drafter, &verifier).await;
        for method in "rejection block block-greedy lossy spec-cascade".split(' ') {
            let is_cascade = method == "spec-cascade";
            if OF_RULES.contains(&forgery) && !is_cascade {
                continue;
            }
            let requested = request("Once upon a time", 60).ignoring_eos();
            let alone = requested.clone().method("target-only");
            let alone = generate(&coordinator, alone).await;
            let requested = requested.method(method);
            for requested in [requested.clone(), requested.at_coordinator()] {
                let answer = generate(&coordinator, requested).await;
                assert_eq!(answer.tokens, alone.tokens, "{method} {forgery:?}");
                assert!(answer.fallbacks() > 0, "{method} {forgery:?}");
                let lossless = !is_cascade && method != "lossy";
                assert_eq!(answer.finished.exact, lossless, "{method} {forgery:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_distribution_that_never_comes_after_the_block_ends_in_the_target_alone() {
    let (drafter, verifier) = pair().await;
    let mode = Mode::Forge(Forgery::NoBonus);
    let (_tampering, coordinator) = tampered(mode, &drafter, &verifier).await;
    let requested = request("Once upon a time", 60).method("spec-cascade");
    let requested = requested.draft_len(1).ignoring_eos();
    for requested in [requested.clone(), requested.at_coordinator()] {
        let answer = generate(&coordinator, requested).await;
        assert_eq!(answer.tokens.len(), 60);
        assert!(answer.fallbacks() > 0 && !answer.finished.exact);
    }
}

/// Without what a rule reads, nothing is guessed.
#[tokio::test]
async fn unscaled_distributions_that_do_not_come_are_not_replaced_by_others() {
    let (drafter, verifier) = pair().await;
    let mode = Mode::Forge(Forgery::NoUnscaled);
    let (_tampering, coordinator) = tampered(mode, &drafter, &verifier).await;
    let requested = request("Once upon a time", 40)
        .temperature(0.7)
        .ignoring_eos();
    let alone = generate(&coordinator, requested.clone().method("target-only")).await;
    for form in ["", "dense:f32", "dense:f16"] {
        let mut requested = requested.clone().method("spec-cascade").rule("token-v1");
        if !form.is_empty() {
            requested.set("proposal", form);
        }
        for requested in [requested.clone(), requested.at_coordinator()] {
            let answer = generate(&coordinator, requested).await;
            assert_eq!(answer.tokens, alone.tokens, "{form:?}");
            assert!(answer.fallbacks() > 0 && !answer.finished.exact);
        }
    }
}

/// The drafter is silent while the verifier's answer is under way: it is the drafter that is lost.
#[tokio::test]
async fn a_distribution_that_is_waited_for_in_vain_is_nobody_elses_fault() {
    let (drafter, verifier) = pair().await;
    let addresses = (drafter.address, verifier.address);
    let (_tampering, url) = Tampering::start(Mode::HoldBonus, addresses.0, addresses.1).await;
    let mut config = config(&[url], &[verifier.url()]);
    config.draft_timeout_ms = 2_000.try_into().expect("not zero");
    config.round_timeout_ms = 1_000.try_into().expect("not zero");
    config.retries = 0;
    let coordinator = coordinator(config).await;
    let requested = request("Once upon a time", 40).method("spec-cascade");
    let requested = requested.draft_len(1).ignoring_eos().at_coordinator();
    let answer = generate(&coordinator, requested).await;
    assert_eq!(answer.tokens.len(), 40);
    let statistics = answer.statistics();
    assert!(!statistics.fallbacks.is_empty() && !answer.finished.exact);
}

/// Layers speak of the draft distribution, and any replica of the same model knows it.
#[tokio::test]
async fn layers_go_on_with_another_drafter_of_the_same_model() {
    let (old, _) = drafter(draft()).await;
    let (fresh, _) = drafter(draft()).await;
    let (verifier, _) = verifier(target()).await;
    let relay = Relay::start(old.address).await;
    let coordinator = coordinator(config(&[relay.url()], &[verifier.url()])).await;
    let requested = request("Once upon a time", 60)
        .method("block-greedy")
        .ignoring_eos();
    let expected = generate(&coordinator, requested.clone()).await;
    let move_on = || relay.lead_to(Some(fresh.address));
    let answer = with_fault(&coordinator, requested, 20, move_on).await;
    assert!(answer.finished.exact);
    assert_eq!(answer.fallbacks(), 0);
    assert_eq!(answer.tokens, expected.tokens);
}

#[tokio::test]
async fn what_no_verifier_says_never_reaches_a_decision_at_the_coordinator() {
    let (drafter, verifier) = pair().await;
    let addresses = (drafter.address, verifier.address);
    for (mode, said) in [
        (Mode::ForgeSlices, "slice.probs"),
        (Mode::ForgeVerdicts, "a verdict came"),
    ] {
        let (_tampering, url) = Tampering::start(mode, addresses.0, addresses.1).await;
        let coordinator = coordinator(config(&[drafter.url()], &[url])).await;
        let requested = request("Once upon a time", 8).at_coordinator();
        let answer = try_generate(&coordinator, requested)
            .await
            .expect("it begins");
        assert_eq!(answer.finished.reason(), FinishReason::Error);
        let error = &answer.finished.error;
        assert!(error.contains(said), "{error}");
        assert!(answer.tokens.is_empty());
    }
}
