//! The spans of rounds that a peer answers again, or cannot answer.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use ops::trace::names;
use tonic::Code;
use wire::v1::session_reply::Reply;
use wire::v1::session_request::Request;
use wire::v1::{DecodeRound, DraftRound, RoundHeader, VerifyRound};

use super::watched::Watched;
use crate::protocol::{Asked, SessionStream, with_header};

/// The first round of a session, of a request that is traced; `change` its header.
fn traced(asked: impl Asked, change: impl FnOnce(&mut RoundHeader)) -> Request {
    let mut request = with_header(asked, 1, &[]);
    let header = request.header.get_or_insert_default();
    header.trace_context = [&[7; 16][..], &[9; 8], &[1]].concat();
    change(header);
    Request::Round(request)
}

#[tokio::test]
async fn an_answer_that_is_repeated_is_told_as_one() {
    let services = Watched::start(|_| {}).await;
    let drafter = services.drafter.url();
    let mut drafts = SessionStream::at_drafter(drafter, |_| {}).await;
    let verifier = services.verifier.url();
    let mut verdicts = SessionStream::at_verifier(verifier, |_| {}).await;
    for _ in 0..2 {
        let requested = DraftRound {
            max_tokens: 2,
            ..Default::default()
        };
        drafts.send(traced(requested, |_| {})).await;
        drafts.receive().await.expect("a block");
        let requested = traced(VerifyRound::default(), |_| {});
        verdicts.ask(requested).await.expect("a verdict");
    }
    drop((drafts, verdicts));
    let spans = services.spans().await;
    for name in [names::DRAFT, names::VERIFY] {
        let reported = spans.all(name).into_iter();
        let reported: Vec<_> = reported.map(|seen| seen.value(names::REPLAYED)).collect();
        assert_eq!(reported, [None, Some(&Value::BoolValue(true))], "{name}");
    }
}

#[tokio::test]
async fn a_round_that_a_peer_cannot_answer_has_a_failed_span() {
    let services = Watched::start(|_| {}).await;
    let requested = |max_tokens| DraftRound {
        max_tokens,
        ..Default::default()
    };
    let too_late = |header: &mut RoundHeader| {
        header.committed = vec![900; 400];
        header.timeout_ms = 1;
    };
    // A drafter that had nothing else to do may be quick enough: it is asked until it is not.
    let status = 'late: loop {
        let mut drafts = SessionStream::at_drafter(services.drafter.url(), |_| {}).await;
        drafts.send(traced(requested(64), too_late)).await;
        loop {
            match drafts.receive().await {
                // It may say how far it is before the time has run out.
                Ok(Reply::Progress(_)) => {}
                Ok(_) => break,
                Err(status) => break 'late status,
            }
        }
    };
    assert_eq!(status.code(), Code::DeadlineExceeded);

    // More than the context holds.
    let too_long = |header: &mut RoundHeader| header.committed = vec![900; 600];
    let drafter = services.drafter.url();
    let mut drafts = SessionStream::at_drafter(drafter, |_| {}).await;
    drafts.send(traced(requested(2), too_long)).await;
    let status = drafts.receive().await.expect_err("refused");
    assert_eq!(status.code(), Code::OutOfRange);
    let decode = DecodeRound {
        max_tokens: 600,
        ..Default::default()
    };
    for request in [
        traced(VerifyRound::default(), too_long),
        traced(decode, |_| {}),
    ] {
        let verifier = services.verifier.url();
        let mut verdicts = SessionStream::at_verifier(verifier, |_| {}).await;
        let status = verdicts.ask(request).await.expect_err("refused");
        assert_eq!(status.code(), Code::OutOfRange);
    }
    let spans = services.spans().await;
    for (name, codes) in [
        (names::DRAFT, &["DeadlineExceeded", "OutOfRange"][..]),
        (names::VERIFY, &["OutOfRange"]),
        (names::DECODE, &["OutOfRange"]),
    ] {
        let all = spans.all(name).into_iter();
        // Drafts may have come in time before the one that did not.
        let failed = all.filter(|seen| name != names::DRAFT || seen.has_failed());
        let reported = failed.map(|seen| {
            assert!(seen.has_failed());
            let status = seen.span.status.as_ref().expect("a status");
            status.message.as_str()
        });
        assert_eq!(reported.collect::<Vec<_>>(), codes, "{name}");
    }
}
