//! Stop rules with a residual that lasts for as long as drafting would have gone on.

use super::{Choosing, drafter, learned, serving};
use crate::client::{With, generate, request};
use crate::cluster::draft;
use crate::prompts;

/// At temperature 0 every sample of the target is its own choice; above it the output stays exact, and no drafter or
/// verifier is lost over it.
#[tokio::test]
async fn stop_rules_go_with_greedy_block_verification() {
    let drafter = drafter(vec![draft()], |_| {}).await;
    let serving = serving(&[&drafter]).await;
    let (mut lengths, mut refused) = (std::collections::BTreeSet::<u32>::new(), 0);
    for (index, prompt) in prompts::mixed(4).iter().enumerate() {
        for temperature in [0.0, 1.0] {
            let requested = request(prompt, 48).temperature(temperature);
            let requested = requested.seed(index as u64);
            let alone = requested.clone().method("target-only");
            let alone = generate(&serving.coordinator, alone).await;
            let max_gram = || requested.clone().by("max-gram");
            let ways = [
                requested.clone().policy("confidence:0.4:0"),
                requested.clone().policy("entropy:1.5:0"),
                requested
                    .clone()
                    .policy("entropy:2.5:0")
                    .with("draft_cap", 3),
                max_gram().policy("confidence:0.3:0"),
                max_gram().policy(learned(0.8)),
            ];
            for requested in ways {
                let what = format!("{:?} T={temperature} {prompt:?}", requested.settings);
                let requested = requested.method("block-greedy");
                let answer = generate(&serving.coordinator, requested).await;
                if temperature == 0.0 {
                    assert_eq!(answer.tokens, alone.tokens, "{what}");
                }
                assert!(answer.finished.exact, "{what}");
                assert_eq!(answer.fallbacks(), 0, "{what}");
                let statistics = answer.statistics();
                lengths.extend(&statistics.per_step_drafted);
                let drafted = statistics.num_draft_tokens;
                refused += drafted - statistics.num_accepted_draft_tokens;
            }
        }
    }
    assert!(lengths.len() > 4, "{lengths:?}");
    assert!(refused > 0);
}
