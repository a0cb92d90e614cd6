//! Log probabilities are the target model's own, whatever is drafted and wherever the output ends.

use model::Model;
use speculation::logprobs::{LogitsRow, TokenLogprobs};
use speculation::ports::{LanguageModel, Rows, Segment};
use wire::v1::generate_request::Prompt;
use wire::v1::{FinishReason, GenerateRequest, TokenIds};

use super::{drafter, every_way, serving};
use crate::client::{Answer, With, generate, request};
use crate::cluster::{draft, target};
use crate::drafter::smaller;

/// Alternatives that are requested.
const TOP: u32 = 5;

fn with_logprobs(mut requested: GenerateRequest) -> GenerateRequest {
    (requested.logprobs, requested.top_logprobs) = (true, TOP);
    requested
}

/// The log probabilities of `output` after `prompt`, by one forward of the model over all of it.
fn by_the_model(model: &mut Model, prompt: &[u32], output: &[u32]) -> Vec<TokenLogprobs> {
    let tokens = [prompt, output].concat();
    let (mut cache, mut rows) = (model.new_cache(), Rows::default());
    let segment = Segment {
        cache: &mut cache,
        tokens: &tokens,
        parents: &[],
        scored_from: prompt.len() - 1,
    };
    model.forward(&mut [segment], &mut rows).expect("a forward");
    let of_token = |(row, &token): (usize, &u32)| {
        let row = LogitsRow::of(rows.row(row)).expect("logits");
        row.logprobs(token, TOP as usize, &mut Vec::new())
    };
    output.iter().enumerate().map(of_token).collect()
}

fn assert_are(what: &str, answer: &Answer, expected: &[TokenLogprobs]) {
    assert_eq!(answer.logprobs.len(), answer.tokens.len(), "{what}");
    for (at, (found, expected)) in answer.logprobs.iter().zip(expected).enumerate() {
        let expected = wire::logprobs::to_wire(expected);
        assert_eq!(*found, expected, "{what}, token {at}");
    }
}

#[tokio::test]
async fn each_token_has_its_own_in_every_way() {
    let drafter = drafter(vec![draft(), smaller()], |_| {}).await;
    let serving = serving(&[&drafter]).await;
    let mut model = target().model;
    // A prompt that the test knows the tokens of.
    let prompt = [11, 60, 200, 31, 7];
    let tokens = TokenIds { ids: prompt.into() };
    let (mut drafted, mut reasons) = (0, Vec::new());
    for (temperature, seed, stop) in [(0.0, 1, ""), (1.0, 2, ""), (1.0, 3, "the"), (0.7, 4, "")] {
        let mut requested = request("", 60).temperature(temperature).seed(seed);
        requested.prompt = Some(Prompt::TokenIds(tokens.clone()));
        requested
            .stop
            .extend((!stop.is_empty()).then(|| stop.to_owned()));
        // Neither changes what the model itself thinks of a token.
        let sampling = requested.sampling.get_or_insert_default();
        sampling.top_p = Some(0.95);
        sampling.repetition_penalty = Some(1.1);
        let requested = with_logprobs(requested);
        let alone = requested.clone().method("target-only");
        let alone = generate(&serving.coordinator, alone).await;
        let expected = by_the_model(&mut model, &prompt, &alone.tokens);
        assert_are("target-only", &alone, &expected);
        reasons.push(alone.finished.reason());
        let mut ways = every_way(&requested);
        ways.push(("four", requested.clone().draft_len(4)));
        ways.push(("auto", requested.clone()));
        for (what, requested) in ways {
            let answer = generate(&serving.coordinator, requested).await;
            assert_eq!(
                (&answer.tokens, &answer.text),
                (&alone.tokens, &alone.text),
                "{what}"
            );
            let end = |answer: &Answer| (answer.finished.reason(), answer.finished.usage);
            assert_eq!(end(&answer), end(&alone), "{what}");
            assert_are(what, &answer, &expected);
            drafted += answer.statistics().num_accepted_draft_tokens;
        }
        // Drawn otherwise, and judged by the same model.
        for method in [
            "rejection",
            "block",
            "block-greedy",
            "lossy",
            "spec-cascade",
            "bild",
        ] {
            let mut other = requested.clone().method(method);
            if method == "bild" {
                other.set("verify_on_finish", true);
            } else {
                other = other.draft_len(4);
            }
            let answer = generate(&serving.coordinator, other).await;
            assert_are(
                method,
                &answer,
                &by_the_model(&mut model, &prompt, &answer.tokens),
            );
        }
    }
    assert!(drafted > 100, "{drafted}");
    assert!(
        reasons.contains(&FinishReason::Stop) && reasons.contains(&FinishReason::Length),
        "{reasons:?}"
    );
}

#[tokio::test]
async fn nobody_gets_what_was_not_requested() {
    let drafter = drafter(vec![draft()], |_| {}).await;
    let serving = serving(&[&drafter]).await;
    let requested = request("Once upon a time", 12).draft_len(3);
    let answer = generate(&serving.coordinator, requested.clone()).await;
    assert_eq!(answer.logprobs, []);
    let few = GenerateRequest {
        logprobs: true,
        ..requested
    };
    let answer = generate(&serving.coordinator, few).await;
    assert_eq!(answer.logprobs.len(), answer.tokens.len());
    assert!(
        answer
            .logprobs
            .iter()
            .all(|of_token| of_token.top.is_empty())
    );
}

#[tokio::test]
async fn a_prompt_has_its_own_before_any_output() {
    let drafter = drafter(vec![draft()], |_| {}).await;
    let serving = serving(&[&drafter]).await;
    let mut model = target().model;
    // More than a verifier tells at once.
    let long: Vec<u32> = (0..150).map(|at| 3 + at * 7919 % 4_000).collect();
    for prompt in [&long[..], &long[..65], &long[..2], &long[..1]] {
        let mut requested = request("", 12).seed(3).draft_len(3);
        requested.prompt = Some(Prompt::TokenIds(TokenIds { ids: prompt.into() }));
        let without = generate(&serving.coordinator, with_logprobs(requested.clone())).await;
        assert!(without.prompt.is_empty() && without.prompt_logprobs.is_empty());
        let mut requested = with_logprobs(requested);
        requested.prompt_logprobs = true;
        // The verifier may share what it computed for another request of the tenant; rows must be complete even so.
        requested.tenant = "somebody".to_owned();
        let expected = by_the_model(&mut model, &prompt[..1], &prompt[1..]);
        let expected: Vec<_> = expected.iter().map(wire::logprobs::to_wire).collect();
        for max_tokens in [12, 0, 12] {
            requested.max_tokens = Some(max_tokens);
            let answer = generate(&serving.coordinator, requested.clone()).await;
            assert_eq!(answer.prompt, prompt);
            assert_eq!(answer.prompt_logprobs, expected, "{} tokens", prompt.len());
            if max_tokens == 0 {
                assert_eq!(answer.finished.reason(), FinishReason::Length);
                assert!(answer.tokens.is_empty());
            } else {
                assert_eq!(answer.tokens, without.tokens);
                assert_eq!(answer.logprobs, without.logprobs);
            }
        }
    }
}
