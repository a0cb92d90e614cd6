//! Whatever is asked for, the answer is that of the target alone.

use futures_util::future::join_all;
use wire::v1::{FinishReason, GenerateRequest, LogitBias, Origin, SamplingParams};

use super::{
    assert_accepted, assert_equal, equals_target_only, repeating, streamed, without_drafters,
};
use crate::client::{With, generate, request};
use crate::cluster::{Cluster, draft};
use crate::prompts;

fn sampled(
    requested: GenerateRequest,
    change: impl FnOnce(&mut SamplingParams),
) -> GenerateRequest {
    let mut requested = requested;
    change(requested.sampling.get_or_insert_default());
    requested
}

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
async fn prompts_of_all_kinds_at_both_temperatures() {
    let cluster = Cluster::start(draft()).await;
    let (mut accepted, mut refused) = (0, 0);
    for (index, prompt) in prompts::mixed(6).iter().enumerate() {
        for temperature in [0.0, 1.0] {
            let requested = request(prompt, 60).temperature(temperature);
            let requested = requested.seed(index as u64);
            let what = format!("T={temperature}, {prompt:?}");
            let answer = equals_target_only(&cluster.coordinator, &requested, &what).await;
            let counted = answer.statistics();
            accepted += counted.num_accepted_draft_tokens;
            refused += counted.num_draft_tokens - counted.num_accepted_draft_tokens;
        }
    }
    assert!(accepted > 0 && refused > 0, "{accepted} {refused}");
    // The drafter that there is has nothing to do.
    assert_eq!(cluster.draft_monitor.engine().forwards, 0);
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
async fn an_end_token_among_the_drafts_ends_the_answer_there() {
    let (coordinator, _verifier) = without_drafters().await;
    let requested = repeating(60).temperature(0.0).ignoring_eos();
    let whole = equals_target_only(&coordinator, &requested, "whole").await;
    for at in 8..40 {
        let end = whole.tokens[at];
        if whole.tokens[..at].contains(&end) {
            continue;
        }
        let mut requested = requested.clone();
        requested.stop_token_ids = vec![end];
        let what = format!("end at {at}");
        let answer = equals_target_only(&coordinator, &requested, &what).await;
        assert_eq!(answer.finished.reason(), FinishReason::Stop, "{what}");
        assert_eq!(answer.tokens, whole.tokens[..=at], "{what}");
        // It may not end before.
        let late = sampled(requested, |it| it.min_tokens = at as u32 + 4);
        equals_target_only(&coordinator, &late, &format!("{what}, later")).await;
    }
}

#[tokio::test]
async fn a_stop_string_ends_the_answer_wherever_it_falls() {
    let (coordinator, _verifier) = without_drafters().await;
    let requested = repeating(60).temperature(0.0).ignoring_eos();
    let whole = equals_target_only(&coordinator, &requested, "whole").await;
    assert_accepted(&whole, "whole");
    let letters: Vec<(usize, char)> = whole.text.char_indices().collect();
    for (at, len) in [(0, 3), (20, 7), (41, 12), (60, 2), (75, 18), (90, 5)] {
        let Some(&(begin, _)) = letters.get(at) else {
            continue;
        };
        let end = letters
            .get(at + len)
            .map_or(whole.text.len(), |&(end, _)| end);
        let mut requested = requested.clone();
        requested.stop = vec![whole.text[begin..end].to_owned(), "never".to_owned()];
        let what = format!("stop {:?}", requested.stop);
        let answer = equals_target_only(&coordinator, &requested, &what).await;
        assert_eq!(answer.finished.reason(), FinishReason::Stop, "{what}");
        assert!(whole.text.starts_with(&answer.text), "{what}");
    }
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
