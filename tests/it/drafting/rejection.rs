//! Trees whose nodes are tested against the distribution they were drawn from.

use wire::v1::GenerateRequest;

use super::{Choosing, drafter, learned, plain_drafter, serving};
use crate::client::{With, generate, request};
use crate::cluster::draft;
use crate::prompts;

/// Every way of drafting trees that go with rejection, by name.
fn trees(requested: &GenerateRequest) -> Vec<(&'static str, GenerateRequest)> {
    let tree = |shape| requested.clone().tree(shape).method("rejection");
    let max_gram = |shape| tree(shape).by("max-gram");
    vec![
        ("comb", tree("comb:4").draft_len(6)),
        ("alternates", tree("alternates:2").draft_len(5)),
        ("auto", tree("comb:3")),
        ("max-gram comb", max_gram("comb:4").draft_len(6)),
        (
            "sure max-gram alternates",
            max_gram("alternates:2").policy(learned(0.9)),
        ),
    ]
}

/// At temperature 0 every sample of the target is its own choice.
#[tokio::test]
async fn trees_give_the_targets_tokens_at_temperature_0() {
    let drafter = drafter(vec![draft()], |_| {}).await;
    let serving = serving(&[&drafter]).await;
    let mut accepted = std::collections::BTreeMap::new();
    for prompt in &prompts::mixed(4) {
        let requested = request(prompt, 48).temperature(0.0);
        let alone = requested.clone().method("target-only");
        let alone = generate(&serving.coordinator, alone).await;
        for (what, requested) in trees(&requested) {
            let answer = generate(&serving.coordinator, requested).await;
            assert_eq!(answer.tokens, alone.tokens, "{what} {prompt:?}");
            assert!(answer.finished.exact, "{what} {prompt:?}");
            assert_eq!(answer.fallbacks(), 0, "{what} {prompt:?}");
            *accepted.entry(what).or_insert(0) += answer.statistics().num_accepted_draft_tokens;
        }
    }
    accepted.remove("auto");
    assert!(accepted.values().all(|&count| count > 0), "{accepted:?}");
}

/// With the same length, siblings save forwards of the target; and with the same blocks a seed repeats the output.
#[tokio::test]
async fn trees_take_fewer_rounds_than_chains_and_a_seed_repeats_them() {
    let drafter = plain_drafter().await;
    let serving = serving(&[&drafter]).await;
    let mut forwards = [0; 3];
    for (index, prompt) in prompts::mixed(36).iter().enumerate() {
        let chain = request(prompt, 60).temperature(1.0).seed(index as u64);
        let chain = chain.method("rejection").draft_len(4);
        let shapes = ["comb:4", "alternates:2"];
        let trees = shapes.map(|shape| chain.clone().tree(shape));
        let ways = [chain].into_iter().chain(trees);
        for (sum, requested) in forwards.iter_mut().zip(ways) {
            let answer = generate(&serving.coordinator, requested.clone()).await;
            let again = generate(&serving.coordinator, requested).await;
            assert_eq!(answer.tokens, again.tokens, "{prompt:?}");
            assert!(answer.finished.exact && answer.fallbacks() == 0);
            *sum += answer.statistics().target_forwards;
        }
    }
    let [chain, comb, alternates] = forwards;
    assert!(comb < chain && alternates < chain, "{forwards:?}");
}
