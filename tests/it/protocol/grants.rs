//! Rounds that are answered in many parts, and go as far as they are granted.

use std::time::Duration;

use v1::round_answer::Part;
use v1::session_request::Request;
use wire::v1::{self, DecodeRound, Grant, Open, ScoreRound};

use super::{SessionStream, with_header};
use crate::cluster::{target, verifier};

/// Long enough that a part would have come.
const QUIET: Duration = Duration::from_millis(300);

/// The next part's tokens and whether it is the last; none if none comes.
async fn decoded(stream: &mut SessionStream) -> Option<(Vec<u32>, bool)> {
    let next = tokio::time::timeout(QUIET, stream.part()).await.ok()?;
    match next.expect("a part") {
        Part::Decoded(part) => Some((part.token_ids, part.last)),
        other => panic!("another reply: {other:?}"),
    }
}

async fn all_decoded(stream: &mut SessionStream) -> Vec<u32> {
    let mut tokens = Vec::new();
    while let Some((more, last)) = decoded(stream).await {
        tokens.extend(more);
        if last {
            break;
        }
    }
    tokens
}

fn decode(until: u32) -> Request {
    let round = DecodeRound {
        max_tokens: 40,
        until,
        ..Default::default()
    };
    Request::Round(with_header(round, 1, &[]))
}

#[tokio::test]
async fn a_verifier_decodes_as_far_as_it_is_granted_and_gives_the_same_tokens() {
    let (verifier, _) = verifier(target()).await;
    let mut stream = SessionStream::at_verifier(verifier.url(), |_| {}).await;
    stream.send(decode(0)).await;
    let expected = all_decoded(&mut stream).await;
    assert_eq!(expected.len(), 40);

    let another = |open: &mut Open| open.session_id = vec![4; 16];
    let mut stream = SessionStream::at_verifier(verifier.url(), another).await;
    stream.send(decode(10)).await;
    let mut tokens = all_decoded(&mut stream).await;
    assert_eq!(tokens, expected[..10]);
    // Less than it has changes nothing; more lets it go on from there.
    for (until, held) in [(5, 10), (11, 11), (25, 25)] {
        stream.send(Request::Grant(Grant { until })).await;
        tokens.extend(all_decoded(&mut stream).await);
        assert_eq!(tokens, expected[..held], "{until}");
    }
    stream.send(Request::Grant(Grant { until: 1_000 })).await;
    tokens.extend(all_decoded(&mut stream).await);
    assert_eq!(tokens, expected);
    // One that comes when its round is over is nothing to the next.
    stream.send(Request::Grant(Grant { until: 2_000 })).await;
    stream.send(decode(1)).await;
    assert_eq!(all_decoded(&mut stream).await, expected[..1]);
}

#[tokio::test]
async fn a_verifier_scores_a_prompt_as_far_as_it_is_granted() {
    let (verifier, _) = verifier(target()).await;
    let long = |open: &mut Open| {
        open.logprobs = true;
        open.prompt_token_ids = (100..300).collect();
    };
    let scored = async |stream: &mut SessionStream| {
        let mut logprobs = Vec::new();
        while let Ok(next) = tokio::time::timeout(QUIET, stream.part()).await {
            match next.expect("a part") {
                Part::Scored(part) => logprobs.extend(part.logprobs),
                other => panic!("another reply: {other:?}"),
            }
        }
        logprobs
    };
    let score = |until| {
        let round = ScoreRound { from: 0, until };
        Request::Round(with_header(round, 0, &[]))
    };
    let mut stream = SessionStream::at_verifier(verifier.url(), long).await;
    stream.send(score(0)).await;
    let expected = scored(&mut stream).await;
    assert_eq!(expected.len(), 199);
    let mut stream = SessionStream::at_verifier(verifier.url(), |open| {
        long(open);
        open.session_id = vec![4; 16];
    })
    .await;
    stream.send(score(70)).await;
    let mut logprobs = scored(&mut stream).await;
    assert_eq!(logprobs, expected[..70]);
    stream.send(Request::Grant(Grant { until: 130 })).await;
    logprobs.extend(scored(&mut stream).await);
    assert_eq!(logprobs, expected[..130]);
    stream.send(Request::Grant(Grant { until: 500 })).await;
    logprobs.extend(scored(&mut stream).await);
    assert_eq!(logprobs, expected);
}
