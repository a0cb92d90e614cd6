//! What a client predicts of the output is drafted from, and changes nothing but how many forwards that takes.

use tonic::Code;
use wire::v1::{GenerateRequest, SamplingParams};

use super::{sampled, without_drafters};
use crate::client::{Answer, With, generate, request, try_generate};
use crate::cluster::{Cluster, draft};

const MAX_TOKENS: u32 = 60;

fn asked(temperature: f32) -> GenerateRequest {
    let requested = request("Once upon a time", MAX_TOKENS).ignoring_eos();
    sampled(requested, |sampling: &mut SamplingParams| {
        sampling.temperature = Some(temperature);
    })
}

fn predicted(requested: &GenerateRequest, prediction: &str) -> GenerateRequest {
    GenerateRequest {
        prediction: prediction.to_owned(),
        ..requested.clone()
    }
}

/// Accepted and rejected tokens of the prediction.
fn counts(answer: &Answer) -> (u32, u32) {
    let usage = answer.finished.usage.expect("usage");
    (
        usage.accepted_prediction_tokens,
        usage.rejected_prediction_tokens,
    )
}

#[tokio::test]
async fn whatever_is_predicted_the_tokens_are_the_targets() {
    let (coordinator, _verifier) = without_drafters().await;
    for temperature in [0.0, 1.0] {
        let requested = asked(temperature);
        let alone = generate(&coordinator, requested.clone().method("target-only")).await;
        let text = &alone.text[..];
        // A word in the middle is another.
        let middle = text.len() / 2;
        let at = text[middle..].find(' ').map_or(middle, |at| middle + at);
        let changed = format!("{} otherwise{}", &text[..at], &text[at..]);
        for (what, prediction, most_forwards) in [
            ("the output itself", text, MAX_TOKENS / 3),
            ("a word more", &changed, MAX_TOKENS / 2),
            (
                "more beyond its end",
                &format!("{text} and so on"),
                MAX_TOKENS / 3,
            ),
            (
                "the text of another",
                "{\"a\": [1, 2, 3], \"b\": null}",
                MAX_TOKENS,
            ),
            (
                "no language at all",
                "\u{0}\u{1}\u{fffd}\u{10ffff}\u{7f}",
                MAX_TOKENS,
            ),
            ("much", &"again and again ".repeat(8_000), MAX_TOKENS),
            ("nothing", "", MAX_TOKENS),
        ] {
            let what = format!("{what} at {temperature}");
            let found = generate(&coordinator, predicted(&requested, prediction)).await;
            assert_eq!(found.tokens, alone.tokens, "{what}");
            assert_eq!(found.setting("schedule"), Some("stream"), "{what}");
            assert!(found.started.warnings.is_empty(), "{what}");
            let counted = found.statistics();
            assert!(
                counted.target_forwards <= most_forwards,
                "{what}: {counted:?}"
            );
            let (accepted, rejected) = counts(&found);
            assert!(accepted <= counted.num_accepted_draft_tokens, "{what}");
            if most_forwards < MAX_TOKENS {
                assert!(accepted > MAX_TOKENS / 2, "{what}: {accepted} {rejected}");
            }
            if prediction.is_empty() {
                assert_eq!((accepted, rejected), (0, 0), "{what}");
            }
        }
    }
}

#[tokio::test]
async fn with_a_prediction_nothing_waits_for_a_drafter() {
    let cluster = Cluster::start(draft()).await;
    let requested = asked(0.0);
    let alone = generate(&cluster.coordinator, requested.clone()).await;
    assert_eq!(alone.setting("schedule"), Some("rounds"));
    let predicted = predicted(&requested, &alone.text);
    let found = generate(&cluster.coordinator, predicted.clone()).await;
    assert_eq!(found.tokens, alone.tokens);
    let way = ["schedule", "drafting"].map(|name| found.setting(name));
    assert_eq!(way, [Some("stream"), Some("max-gram")]);
    assert!(counts(&found).0 > 0, "{:?}", counts(&found));
    // A drafter that was asked for drafts beside it.
    let both = generate(
        &cluster.coordinator,
        predicted.clone().with("drafting", "model"),
    )
    .await;
    assert_eq!(both.tokens, alone.tokens);
    let way = ["schedule", "drafting"].map(|name| both.setting(name));
    assert_eq!(way, [Some("stream"), Some("model")]);
    // What takes no drafts while the target decodes says so.
    for left_out in [
        predicted.clone().with("schedule", "rounds"),
        predicted.clone().method("rejection"),
        predicted.method("target-only"),
    ] {
        let answer = generate(&cluster.coordinator, left_out).await;
        let [warning] = &answer.started.warnings[..] else {
            panic!("{:?}", answer.started.warnings);
        };
        assert!(warning.starts_with("prediction: left out"), "{warning}");
        assert_eq!(counts(&answer), (0, 0));
    }
}

#[tokio::test]
async fn a_prediction_that_is_too_long_is_refused_by_name() {
    let (coordinator, _verifier) = without_drafters().await;
    let most = coordinator::limits::MAX_PREDICTION_BYTES;
    let requested = predicted(&asked(0.0), &"a".repeat(most + 1));
    let status = try_generate(&coordinator, requested)
        .await
        .expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let expected = format!("prediction: {} bytes, expected at most {most}", most + 1);
    assert!(status.message().starts_with(&expected), "{status:?}");
}
