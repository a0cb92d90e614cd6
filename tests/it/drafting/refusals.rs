//! What a drafter cannot do, and what does not go together, is refused by name before anything is
//! generated.

use wire::v1::draft_length::Policy;
use wire::v1::tree_shape::Shape;
use wire::v1::{AcceptAt, Drafting, GenerateRequest};

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
            "drafting | 'draft' | no cascade",
            requested().by(Drafting::Cascade),
        )
    };
    let lacking = vec![
        (
            "draft_length | 'draft' | label 'coupled' | outrider-bench train-head",
            coupled.clone(),
        ),
        (
            "draft_length | label 'rejection' | outrider-bench train-head",
            coupled.method("rejection"),
        ),
        cascade(),
    ];
    each_refused(coordinator, lacking).await;
    // What it can do is done, before and after.
    generate(coordinator, requested().policy(Policy::Confidence(0.4))).await;
    each_refused(coordinator, vec![cascade()]).await;

    let alone = max_gram_alone().await;
    let here = serving(&[&alone]).await;
    generate(&here.coordinator, requested().by(Drafting::MaxGram)).await;
    // Who asks for what every other drafter has is served by the target, and told why.
    for _ in 0..3 {
        let by_model = requested().by(Drafting::Model);
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
    let comb = |siblings| requested().tree(Shape::Comb(siblings));
    let too_large = vec![
        (
            "tree | 4 levels of 4 nodes are 16 | 12",
            comb(4).draft_len(4),
        ),
        ("tree | 13 nodes | 12", comb(13)),
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
    let answer = generate(&here, requested().tree(Shape::Comb(3)).draft_len(4)).await;
    assert_eq!(answer.fallbacks(), 0);
    let drafted = &answer.statistics().per_step_drafted;
    assert_eq!(drafted.iter().max(), Some(&6));
    // The drafter was heard of by now.
    let wide = ("tree | at most 6 | 8", requested().tree(Shape::Comb(8)));
    each_refused(&here, vec![wide]).await;
}

/// What else does not go together is tested in `speculation`.
#[tokio::test]
async fn what_does_not_go_together_is_named() {
    let drafter = drafter(vec![draft()], |_| {}).await;
    let here = serving(&[&drafter]).await;
    let comb = |siblings| requested().tree(Shape::Comb(siblings));
    let max_gram = || requested().by(Drafting::MaxGram);
    let at_coordinator = |requested: GenerateRequest| GenerateRequest {
        accept_at: AcceptAt::Coordinator.into(),
        ..requested
    };
    let distributions = GenerateRequest {
        report_distributions: true,
        ..at_coordinator(max_gram().method("rejection"))
    };
    let threshold = "draft_length.learned.threshold | 0 to 1";
    let cases = vec![
        ("report_distributions | 'max-gram'", distributions),
        ("tree | 'coupled' or 'token'", comb(4).method("block")),
        (
            "tree | 'cascade'",
            comb(4).by(Drafting::Cascade).method("rejection"),
        ),
        ("tree | verifier", at_coordinator(comb(4))),
        ("drafting | exact", max_gram().method("lossy")),
        (
            "draft_length | model",
            max_gram().policy(Policy::Entropy(1.0)),
        ),
        ("tree.comb | 2 to 64", comb(1)),
        (threshold, requested().policy(learned(1.5))),
    ];
    each_refused(&here.coordinator, cases).await;
}

#[tokio::test]
async fn without_drafters_only_what_a_drafter_must_do_is_refused() {
    let (verifier, _) = verifier(target()).await;
    let here = coordinator(config(&[], &[verifier.url()])).await;
    let answer = generate(&here, requested()).await;
    assert_eq!(answer.finished.effective_method, "target-only");
    let special = vec![
        (
            "drafting | needs a drafter | 'default'",
            requested().by(Drafting::MaxGram),
        ),
        (
            "draft_length | needs a drafter | 'default'",
            requested().policy(learned(0.7)),
        ),
    ];
    each_refused(&here, special).await;
}
