//! Whatever is asked for, the answer is that of the target alone.

use futures_util::future::join_all;
use wire::v1::{LogitBias, Origin, SamplingParams};

use super::{
    assert_accepted, assert_equal, equals_target_only, patient, repeating, sampled, streamed,
    without_drafters,
};
use crate::client::{With, generate, request};
use crate::cluster::{Cluster, config, coordinator, draft, drafter};
use crate::errors::each_refused;
use crate::prompts;

/// How tokens are drawn.
type Sampling = fn(&mut SamplingParams);

#[tokio::test]
async fn repeated_texts_take_fewer_forwards_and_are_the_targets() {
    let (coordinator, _verifier) = without_drafters().await;
    let requested = repeating(80).temperature(0.0).ignoring_eos();
    let answer = equals_target_only(&coordinator, &requested, "greedy").await;
    assert_accepted(&answer, "greedy");
    assert_eq!(answer.setting("schedule"), Some("stream"));
    assert_eq!(answer.setting("drafting"), Some("max-gram"));
    let accepted = answer.origins.iter();
    let accepted = accepted.filter(|&&origin| origin == Origin::Accepted);
    let counted = answer.statistics();
    assert_eq!(accepted.count() as u32, counted.num_accepted_draft_tokens);
    assert_eq!(counted.rounds, 1);
}

#[tokio::test]
async fn without_a_drafter_it_is_the_default_and_rounds_are_the_targets_alone() {
    let (coordinator, _verifier) = without_drafters().await;
    let requested = repeating(40).temperature(0.0).ignoring_eos();
    let expected = generate(&coordinator, requested.clone().method("target-only")).await;
    for (what, asked, is_streamed) in [
        ("nothing", requested.clone(), true),
        ("a method", requested.clone().method("coupled"), true),
        ("who", requested.clone().with("drafting", "max-gram"), true),
        ("a cap", requested.clone().with("draft_cap", 8), true),
        ("a length", requested.clone().draft_len(4), false),
        (
            "rounds",
            requested.clone().with("schedule", "rounds"),
            false,
        ),
        (
            "another method",
            requested.clone().method("rejection"),
            false,
        ),
    ] {
        let answer = generate(&coordinator, asked).await;
        assert_eq!(answer.tokens, expected.tokens, "{what}");
        let schedule = answer.setting("schedule");
        assert_eq!(schedule == Some("stream"), is_streamed, "{what}");
        let effective = &answer.finished.effective_method;
        assert_eq!(effective != "target-only", is_streamed, "{what}");
        if is_streamed {
            assert_accepted(&answer, what);
        }
    }
    let both = requested.with("drafting", "max-gram").draft_len(4);
    let refused = vec![(
        "settings.drafting | needs a drafter | schedule stream",
        both,
    )];
    each_refused(&coordinator, refused).await;
}

#[tokio::test]
async fn prompts_of_all_kinds_at_both_temperatures() {
    let (verifier, _) = patient(|_| {}).await;
    let (drafter, monitor) = drafter(draft()).await;
    let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
    let (mut accepted, mut refused) = (0, 0);
    for (index, prompt) in prompts::mixed(6).iter().enumerate() {
        for temperature in [0.0, 1.0] {
            let requested = request(prompt, 60).temperature(temperature);
            let requested = requested.seed(index as u64);
            let what = format!("T={temperature}, {prompt:?}");
            let answer = equals_target_only(&coordinator, &requested, &what).await;
            let counted = answer.statistics();
            accepted += counted.num_accepted_draft_tokens;
            refused += counted.num_draft_tokens - counted.num_accepted_draft_tokens;
        }
    }
    assert!(accepted > 0 && refused > 0, "{accepted} {refused}");
    // The drafter that there is has nothing to do.
    assert_eq!(monitor.engine().forwards, 0);
}

#[tokio::test]
async fn what_changes_distributions_as_the_text_grows_counts_the_drafts_before() {
    let (coordinator, _verifier) = without_drafters().await;
    let mut all_accepted = 0;
    for seed in 0..2 {
        for temperature in [0.0, 0.7] {
            let ways: [(&str, Sampling); 6] = [
                ("penalties", |it| {
                    it.repetition_penalty = Some(1.05);
                    it.presence_penalty = 0.2;
                    it.frequency_penalty = 0.1;
                }),
                ("rewards", |it| {
                    it.presence_penalty = -1.0;
                    it.frequency_penalty = -0.5;
                }),
                ("bias", |it| {
                    it.logit_bias = (100..140)
                        .map(|token_id| LogitBias {
                            token_id,
                            bias: 2.0,
                        })
                        .collect();
                }),
                ("bans", |it| it.banned_token_ids = vec![14, 16]),
                ("cuts", |it| {
                    (it.top_k, it.top_p, it.min_p) = (20, Some(0.9), 0.02);
                }),
                ("a least length", |it| it.min_tokens = 50),
            ];
            for (what, change) in ways {
                let requested = repeating(60).temperature(temperature).seed(seed);
                let requested = sampled(requested, change);
                let what = format!("{what}, T={temperature}, seed {seed}");
                let answer = equals_target_only(&coordinator, &requested, &what).await;
                all_accepted += answer.statistics().num_accepted_draft_tokens;
            }
        }
    }
    assert!(all_accepted > 200, "{all_accepted} accepted");
}

#[tokio::test]
async fn log_probabilities_are_the_targets_bit_for_bit() {
    let (coordinator, _verifier) = without_drafters().await;
    for (temperature, top_logprobs) in [(0.0, 0), (0.0, 5), (1.0, 20)] {
        let mut requested = repeating(60).temperature(temperature).ignoring_eos();
        (requested.logprobs, requested.top_logprobs) = (true, top_logprobs);
        requested.prompt_logprobs = top_logprobs > 0;
        let what = format!("T={temperature}, {top_logprobs}");
        let answer = equals_target_only(&coordinator, &requested, &what).await;
        assert_eq!(answer.logprobs.len(), 60, "{what}");
        if temperature == 0.0 {
            assert_accepted(&answer, &what);
        }
    }
}

#[tokio::test]
async fn requests_of_both_schedules_share_forwards_and_no_token() {
    let cluster = Cluster::start(draft()).await;
    let requested = |seed: u64| {
        let requested = repeating(60).temperature((seed % 3) as f32 / 2.0);
        requested.seed(seed).ignoring_eos()
    };
    let mut expected = Vec::new();
    for seed in 0..8 {
        let alone = requested(seed).method("target-only");
        expected.push(generate(&cluster.coordinator, alone).await);
    }
    let together = (0..8).map(|seed| {
        let requested = match seed % 4 {
            0 => requested(seed).method("target-only"),
            1 => requested(seed).draft_len(4),
            _ => streamed(requested(seed)),
        };
        generate(&cluster.coordinator, requested)
    });
    let together = join_all(together).await;
    for (seed, (found, expected)) in together.iter().zip(&expected).enumerate() {
        assert_equal(found, expected, &format!("seed {seed}"));
    }
}
