//! With coupled verification the output is the target's own, whatever was drafted.

use futures_util::future::join_all;
use wire::v1::{FinishReason, GenerateRequest, Origin};

use crate::client::{With, generate, request};
use crate::cluster::{Cluster, draft, random_draft};
use crate::prompts;

/// A way of asking for drafts.
pub(crate) type Way = fn(GenerateRequest) -> GenerateRequest;

/// Chains of several lengths.
const CHAINS: [Way; 3] = [
    |requested| requested.draft_len(1),
    |requested| requested.draft_len(4),
    |requested| requested.draft_len(8),
];

/// Every prompt, temperature and way against the target alone with the same seed.
pub(crate) async fn equals_target_only(cluster: &Cluster, few: usize, ways: &[Way]) {
    let mut drafted = 0;
    for (index, prompt) in prompts::mixed(few).into_iter().enumerate() {
        for temperature in [0.0, 1.0] {
            let requested = request(&prompt, 48)
                .temperature(temperature)
                .seed(index as u64);
            let alone = generate(
                &cluster.coordinator,
                requested.clone().method("target-only"),
            )
            .await;
            assert!(alone.origins.iter().all(|&origin| origin == Origin::Target));
            for (way, change) in ways.iter().enumerate() {
                let coupled = generate(&cluster.coordinator, change(requested.clone())).await;
                assert_eq!(
                    coupled.tokens, alone.tokens,
                    "T={temperature}, way {way}, {prompt:?}"
                );
                assert_eq!(coupled.text, alone.text);
                assert_eq!(coupled.finished.reason(), alone.finished.reason());
                assert!(coupled.finished.exact && coupled.fallbacks() == 0);
                drafted += coupled.statistics().num_draft_tokens;
            }
        }
    }
    assert!(drafted > 0, "nothing was ever drafted");
}

#[tokio::test]
async fn coupled_equals_target_only() {
    equals_target_only(&Cluster::start(draft()).await, 8, &CHAINS).await;
}

#[tokio::test]
async fn coupled_equals_target_only_with_a_draft_model_that_knows_nothing() {
    let cluster = Cluster::start(random_draft(|_| {})).await;
    equals_target_only(&cluster, 4, &CHAINS).await;
}

#[tokio::test]
async fn parallel_requests_do_not_disturb_each_other() {
    let cluster = Cluster::start(draft()).await;
    let prompts = prompts::mixed(8);
    let mut alone = Vec::new();
    for prompt in &prompts {
        alone.push(
            generate(&cluster.coordinator, request(prompt, 40))
                .await
                .tokens,
        );
    }
    let together = prompts.iter().map(|prompt| {
        let requested = request(prompt, 40);
        let coordinator = &cluster.coordinator;
        async move { generate(coordinator, requested).await.tokens }
    });
    let together = join_all(together).await;
    assert_eq!(together, alone);
}

#[tokio::test]
async fn a_seed_gives_its_tokens_again_and_another_gives_others() {
    let cluster = Cluster::start(draft()).await;
    let requested = request("Once upon a time", 40).ignoring_eos();
    let first = generate(&cluster.coordinator, requested.clone()).await;
    assert_eq!(
        first.tokens,
        generate(&cluster.coordinator, requested.clone())
            .await
            .tokens
    );
    assert_ne!(
        first.tokens,
        generate(&cluster.coordinator, requested.clone().seed(43))
            .await
            .tokens
    );
    let mut choice = requested;
    choice.choice = 1;
    assert_ne!(
        first.tokens,
        generate(&cluster.coordinator, choice).await.tokens
    );
    assert_eq!(first.finished.reason(), FinishReason::Length);
}

#[tokio::test]
async fn every_method_runs_at_both_temperatures_and_repeats_itself() {
    let cluster = Cluster::start(draft()).await;
    for method in speculation::methods::METHODS {
        for temperature in [0.0, 1.0] {
            let requested = request("Once upon a time", 32)
                .method(method.name)
                .temperature(temperature);
            let answer = generate(&cluster.coordinator, requested.clone().ignoring_eos()).await;
            assert_eq!(answer.tokens.len(), 32, "{}", method.name);
            assert_eq!(answer.finished.effective_method, method.name);
            // Without faults even the methods that promise less are a function of the seed.
            let again = generate(&cluster.coordinator, requested.ignoring_eos()).await;
            assert_eq!(again.tokens, answer.tokens, "{}", method.name);
        }
    }
}

/// At temperature 0 rejection accepts exactly the target's argmax.
#[tokio::test]
async fn greedy_rejection_equals_target_only() {
    let cluster = Cluster::start(draft()).await;
    for prompt in prompts::mixed(6) {
        let requested = request(&prompt, 40).temperature(0.0);
        let alone = generate(
            &cluster.coordinator,
            requested.clone().method("target-only"),
        )
        .await;
        let rejection = generate(&cluster.coordinator, requested.method("rejection")).await;
        assert_eq!(rejection.tokens, alone.tokens);
    }
}

#[tokio::test]
async fn penalties_bans_and_cuts_are_the_same_on_both_sides() {
    let cluster = Cluster::start(draft()).await;
    let (mut rounds, mut accepted) = (0, 0);
    for seed in 0..8 {
        let mut requested = request("Once upon a time", 48).draft_len(8).seed(seed);
        let sampling = requested.sampling.get_or_insert_default();
        sampling.temperature = Some(0.8);
        sampling.top_k = 50;
        sampling.top_p = Some(0.95);
        sampling.min_p = 0.01;
        // Strong enough that a draft token changes the distribution of those after it in the same block.
        sampling.repetition_penalty = Some(1.3);
        sampling.presence_penalty = 3.0;
        sampling.frequency_penalty = 1.0;
        sampling.min_tokens = 40;
        sampling.banned_token_ids = vec![14, 16];
        let alone = generate(
            &cluster.coordinator,
            requested.clone().method("target-only"),
        )
        .await;
        let coupled = generate(&cluster.coordinator, requested).await;
        assert_eq!(coupled.tokens, alone.tokens);
        assert!(coupled.tokens.len() >= 40);
        assert!(coupled.tokens.iter().all(|token| ![14, 16].contains(token)));
        let statistics = coupled.statistics();
        rounds += statistics.num_spec_steps;
        accepted += statistics.num_accepted_draft_tokens;
    }
    // The distributions are near enough that drafting pays.
    assert!(
        accepted * 3 > rounds,
        "{accepted} accepted in {rounds} rounds"
    );
}

/// Drafts longer than a peer takes are simply shorter.
#[tokio::test]
async fn the_peers_limits_bound_the_draft() {
    use crate::cluster::{config, coordinator, drafter_with, target, verifier_with};
    let (drafter, _) = drafter_with(draft(), |config| config.max_draft_tokens = small(3)).await;
    for (verifier_limit, longest) in [(2, 2), (64, 3)] {
        let limit = small(verifier_limit);
        let (verifier, _) = verifier_with(target(), |config| config.max_draft_tokens = limit).await;
        let coordinator = coordinator(config(&[drafter.url()], &[verifier.url()])).await;
        let answer = generate(&coordinator, request("Once upon a time", 40).draft_len(16)).await;
        let drafted = &answer.statistics().per_step_drafted;
        assert_eq!(drafted.iter().max(), Some(&longest));
    }
}

fn small(limit: u32) -> std::num::NonZeroU32 {
    limit.try_into().expect("not zero")
}
