//! With the schedule `stream` the target decodes, and drafts come as they come: the answer is the target's own.

mod drafters;
mod ends;
mod exactness;
mod losses;
mod predictions;
mod readers;
mod refusals;

use std::sync::Arc;
use std::time::Duration;

use ops::process::Process;
use verifier::{Verifier, VerifierConfig};
use wire::v1::{GenerateRequest, SamplingParams, Usage};

use crate::client::{Answer, With, generate, request};
use crate::cluster::{Service, config, coordinator, target, verifier_in};
use crate::paced::{Pace, paced};

/// A text whose repetition the model goes on with, first as Max-Gram does: " many apples does Tom have". Then it says a line
/// of its own again and again.
const REPEATING: &str = "Question: Tom has 12 apples. He gives 5 apples to Ann. How many apples does Tom have left?\n\
    Answer: Tom has 12 - 5 = 7 apples left. The answer is 7.\n\
    Question: Tom has 12 apples. He gives 5 apples to Ann. How many apples does Tom have left?\n\
    Answer: Tom has 12 - 5 = 7 apples left. The answer is 7.\n\
    Question: Tom has 12 apples. He gives 5 apples to Ann. How";

fn repeating(max_tokens: u32) -> GenerateRequest {
    request(REPEATING, max_tokens)
}

fn streamed(requested: GenerateRequest) -> GenerateRequest {
    requested.with("schedule", "stream")
}

/// `requested`, drawn otherwise.
fn sampled(
    requested: GenerateRequest,
    change: impl FnOnce(&mut SamplingParams),
) -> GenerateRequest {
    let mut requested = requested;
    change(requested.sampling.get_or_insert_default());
    requested
}

/// A verifier whose forwards take so long that drafts come before they are over, on a busy machine too. Whether they do changes
/// how many are accepted, and nothing else.
async fn patient(configure: impl FnOnce(&mut VerifierConfig)) -> (Service, Arc<Verifier>) {
    let pace = Pace::default();
    pace.slow(Duration::from_millis(4));
    let mut config = VerifierConfig::default();
    #[cfg(feature = "llama-cpp")]
    crate::llama_cpp::suites::bound("target", &mut config.engine);
    configure(&mut config);
    verifier_in(Process::default(), paced(target(), &pace), config).await
}

/// A verifier and a coordinator, and no drafter: none is needed.
async fn without_drafters() -> (Service, Service) {
    let (verifier, _) = patient(|_| {}).await;
    let coordinator = coordinator(config(&[], &[verifier.url()])).await;
    (coordinator, verifier)
}

/// What a client sees of an answer, but for how it was cut into parts and where its tokens come from.
fn assert_equal(found: &Answer, expected: &Answer, what: &str) {
    assert_eq!(found.tokens, expected.tokens, "{what}");
    assert_eq!(found.text, expected.text, "{what}");
    assert_eq!(found.pieces, expected.pieces, "{what}");
    assert_eq!(found.logprobs, expected.logprobs, "{what}");
    assert_eq!(found.prompt_logprobs, expected.prompt_logprobs, "{what}");
    let [ended, as_expected] = [found, expected].map(|answer| {
        let finished = &answer.finished;
        (
            finished.reason(),
            finished.error.clone(),
            finished.usage.map(computed),
            finished.seed,
        )
    });
    assert_eq!(ended, as_expected, "{what}");
    assert!(found.finished.exact && found.finished.lossless, "{what}");
    assert!(found.finished.reproducible, "{what}");
}

/// Without what was reused: the first of two requests computes what the second finds.
fn computed(usage: Usage) -> Usage {
    Usage {
        cached_prompt_tokens: 0,
        ..usage
    }
}

/// Checks that the streamed answer is the target's own, and that its counts come to what they should.
async fn equals_target_only(
    coordinator: &Service,
    requested: &GenerateRequest,
    what: &str,
) -> Answer {
    let alone = requested.clone().method("target-only");
    let expected = generate(coordinator, alone).await;
    let found = generate(coordinator, streamed(requested.clone())).await;
    assert_equal(&found, &expected, what);
    assert_eq!(found.fallbacks(), 0, "{what}");
    assert_eq!(found.finished.effective_method, "coupled", "{what}");
    let counted = found.statistics();
    let tokens = found.tokens.len() as u32;
    assert_eq!(
        counted.drafted + counted.target_forwards,
        tokens + counted.discarded + counted.withheld,
        "{what}: {counted:?}"
    );
    assert_eq!(counted.draft_forwards, 0, "{what}");
    found
}

/// Checks that drafts saved forwards of the target.
fn assert_accepted(answer: &Answer, what: &str) {
    let counted = answer.statistics();
    assert!(
        counted.num_accepted_draft_tokens > 0
            && (counted.target_forwards as usize) < answer.tokens.len(),
        "{what}: {counted:?}"
    );
}
