//! Models that give no distribution, and clients that leave.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tonic::Code;
use verifier::Verifier;
use wire::v1::verify_request::Request;
use wire::v1::{AcceptAt, DecodeRound, TokenTree, VerifyRound};

use crate::world::{World, with_header};

fn block(parents: &[i32]) -> Request {
    let drafts = Some(TokenTree {
        token_ids: vec![1, 2],
        parents: parents.to_vec(),
    });
    let round = VerifyRound {
        drafts,
        ..Default::default()
    };
    Request::Round(with_header(round, 5_000))
}

fn decode(max_tokens: u32) -> Request {
    let round = DecodeRound {
        max_tokens,
        header: None,
    };
    Request::Decode(with_header(round, 5_000))
}

#[tokio::test]
async fn logits_that_are_nan_fail_the_round() {
    for (kind, request) in [
        ("chain", block(&[])),
        ("tree", block(&[-1, -1])),
        ("slices", block(&[])),
        ("decode", decode(2)),
    ] {
        let world = World::start().await;
        world.control.gives_nan.store(true, Ordering::Relaxed);
        let mut stream = world
            .open(4, |open| {
                if kind == "slices" {
                    open.accept_at = AcceptAt::Coordinator.into();
                }
            })
            .await;
        stream.send(request).await;
        let failed = stream.receive().await.expect_err(kind);
        assert_eq!(failed.code(), Code::Internal, "{kind}: {failed:?}");
        let expected = "target model: logits row holds NaN at token 3";
        assert_eq!(failed.message(), expected, "{kind}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_decoding() {
    const TOKENS: u32 = 400;
    let world = World::start().await;
    world.pace(Duration::from_millis(10));
    let mut stream = world.open(4, |_| {}).await;
    stream.send(decode(TOKENS)).await;
    stream.receive().await.expect("a token");
    drop(stream);
    let is_over = |monitor: &Verifier| monitor.sessions().attached + monitor.engine().running == 0;
    world.until("nothing remains", is_over).await;
    let forwards = world.monitor.totals().forwards;
    assert!(forwards < u64::from(TOKENS), "{forwards} forwards");
    assert_eq!(world.monitor.sessions().detached, 0);
}
