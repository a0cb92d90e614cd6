//! What was chosen of drafting is told afterwards.

use std::time::Instant;

use wire::v1::draft_length::Policy;
use wire::v1::tree_shape::Shape;
use wire::v1::{Drafting, LogitBias};

use super::{Choosing, drafter, serving};
use crate::client::{With, generate, request};
use crate::cluster::{PATIENCE, draft};

#[tokio::test]
async fn the_settings_tell_what_was_drafted_how() {
    let drafter = drafter(vec![draft()], |_| {}).await;
    let serving = serving(&[&drafter]).await;
    let requested = request("Once upon a time", 24).ignoring_eos();
    let names = ["drafting", "draft_len", "draft_cap", "tree"];
    let requested = || requested.clone();
    let comb = || requested().tree(Shape::Comb(8));
    let goodput = Policy::Goodput(true);
    let max_gram = requested().by(Drafting::MaxGram).draft_len(7);
    let unsure = requested().policy(Policy::Confidence(0.4)).draft_len(9);
    for (requested, reported) in [
        (requested(), ["model", "4", "", "chain"]),
        (max_gram, ["max-gram", "7", "", "chain"]),
        (
            requested().policy(Policy::Fixed(3)),
            ["model", "3", "", "chain"],
        ),
        (
            requested().policy(goodput.clone()),
            ["model", "auto", "20", "chain"],
        ),
        (unsure, ["model", "confidence:0.4", "9", "chain"]),
        (comb(), ["model", "4", "", "comb:8"]),
        (comb().policy(goodput), ["model", "auto", "8", "comb:8"]),
    ] {
        let answer = generate(&serving.coordinator, requested).await;
        let found = names.map(|name| answer.setting(name).unwrap_or_default());
        assert_eq!(found, reported);
        let forwards = answer.statistics().draft_forwards;
        // Under `auto` a request may rest from its beginning to its end.
        let rested = reported[1] == "auto" && answer.statistics().rested_tokens > 0;
        assert!(
            (forwards == 0) == (reported[0] == "max-gram") || rested,
            "{reported:?}: {forwards}"
        );
        let (length, cap) = (reported[1], reported[2]);
        let most = length.parse().or(cap.parse::<u32>()).expect("a number");
        let width = reported[3]
            .strip_prefix("comb:")
            .map_or(1, |n| n.parse().expect("a number"));
        let drafted = &answer.statistics().per_step_drafted;
        assert!(
            drafted.iter().all(|&drafted| drafted <= most * width),
            "{reported:?}: {drafted:?}"
        );
    }
}

/// What one request measured the next goes on from: it begins near the length that the one before came to,
/// where a fresh estimate begins with four tokens.
#[tokio::test]
async fn what_was_measured_is_kept_for_the_next_request() {
    let drafter = drafter(vec![draft()], |_| {}).await;
    let serving = serving(&[&drafter]).await;
    // Repetition: long blocks are accepted. Of Max-Gram's only what it is sure of is drafted, and so fewer than decided.
    let prompt = "the cat sat on the mat and ".repeat(8);
    let requested = request(&prompt, 60)
        .temperature(0.0)
        .policy(Policy::Goodput(true))
        .ignoring_eos();
    let mut firsts = Vec::new();
    for _ in 0..8 {
        let answer = generate(&serving.coordinator, requested.clone()).await;
        firsts.push(answer.statistics().per_step_drafted.first().copied());
    }
    // On a busy machine the target may decode whole answers alone at first.
    let mut firsts = firsts.into_iter().skip_while(Option::is_none);
    assert_eq!(firsts.next(), Some(Some(4)));
    assert!(firsts.any(|first| first != Some(4)));
}

/// Max-Gram drafts an output that repeats itself for nothing: it is sure of it, and few forwards make it.
#[tokio::test]
async fn max_gram_drafts_what_repeats_if_lengths_follow_what_pays() {
    let drafter = drafter(vec![draft()], |_| {}).await;
    let serving = serving(&[&drafter]).await;
    let mut requested = request("the cat sat on the mat and ", 60)
        .by(Drafting::MaxGram)
        .policy(Policy::Goodput(true))
        .ignoring_eos();
    let sampling = requested.sampling.get_or_insert_default();
    sampling.logit_bias.push(LogitBias {
        token_id: 100,
        bias: 100.0,
    });
    // On a busy machine it takes some answers until it is known what pays.
    let limit = Instant::now() + PATIENCE;
    loop {
        let answer = generate(&serving.coordinator, requested.clone()).await;
        assert!(answer.tokens.iter().all(|&token| token == 100));
        let accepted = answer.statistics().num_accepted_draft_tokens;
        if accepted > 20 {
            break;
        }
        let is_late = Instant::now() > limit;
        assert!(
            !is_late,
            "{accepted} of 60 tokens were drafted and accepted"
        );
    }
}
