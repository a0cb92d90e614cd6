//! A drafter that drafts ahead: what it answers, and what it refuses.

use tonic::{Code, Status};
use wire::v1::round_answer::Part;
use wire::v1::session_reply::Reply;
use wire::v1::session_request::Request;
use wire::v1::{AheadRound, Append, Commit, Open, ProposalForm, Verification};

use super::{Change, SessionStream, with_header};
use crate::cluster::{Service, draft, drafter};

const ASKED: AheadRound = AheadRound {
    horizon: 8,
    nodes: 64,
};

fn commit(from: u32, token_ids: &[u32]) -> Request {
    Request::Commit(Commit {
        from,
        token_ids: token_ids.to_vec(),
        credit: 64,
        price: 0.0,
    })
}

/// A session that drafts ahead of no output.
async fn drafting(drafter: &Service, asked: AheadRound, change: Change) -> SessionStream {
    let stream = SessionStream::at_drafter(drafter.url(), change).await;
    stream
        .send(Request::Round(with_header(asked, 1, &[])))
        .await;
    stream
}

/// The next proposal.
async fn proposed(stream: &mut SessionStream) -> Result<Append, Status> {
    match stream.part().await? {
        Part::Proposed(proposed) => Ok(proposed),
        other => panic!("another part: {other:?}"),
    }
}

/// How the stream ends, whatever is proposed before.
async fn refused(mut stream: SessionStream) -> Status {
    loop {
        if let Err(status) = proposed(&mut stream).await {
            return status;
        }
    }
}

fn assert_names(status: &Status, field: &str) {
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let named = status.message().split(':').next();
    assert_eq!(named, Some(field), "{status:?}");
}

#[tokio::test]
async fn what_is_proposed_follows_what_was_chosen_until_the_session_is_closed() {
    let (drafter, monitor) = drafter(draft()).await;
    let mut stream = drafting(&drafter, ASKED, |_| {}).await;
    let first = proposed(&mut stream).await.expect("drafts");
    assert_eq!((first.after, first.roots.len()), (0, 0));
    assert_eq!(first.survivals.len(), first.token_ids.len());
    // One that it proposed, and one that no draft model would.
    let chosen = [first.token_ids[0], 7];
    stream.send(commit(0, &chosen)).await;
    loop {
        let next = proposed(&mut stream).await.expect("drafts");
        assert!([0, 2].contains(&next.after), "{next:?}");
        if next.after == 2 {
            break;
        }
    }
    stream.send(Request::Close(wire::v1::Close {})).await;
    while !matches!(stream.receive().await.expect("a reply"), Reply::Closed(_)) {}
    crate::cluster::eventually("nothing is held", || {
        let (sessions, engine) = (monitor.sessions(), monitor.engine());
        sessions.attached + sessions.detached == 0 && engine.sequences == 0
    })
    .await;
}

#[tokio::test]
async fn what_is_out_of_range_is_named() {
    let (drafter, _) = drafter(draft()).await;
    for (field, asked) in [
        (
            "ahead.horizon",
            AheadRound {
                horizon: 0,
                ..ASKED
            },
        ),
        (
            "ahead.horizon",
            AheadRound {
                horizon: 129,
                ..ASKED
            },
        ),
        ("ahead.nodes", AheadRound { nodes: 0, ..ASKED }),
        (
            "ahead.nodes",
            AheadRound {
                nodes: 513,
                ..ASKED
            },
        ),
    ] {
        let status = refused(drafting(&drafter, asked, |_| {}).await).await;
        assert_names(&status, field);
    }
    let tested = |open: &mut Open| {
        open.verification = Verification::Token.into();
        open.proposal_form = ProposalForm::DenseF32.into();
    };
    assert_names(
        &refused(drafting(&drafter, ASKED, tested).await).await,
        "ahead",
    );
}

#[tokio::test]
async fn a_commit_with_a_gap_or_of_no_token_ends_the_stream_and_is_named() {
    let (drafter, _) = drafter(draft()).await;
    for (field, commits) in [
        ("commit.from", vec![commit(3, &[5])]),
        ("commit.from", vec![commit(0, &[5]), commit(9, &[5])]),
        ("commit.token_ids", vec![commit(0, &[4_096])]),
    ] {
        let stream = drafting(&drafter, ASKED, |_| {}).await;
        for commit in commits {
            stream.send(commit).await;
        }
        assert_names(&refused(stream).await, field);
    }
}
