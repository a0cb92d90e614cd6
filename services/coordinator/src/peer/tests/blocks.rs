//! What is asked of a verifier about a block.

use super::*;

#[tokio::test]
async fn a_block_longer_than_the_verifier_takes_is_not_sent() {
    let mut peers = peers(|_| {});
    let (session, mut wire) = session(&peers, Peer::Verifier, description(100, 2)).await;
    peers.verifier = session;
    let mut requested = verify(&[1, 2, 0], 3);
    let others = RoundProposals::default();
    let answer = soon(peers.answer(&mut requested, position(&OUTPUT), &others)).await;
    let input = answer.expect("an answer").input;
    assert!(
        matches!(
            input,
            Input::Limited {
                max_draft_tokens: 2,
                ..
            }
        ),
        "{input:?}"
    );
    assert!(wire.requests.try_recv().is_err());
}

/// A block of two tokens, of five that were asked for: an end token cut it.
async fn proposals_of_a_cut_block(peers: &mut Peers) -> RoundProposals {
    let (session, mut wire) = session(peers, Peer::Drafter, description(100, 8)).await;
    peers.drafter = session;
    let mut requested = draft(5);
    let reply = |header| vec![block(header, &[2, 0])];
    let (answer, _) = exchange(peers, &mut wire, &mut requested, reply).await;
    answer.expect("an answer").proposals
}

#[tokio::test]
async fn the_horizon_outlives_a_block_that_an_end_token_cut() {
    let mut peers = peers(|_| {});
    let proposals = proposals_of_a_cut_block(&mut peers).await;
    let (session, mut wire) = session(&peers, Peer::Verifier, description(100, 8)).await;
    peers.verifier = session;
    for (wanted, horizon) in [(5, Some(5)), (4, Some(4)), (9, Some(5)), (2, None)] {
        let mut requested = verify(&[2, 0], wanted);
        let answer = peers.answer(&mut requested, position(&OUTPUT), &proposals);
        let request = async { verifying(wire.requests.recv().await).1.horizon };
        let found = tokio::select! {
            _answer = answer => panic!("nobody answered"),
            found = request => found,
        };
        assert_eq!(found, horizon, "{wanted}");
    }
}

/// Where the coordinator decides it needs the same horizon.
#[tokio::test]
async fn a_block_scored_for_the_coordinator_has_the_horizon_too() {
    let mut peers = peers(|message| {
        choosing(message, &[("accept_at", "coordinator")]);
    });
    let proposals = proposals_of_a_cut_block(&mut peers).await;
    let (mut verifier, mut wire) = session(&peers, Peer::Verifier, description(100, 8)).await;
    let requested = verify(&[2, 0], 9).request;
    let position = position(&OUTPUT);
    let opener = &mut peers.opener;
    let started = StartedRound::start(&mut verifier, opener, &requested, position, &proposals);
    let mut started = started.await.expect("sent");
    let (header, _) = verifying(wire.requests.recv().await);
    for last in [false, false, true] {
        let slice = v1::Slice {
            last,
            ..Default::default()
        };
        let sent = answer(answering(&header), Part::Slice(slice));
        wire.replies.send(Ok(sent)).await.expect("awaited");
    }
    let taken = started.next(&mut verifier, opener, None, position).await;
    let Taken::Scored(block, slices) = taken.expect("slices") else {
        panic!("no block");
    };
    assert_eq!((block.horizon, slices.len()), (5.into(), 3));
}

#[tokio::test]
async fn slices_that_go_on_beyond_the_block_are_no_answer() {
    let slice =
        |header: &v1::RoundHeader| answer(answering(header), Part::Slice(v1::Slice::default()));
    let mut peers = peers(|message| {
        choosing(message, &[("accept_at", "coordinator")]);
    });
    let (session, mut wire) = session(&peers, Peer::Verifier, description(100, 8)).await;
    peers.verifier = session;
    let others = RoundProposals::default();
    let mut requested = verify(&[2, 0], 2);
    let answer = peers.answer(&mut requested, position(&OUTPUT), &others);
    let replies = async {
        let (header, _) = verifying(wire.requests.recv().await);
        for _ in 0..3 {
            let sent = wire.replies.send(Ok(slice(&header))).await;
            sent.expect("awaited");
        }
    };
    let (answer, ()) = soon(async { tokio::join!(answer, replies) }).await;
    let failure = answer.expect_err("the third was not the last");
    assert_eq!(failure.error.fault(), PeerFault::Malformed);
}
