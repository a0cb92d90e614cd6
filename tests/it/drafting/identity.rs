//! Nothing is lost count of: what was drafted and what the target was called for came to tokens, or
//! is told to be discarded.

use speculation::methods::METHODS;
use wire::v1::{FinishReason, GenerateRequest, Origin};

use super::{Choosing, drafter, every_way, plain_drafter, serving};
use crate::client::{Answer, With, generate, request};
use crate::cluster::draft;
use crate::drafter::smaller;
use crate::prompts;

/// Drafted + target calls = emitted + discarded + withheld (Huang et al., "SpecDec++"; the last are
/// tokens that an end or a limit cut off).
fn balances(what: &str, answer: &Answer) {
    let reported = answer.statistics();
    assert_eq!(
        reported.drafted + reported.target_forwards,
        answer.tokens.len() as u32 + reported.discarded + reported.withheld,
        "{what}: {reported:?}"
    );
    assert!(
        reported.num_draft_tokens <= reported.drafted,
        "{what}: {reported:?}"
    );
}

/// The same of a plan that verifies every block, of an answer that no text ended.
fn holds(what: &str, answer: &Answer) {
    balances(what, answer);
    let reported = answer.statistics();
    assert_eq!(
        reported.num_draft_tokens, reported.drafted,
        "{what}: {reported:?}"
    );
    // The target adds nothing after an end token that was drafted and accepted.
    let ended = answer.finished.reason() == FinishReason::Stop;
    let by_draft = answer.origins.last() == Some(&Origin::Accepted);
    assert_eq!(
        reported.withheld > 0,
        ended && by_draft,
        "{what}: {reported:?}"
    );
}

/// Ways of drafting and verifications that change tokens, but not their distribution.
fn ways_of_rejection(requested: &GenerateRequest) -> Vec<(String, GenerateRequest)> {
    let mut ways = Vec::new();
    for method in ["rejection", "block"] {
        for (who, drafting) in [("max-gram", "max-gram"), ("cascade", "cascade")] {
            let requested = requested.clone().method(method).by(drafting);
            ways.push((format!("{method} {who}"), requested));
        }
        // At temperature 0 there is no distribution to cut.
        let greedy = requested.sampling.as_ref().and_then(|set| set.temperature) == Some(0.0);
        if !greedy {
            let mut whole = requested.clone().method(method).by("cascade");
            whole.set("proposal", "dense:f32");
            ways.push((format!("{method} whole cascade"), whole));
        }
    }
    let greedy = requested.clone().method("block-greedy").by("max-gram");
    ways.push(("block-greedy max-gram".to_owned(), greedy));
    ways
}

#[tokio::test]
async fn the_identity_holds_in_every_way() {
    let drafter = drafter(vec![draft(), smaller()], |_| {}).await;
    let serving = serving(&[&drafter]).await;
    let (mut ended, mut sure) = (0, 0);
    for (index, prompt) in prompts::mixed(4).iter().enumerate() {
        for temperature in [0.0, 0.7, 1.0] {
            let requested = request(prompt, 90)
                .temperature(temperature)
                .seed(index as u64);
            let coupled = every_way(&requested).into_iter();
            let coupled = coupled.map(|(what, requested)| (what.to_owned(), requested));
            for (what, requested) in coupled.chain(ways_of_rejection(&requested)) {
                let answer = generate(&serving.coordinator, requested).await;
                let what = format!("{what} T={temperature} {prompt:?}");
                assert_eq!(answer.fallbacks(), 0, "{what}: {:?}", answer.statistics());
                // Where drafting does not pay, the target decodes alone.
                let drafted = answer.statistics().num_draft_tokens > 0;
                let rested = answer.statistics().rested_tokens > 0;
                if what.starts_with("sure max-gram") {
                    // A text may have no match that is sure enough.
                    sure += u32::from(drafted);
                } else {
                    assert!(drafted || what.contains("goodput") && rested, "{what}");
                }
                holds(&what, &answer);
                ended += u32::from(answer.statistics().withheld > 0);
            }
        }
    }
    assert!(ended > 0, "no draft ever ended an output");
    assert!(sure > 0, "Max-Gram was never sure");
}

/// A stop text is found when tokens behind it are out, drafted or on their way.
#[tokio::test]
async fn the_identity_holds_where_a_stop_text_cuts() {
    let drafter = drafter(vec![draft(), smaller()], |_| {}).await;
    let serving = serving(&[&drafter]).await;
    let mut taken_back = 0;
    for (index, prompt) in prompts::mixed(3).iter().enumerate() {
        let requested = request(prompt, 60).seed(index as u64).ignoring_eos();
        let whole = generate(
            &serving.coordinator,
            requested.clone().method("target-only"),
        )
        .await;
        for at in [6, 21, 40] {
            let mut requested = requested.clone();
            requested.stop = vec![whole.text.chars().skip(at).take(3).collect()];
            let coupled = every_way(&requested).into_iter();
            let coupled = coupled.map(|(what, requested)| (what.to_owned(), requested));
            for (what, requested) in coupled.chain(ways_of_rejection(&requested)) {
                let is_coupled = !what.contains("rejection") && !what.contains("block");
                let answer = generate(&serving.coordinator, requested).await;
                let what = format!("{what} stop {at} {prompt:?}");
                let stopped = answer.finished.reason() == FinishReason::Stop;
                assert!(stopped || !is_coupled, "{what}");
                balances(&what, &answer);
                taken_back += answer.statistics().withheld;
            }
        }
    }
    assert!(taken_back > 0, "no token was ever taken back");
}

/// Plans that emit drafts as they are verify none, or only some of them.
#[tokio::test]
async fn the_identity_holds_in_every_plan() {
    let drafter = plain_drafter().await;
    let serving = serving(&[&drafter]).await;
    let mut unverified = 0;
    for (index, prompt) in prompts::mixed(3).iter().enumerate() {
        for method in METHODS {
            for temperature in [0.0, 1.0] {
                let requested = request(prompt, 60).seed(index as u64);
                let requested = requested.method(method.name).temperature(temperature);
                let answer = generate(&serving.coordinator, requested.clone()).await;
                let what = format!("{} T={temperature} {prompt:?}", method.name);
                balances(&what, &answer);
                let reported = answer.statistics();
                unverified += reported.drafted - reported.num_draft_tokens;
                let mut stopped = requested;
                stopped.stop = vec![answer.text.chars().skip(20).take(3).collect()];
                let answer = generate(&serving.coordinator, stopped).await;
                balances(&format!("{what}, stopped"), &answer);
            }
        }
    }
    assert!(unverified > 0, "every draft token was verified");
}

/// At temperature 0 rejection is token matching, whoever drafts.
#[tokio::test]
async fn greedy_rejection_gives_the_targets_tokens_in_every_way() {
    let drafter = drafter(vec![draft(), smaller()], |config| {
        config.cascade.lenience = 2.0;
    })
    .await;
    let serving = serving(&[&drafter]).await;
    for prompt in &prompts::mixed(3) {
        let requested = request(prompt, 40).temperature(0.0);
        let alone = generate(
            &serving.coordinator,
            requested.clone().method("target-only"),
        )
        .await;
        for (what, requested) in ways_of_rejection(&requested) {
            let answer = generate(&serving.coordinator, requested).await;
            assert_eq!(answer.tokens, alone.tokens, "{what} {prompt:?}");
        }
    }
}
