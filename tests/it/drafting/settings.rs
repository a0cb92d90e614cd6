//! What was chosen of drafting is told afterwards.

use std::time::Instant;

use ::coordinator::DefaultDrafting;
use wire::v1::LogitBias;

use super::{Choosing, drafter, max_gram_alone, serving};
use crate::client::{With, generate, request};
use crate::cluster::{PATIENCE, config, coordinator, draft, target, verifier};

#[tokio::test]
async fn the_settings_tell_what_was_drafted_how() {
    let drafter = drafter(vec![draft()], |_| {}).await;
    let serving = serving(&[&drafter]).await;
    let requested = request("Once upon a time", 24).ignoring_eos();
    let names = ["drafting", "draft_len", "draft_cap", "tree"];
    let requested = || requested.clone();
    let comb = || requested().tree("comb:8");
    let goodput = "auto";
    let max_gram = requested().by("max-gram").draft_len(7);
    let unsure = requested().policy("confidence:0.4:0").with("draft_cap", 9);
    for (requested, reported) in [
        (requested(), ["model", "4", "", "chain"]),
        (max_gram, ["max-gram", "7", "", "chain"]),
        (requested().policy("3"), ["model", "3", "", "chain"]),
        (
            requested().policy(goodput),
            ["model", "auto", "20", "chain"],
        ),
        (unsure, ["model", "confidence:0.4:0", "9", "chain"]),
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

/// The draft model proposes, Max-Gram where no drafter has one, or who is configured to.
#[tokio::test]
async fn who_proposes_where_a_request_does_not_say() {
    let (alone, with_model) = (max_gram_alone().await, drafter(vec![draft()], |_| {}).await);
    let (verifier, _) = verifier(target()).await;
    let max_gram = DefaultDrafting::Fixed(speculation::drafting::Drafting::MaxGram);
    for (drafters, default, method, expected) in [
        (vec![&alone], DefaultDrafting::Auto, "", "max-gram"),
        (vec![&with_model], DefaultDrafting::Auto, "", "model"),
        (
            vec![&alone, &with_model],
            DefaultDrafting::Auto,
            "",
            "model",
        ),
        (vec![&with_model], max_gram, "", "max-gram"),
        // What the draft model writes is not what is copied.
        (vec![&with_model], max_gram, "draft-only", "model"),
    ] {
        let urls: Vec<_> = drafters.iter().map(|drafter| drafter.url()).collect();
        let mut config = config(&urls, &[verifier.url()]);
        config.drafting = default;
        let coordinator = coordinator(config).await;
        let mut requested = request("Once upon a time", 8).ignoring_eos();
        method.clone_into(&mut requested.method);
        // Drafters are asked for what they can do beside requests.
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = generate(&coordinator, requested.clone()).await;
            if answer.setting("drafting") == Some(expected) {
                assert!(answer.statistics().fallbacks.is_empty());
                break;
            }
            assert!(
                Instant::now() < until,
                "{expected}: {:?}",
                answer.setting("drafting")
            );
        }
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
        .policy("auto")
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
        .by("max-gram")
        .policy("auto")
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
