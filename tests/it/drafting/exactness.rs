//! Whoever drafts, however much and in whichever shape: the tokens are the target's own.

use model::source::ModelSource;
use speculation::verification::AcceptanceLabel;
use wire::v1::generate_request::Prompt;
use wire::v1::{FinishReason, GenerateRequest, SpeculationStatistics, TokenIds};

use super::{Choosing, drafter, every_way, learned, max_gram_alone, plain_drafter, serving};
use crate::client::{Answer, With, generate, request};
use crate::cluster::{Service, draft, random_draft};
use crate::drafter::learned::{head, saved};
use crate::drafter::smaller;
use crate::prompts;

const TEMPERATURES: [f32; 3] = [0.0, 0.7, 1.0];

/// Generates `requested` and checks it against the target alone.
async fn equals(
    coordinator: &Service,
    what: &str,
    requested: GenerateRequest,
    alone: &Answer,
) -> Answer {
    let answer = generate(coordinator, requested).await;
    assert_eq!(answer.tokens, alone.tokens, "{what}");
    assert_eq!(answer.text, alone.text, "{what}");
    assert_eq!(answer.finished.reason(), alone.finished.reason(), "{what}");
    assert!(answer.finished.exact, "{what}");
    assert_eq!(
        answer.fallbacks(),
        0,
        "{what}: {:?}",
        answer.statistics().fallbacks
    );
    answer
}

async fn target_only(coordinator: &Service, requested: &GenerateRequest) -> Answer {
    generate(coordinator, requested.clone().method("target-only")).await
}

#[tokio::test]
async fn every_way_of_drafting_gives_the_targets_tokens_under_penalties_too() {
    let drafter = drafter(vec![draft(), smaller()], |_| {}).await;
    let serving = serving(&[&drafter]).await;
    let mut accepted = std::collections::BTreeMap::new();
    for (index, prompt) in prompts::mixed(4).iter().enumerate() {
        let at = |temperature| {
            request(prompt, 40)
                .temperature(temperature)
                .seed(index as u64)
        };
        let mut variants = TEMPERATURES.map(at).to_vec();
        // Penalties and a least length count what was drafted before, along the node's own path.
        let mut penalised = at(0.7);
        let sampling = penalised.sampling.get_or_insert_default();
        sampling.repetition_penalty = Some(1.4);
        sampling.frequency_penalty = 0.5;
        (sampling.min_tokens, sampling.top_k) = (30, 50);
        variants.push(penalised);
        for requested in variants {
            let alone = target_only(&serving.coordinator, &requested).await;
            let of_three = requested.clone().by("cascade");
            let of_three = of_three.with("cascade_k", "3+2+9/0+2+4/0+0+5");
            let of_three = of_three.with("cascade_lenience", 2.0);
            let set = ("cascade of the request's own settings", of_three);
            for (what, requested) in every_way(&requested).into_iter().chain([set]) {
                let what_at = format!("{what} {:?} {prompt:?}", requested.sampling);
                let answer = equals(&serving.coordinator, &what_at, requested, &alone).await;
                *accepted.entry(what).or_insert(0) += answer.statistics().num_accepted_draft_tokens;
            }
        }
    }
    // In so short an output there may be no token that Max-Gram is sure enough of; see `settings`.
    accepted.remove("max-gram goodput");
    assert!(accepted.values().all(|&count| count > 0), "{accepted:?}");
}

/// End tokens are banned up to a position, not up to a round: a node's position is its depth's.
#[tokio::test]
async fn a_least_length_ends_within_a_block() {
    let drafter = plain_drafter().await;
    let serving = serving(&[&drafter]).await;
    let mut ended = 0;
    for prompt in &prompts::mixed(3) {
        let requested = request(prompt, 32).ignoring_eos();
        let whole = target_only(&serving.coordinator, &requested).await;
        for min_tokens in 3..11 {
            let mut requested = requested.clone();
            requested.stop_token_ids = whole.tokens.clone();
            requested.sampling.get_or_insert_default().min_tokens = min_tokens;
            let alone = target_only(&serving.coordinator, &requested).await;
            for shape in ["comb:8", "alternates:2"] {
                let what = format!("at least {min_tokens}, {shape:?}, {prompt:?}");
                let tree = requested.clone().tree(shape);
                let answer = equals(&serving.coordinator, &what, tree, &alone).await;
                ended += answer.statistics().withheld;
            }
        }
    }
    assert!(ended > 0, "no output ended within a tree");
}

/// Of a tree only its depth takes room in the models' contexts.
#[tokio::test]
async fn trees_are_drafted_up_to_the_contexts_end() {
    let drafter = plain_drafter().await;
    let serving = serving(&[&drafter]).await;
    let mut requested = request("", 24).temperature(0.0).ignoring_eos();
    let ids = (0..488).map(|at| 300 + at * 7 % 900).collect();
    requested.prompt = Some(Prompt::TokenIds(TokenIds { ids }));
    let alone = target_only(&serving.coordinator, &requested).await;
    assert_eq!(alone.tokens.len(), 24);
    let comb = requested.tree("comb:8");
    let answer = equals(&serving.coordinator, "a full context", comb, &alone).await;
    assert!(answer.statistics().num_draft_tokens > 0);
}

/// Every block has as many tokens as were asked for, or as many as may still be emitted with the target's
/// own behind them.
fn blocks_are_whole(what: &str, reported: &SpeculationStatistics, draft_len: u32, max_tokens: u32) {
    let mut left = max_tokens;
    for (&drafted, &accepted) in reported
        .per_step_drafted
        .iter()
        .zip(&reported.per_step_accepted)
    {
        assert_eq!(
            drafted,
            draft_len.min(left - 1),
            "{what}, {left} left: {reported:?}"
        );
        left -= accepted + 1;
    }
    // The very last token is the target's own.
    assert!(left <= 1, "{what}: {reported:?}");
}

/// No model reads the context for Max-Gram: where the draft model's is full, it drafts on.
#[tokio::test]
async fn max_gram_is_not_bound_by_the_draft_models_context() {
    let drafter = drafter(vec![random_draft(|config| config.context_len = 24)], |_| {}).await;
    let serving = serving(&[&drafter]).await;
    let requested = request("one two three one two three", 60).ignoring_eos();
    let alone = target_only(&serving.coordinator, &requested).await;
    let long = requested.clone().by("max-gram").draft_len(6);
    let answer = equals(&serving.coordinator, "max-gram", long, &alone).await;
    blocks_are_whole("max-gram", answer.statistics(), 6, 60);
    // The model itself is at its end by then.
    let by_model = generate(&serving.coordinator, requested.draft_len(6)).await;
    assert_eq!(by_model.tokens, alone.tokens);
    assert!(by_model.fallbacks() > 0, "{:?}", by_model.statistics());
}

/// An end token that is drafted, accepted or refused, at any depth of a tree.
#[tokio::test]
async fn end_tokens_end_every_way_of_drafting() {
    let drafter = drafter(vec![draft()], |_| {}).await;
    let serving = serving(&[&drafter]).await;
    for (index, prompt) in prompts::mixed(2).iter().enumerate() {
        for temperature in [0.0, 1.0] {
            let requested = request(prompt, 40)
                .temperature(temperature)
                .seed(index as u64)
                .ignoring_eos();
            let whole = target_only(&serving.coordinator, &requested).await;
            for at in [5, 12, 23] {
                let mut requested = requested.clone();
                requested.stop_token_ids = vec![whole.tokens[at], whole.tokens[at + 9]];
                let alone = target_only(&serving.coordinator, &requested).await;
                assert_eq!(alone.finished.reason(), FinishReason::Stop);
                for (what, requested) in every_way(&requested) {
                    let what = format!("{what} T={temperature} end {at} {prompt:?}");
                    equals(&serving.coordinator, &what, requested, &alone).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn cascades_of_every_matrix_and_lenience_give_the_targets_tokens() {
    let three = [
        (vec![vec![2, 2, 10], vec![0, 2, 10], vec![0, 0, 10]], 1.0),
        (vec![vec![1, 3, 0], vec![0, 1, 4], vec![0, 0, 2]], 3.0),
        (vec![vec![3, 0, 6], vec![0, 3, 1], vec![0, 0, 5]], 1.5),
    ];
    for (k, lenience) in three {
        let drafter = drafter(vec![draft(), smaller()], |config| {
            config.cascade.k.clone_from(&k);
            config.cascade.lenience = lenience;
        })
        .await;
        let serving = serving(&[&drafter]).await;
        for temperature in TEMPERATURES {
            let requested = request("Once upon a time", 40).temperature(temperature);
            let alone = target_only(&serving.coordinator, &requested).await;
            let what = format!("K={k:?} lenience={lenience} T={temperature}");
            let cascade = requested.by("cascade");
            let answer = equals(&serving.coordinator, &what, cascade, &alone).await;
            let forwards = &answer.statistics().draft_forwards_by_model;
            assert_eq!(forwards.len(), 2, "{what}: {forwards:?}");
            assert_eq!(
                forwards.iter().sum::<u32>(),
                answer.statistics().draft_forwards
            );
            assert!(
                forwards.iter().all(|&count| count > 0),
                "{what}: {forwards:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_drafter_of_max_gram_alone_serves() {
    let drafter = max_gram_alone().await;
    let serving = serving(&[&drafter]).await;
    let prompt = "one two three four one two three four one two three";
    for temperature in TEMPERATURES {
        let requested = request(prompt, 40).temperature(temperature).ignoring_eos();
        let alone = target_only(&serving.coordinator, &requested).await;
        for (draft_len, method) in [(1, ""), (8, ""), (8, "coupled")] {
            let requested = requested.clone().by("max-gram").draft_len(draft_len);
            let what = format!("K={draft_len} T={temperature}");
            let requested = requested.method(method);
            let answer = equals(&serving.coordinator, &what, requested, &alone).await;
            let reported = answer.statistics();
            assert_eq!(reported.draft_forwards, 0, "no model drafts");
            blocks_are_whole(&what, reported, draft_len, 40);
        }
    }
}

/// With a head that was never trained lengths vary, and nothing else does.
#[tokio::test]
async fn learned_stopping_gives_the_targets_tokens() {
    let (_folder, file) = saved(&head(AcceptanceLabel::Coupled));
    let mut model = ModelSource::embedded("draft").load().expect("embedded");
    model.heads.clear();
    let drafter = drafter(vec![model], |config| {
        config.heads = vec![file.display().to_string()];
    })
    .await;
    let serving = serving(&[&drafter]).await;
    let mut lengths = std::collections::BTreeSet::new();
    for temperature in TEMPERATURES {
        let requested = request("Once upon a time", 48).temperature(temperature);
        let alone = target_only(&serving.coordinator, &requested).await;
        for threshold in [0.0, 0.5, 0.9, 1.0] {
            let requested = requested.clone().policy(learned(threshold));
            let what = format!("h={threshold} T={temperature}");
            let answer = equals(&serving.coordinator, &what, requested.clone(), &alone).await;
            lengths.extend(answer.statistics().per_step_drafted.clone());
            let tree = requested.tree("alternates:1");
            equals(&serving.coordinator, &what, tree, &alone).await;
        }
    }
    assert!(lengths.len() > 3, "{lengths:?}");
    assert!(lengths.last() <= Some(&20), "{lengths:?}");
}
