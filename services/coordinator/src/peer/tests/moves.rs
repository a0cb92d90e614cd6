//! Sessions that go from replica to replica: what the answer tells of it.

use super::*;

/// A drafter with these weights.
fn weighing(weights: &str) -> v1::PeerDescription {
    v1::PeerDescription {
        numerics: Some(v1::Numerics {
            weights: weights.to_owned(),
            ..Default::default()
        }),
        ..description(100, 8)
    }
}

/// The replicas of the drafter.
async fn replicas(peers: &Peers) -> Vec<Arc<PeerEndpoint>> {
    let replicas = peers.opener.model.endpoints(Peer::Drafter).await;
    assert_eq!(replicas.len(), 3);
    replicas
}

/// What was computed by other numbers stays in the output: a later move back, or to like numbers, does not undo it.
#[tokio::test]
async fn numbers_that_changed_once_have_changed_for_good() {
    for (visits, changed) in [
        (&["A", "A", "A"][..], false),
        (&["A", "B"], true),
        (&["A", "B", "B"], true),
        (&["A", "A", "B"], true),
        (&["A", "B", "A"], true),
    ] {
        let peers = peers(|_| {});
        let mut session = PeerSession::new(Peer::Drafter);
        for (endpoint, weights) in replicas(&peers).await.into_iter().zip(visits) {
            session.moves_to(stream(&peers, endpoint, weighing(weights)).0);
        }
        assert_eq!(session.numerics_changed, changed, "{visits:?}");
        assert_eq!(session.migrations as usize, visits.len() - 1);
    }
}

/// A stream that was opened again where it was is no move, whatever is there now.
#[tokio::test]
async fn a_stream_to_the_same_replica_is_no_move() {
    let peers = peers(|_| {});
    let endpoint = replicas(&peers).await.remove(0);
    let mut session = PeerSession::new(Peer::Drafter);
    for weights in ["A", "A", "B", "B"] {
        session.moves_to(stream(&peers, Arc::clone(&endpoint), weighing(weights)).0);
    }
    assert_eq!(session.migrations, 0);
    assert!(session.numerics_changed);
}

/// A replica that makes no progress may be well for all others: this session alone goes elsewhere.
#[tokio::test]
async fn a_session_goes_elsewhere_from_where_it_stalled() {
    for (loss, leaves) in [
        (FailureKind::Stalled, true),
        (FailureKind::Silent, true),
        (FailureKind::Broken, false),
        (FailureKind::Outdated, false),
    ] {
        let (mut peers, _wire) = at_drafter(description(100, 8)).await;
        let before = peers.drafter.next_place(&peers.opener).await;
        let stream = peers.drafter.endpoint.clone().expect("a stream");
        assert_eq!(before.address(), stream.address());
        peers.session(Peer::Drafter).give_up(loss);
        let after = peers.drafter.next_place(&peers.opener).await;
        assert_eq!(after.address() != before.address(), leaves, "{loss:?}");
    }
}
