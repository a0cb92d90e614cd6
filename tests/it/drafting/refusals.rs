//! What a drafter cannot do, and what does not go together, is refused by name before anything is
//! generated.

use wire::v1::GenerateRequest;

use super::{Choosing, drafter, learned, max_gram_alone, plain_drafter, serving};
use crate::client::{With, generate, request};
use crate::cluster::{config, coordinator, draft, drafter_with, target, verifier, verifier_with};
use crate::errors::each_refused;

fn requested() -> GenerateRequest {
    request("Once upon a time", 8)
}

#[tokio::test]
async fn what_a_drafter_lacks_is_named_at_once() {
    let plain = plain_drafter().await;
    let here = serving(&[&plain]).await;
    let coordinator = &here.coordinator;
    let coupled = requested().policy(learned(0.7));
    let cascade = || {
        (
            "settings.drafting | 'draft' | no cascade",
            requested().by("cascade"),
        )
    };
    let lacking = vec![
        (
            "settings.draft_len | 'draft' | label 'coupled' | outrider-bench train-head",
            coupled.clone(),
        ),
        (
            "settings.draft_len | label 'rejection' | outrider-bench train-head",
            coupled.method("rejection"),
        ),
        cascade(),
    ];
    each_refused(coordinator, lacking).await;
    // What it can do is done, before and after.
    generate(coordinator, requested().policy("confidence:0.4:0")).await;
    each_refused(coordinator, vec![cascade()]).await;

    let alone = max_gram_alone().await;
    let here = serving(&[&alone]).await;
    generate(&here.coordinator, requested().by("max-gram")).await;
    // Who asks for what every other drafter has is served by the target, and told why.
    for _ in 0..3 {
        let by_model = requested().by("model");
        let answer = generate(&here.coordinator, by_model).await;
        let reason = &answer.statistics().fallbacks[0].reason;
        assert!(reason.contains("'max-gram' has no draft model"), "{reason}");
    }
}

#[tokio::test]
async fn trees_that_fit_no_round_are_refused() {
    let limit = 12.try_into().expect("not zero");
    let (verifier, _) = verifier_with(target(), |config| config.max_draft_tokens = limit).await;
    let (drafter, _) = drafter_with(draft(), |_| {}).await;
    let here = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    let comb = |siblings| requested().tree(format!("comb:{siblings}"));
    let too_large = vec![
        (
            "settings.tree | 4 levels of 4 nodes are 16 | 12",
            comb(4).draft_len(4),
        ),
        ("settings.tree | 13 nodes | 12", comb(13)),
    ];
    each_refused(&here, too_large).await;
    // Where the request does not say how deep, it is as deep as fits.
    let answer = generate(&here, comb(4)).await;
    assert_eq!(answer.setting("draft_len"), Some("3"));
    assert_eq!(answer.fallbacks(), 0);
}

#[tokio::test]
async fn a_drafter_of_small_blocks_drafts_small_trees() {
    let limit = 6.try_into().expect("not zero");
    let (verifier, _) = verifier(target()).await;
    let (drafter, _) = drafter_with(draft(), |config| config.max_draft_tokens = limit).await;
    let here = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    let answer = generate(&here, requested().tree("comb:3").draft_len(4)).await;
    assert_eq!(answer.fallbacks(), 0);
    let drafted = &answer.statistics().per_step_drafted;
    assert_eq!(drafted.iter().max(), Some(&6));
    // The drafter was heard of by now.
    let wide = ("settings.tree | at most 6 | 8", requested().tree("comb:8"));
    each_refused(&here, vec![wide]).await;
}

/// What else does not go together is tested in `speculation`.
#[tokio::test]
async fn what_does_not_go_together_is_named() {
    let drafter = drafter(vec![draft()], |_| {}).await;
    let here = serving(&[&drafter]).await;
    let comb = |siblings| requested().tree(format!("comb:{siblings}"));
    let max_gram = || requested().by("max-gram");
    let at_coordinator = |requested: GenerateRequest| requested.with("accept_at", "coordinator");
    let distributions = GenerateRequest {
        report_distributions: true,
        ..at_coordinator(max_gram().method("rejection"))
    };
    let threshold = "settings.draft_len | 0 to 1";
    let cases = vec![
        ("report_distributions | 'max-gram'", distributions),
        (
            "settings.tree | 'coupled' or 'token'",
            comb(4).method("block"),
        ),
        (
            "settings.tree | 'cascade'",
            comb(4).by("cascade").method("rejection"),
        ),
        ("settings.tree | verifier", at_coordinator(comb(4))),
        ("settings.drafting | exact", max_gram().method("lossy")),
        (
            "settings.draft_len | model",
            max_gram().policy("entropy:1.0:0"),
        ),
        ("settings.tree | 2 to 64", comb(1)),
        (threshold, requested().policy(learned(1.5))),
    ];
    each_refused(&here.coordinator, cases).await;
}

#[tokio::test]
async fn without_drafters_only_what_a_drafter_must_do_is_refused() {
    let (verifier, _) = verifier(target()).await;
    let here = coordinator(config(&[], &[verifier.url()])).await;
    let answer = generate(&here, requested()).await;
    assert_eq!(answer.setting("schedule"), Some("stream"));
    let special = vec![
        (
            "settings.drafting | needs a drafter | 'default'",
            requested().by("cascade"),
        ),
        (
            "settings.draft_len | needs a drafter | 'default'",
            requested().policy(learned(0.7)),
        ),
    ];
    each_refused(&here, special).await;
}
