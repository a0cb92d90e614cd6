//! Where drafts end, and what is refused.

use speculation::pending::ROOM;
use tonic::{Code, Status};
use wire::v1::session_request::Request;
use wire::v1::{Append, DecodeRound, Grant, LastToken, Open, Verification};

use super::{Decoding, FIRST, MAX_TOKENS, QUIET, chain, decode, numbered, own};
use crate::cluster::{target, verifier};
use crate::protocol::{SessionStream, with_header};

#[tokio::test]
async fn no_draft_leads_beyond_a_grant_or_the_end() {
    let (verifier, _) = verifier(target()).await;
    let own = own(&verifier, MAX_TOKENS, |_| {}).await.tokens;
    let mut decoding = Decoding::start(&verifier, 30, numbered(1)).await;
    // More than all the tokens that are wanted.
    decoding.propose(&[chain(FIRST, &own[4..])], 9).await;
    decoding.rest().await;
    assert_eq!(decoding.tokens, own[..9]);
    // The last of five tokens is the target's, whatever was proposed.
    assert_eq!(decoding.first_drafts().accepted, 4);
    assert_eq!(decoding.forwards.len(), 5);
    // What was proposed beyond the grant is there when more is granted, but for what can never be emitted.
    decoding.propose(&[], 100).await;
    decoding.rest().await;
    assert_eq!(decoding.tokens, own[..30]);
    assert!(decoding.forwards.last().is_some_and(|part| part.last));
    let later = decoding.forwards[5].drafts.expect("counts");
    assert_eq!(later.offered, 20, "{later:?}");
    assert!(decoding.forwards.len() < 26, "{:?}", decoding.forwards);
}

#[tokio::test]
async fn an_end_token_ends_what_is_proposed_and_the_answer() {
    let (verifier, _) = verifier(target()).await;
    let own = own(&verifier, MAX_TOKENS, |_| {}).await.tokens;
    let is_new = |&at: &usize| !own[..at].contains(&own[at]);
    let end = (7..20).find(is_new).expect("a token that is new there");
    let mut decoding = Decoding::start(&verifier, MAX_TOKENS, |open| {
        open.end_token_ids = vec![own[end]];
        numbered(1)(open);
    })
    .await;
    let proposed = chain(FIRST, &own[4..end + 5]);
    decoding.propose(&[proposed], MAX_TOKENS).await;
    decoding.rest().await;
    assert_eq!(decoding.tokens, own[..=end]);
    let part = &decoding.streamed()[0];
    assert!(part.last);
    let drafts = decoding.first_drafts();
    assert_eq!(drafts.last(), LastToken::AcceptedEnd);
    assert_eq!(drafts.accepted as usize, end + 1 - 4);
    assert_eq!(drafts.scored, drafts.accepted);
    assert_eq!((drafts.stale, drafts.malformed), (3, 1), "{drafts:?}");
}

/// How the stream ends, to which `proposed` was sent beside a decode.
async fn ended_by(proposed: Append) -> Status {
    let (verifier, _) = verifier(target()).await;
    let mut decoding = Decoding::start(&verifier, MAX_TOKENS, |_| {}).await;
    assert_eq!(decoding.tokens.len(), FIRST as usize);
    decoding.stream.send(Request::Append(proposed)).await;
    decoding.stream.receive().await.expect_err("refused")
}

#[tokio::test]
async fn a_proposal_that_is_none_ends_the_stream_and_is_named() {
    let right = || chain(FIRST, &[1, 2, 3]);
    let mut no_tree = right();
    no_tree.parents = vec![-1, 2, 0];
    let mut no_root = right();
    no_root.parents = vec![-2, 0, 1];
    let mut few_parents = right();
    few_parents.parents.push(-1);
    let mut short = right();
    short.survivals.pop();
    let mut sources = right();
    sources.sources = vec![1, 2];
    let mut source = right();
    source.sources = vec![1, 2, 8];
    let mut roots = right();
    roots.roots = vec![1; 129];
    for (field, proposed) in [
        ("append.parents", no_tree),
        ("append.parents", no_root),
        ("append.parents", few_parents),
        ("append.survivals", short),
        ("append.sources", sources),
        ("append.sources", source),
        ("append.roots", roots),
        ("append.token_ids", chain(FIRST, &[1; 200])),
    ] {
        let status = ended_by(proposed).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        let named = status.message().split(':').next();
        assert_eq!(named, Some(field), "{status:?}");
    }
}

#[tokio::test]
async fn drafts_go_with_what_does_not_depend_on_them() {
    let (verifier, _) = verifier(target()).await;
    for verification in [
        Verification::Token,
        Verification::Block,
        Verification::BlockGreedy,
    ] {
        let change = |open: &mut Open| {
            open.verification = verification.into();
            open.proposal_form = wire::v1::ProposalForm::Point.into();
            open.sampling.get_or_insert_default().temperature = Some(0.0);
            open.session_id = vec![verification as u8; 16];
        };
        let mut stream = SessionStream::at_verifier(verifier.url(), change).await;
        let refused = stream.ask(decode(MAX_TOKENS, 0)).await;
        let status = refused.expect_err("refused");
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert!(status.message().starts_with("drafts: "), "{status:?}");
    }
}

#[tokio::test]
async fn proposals_that_nobody_asked_for_are_ignored() {
    let (verifier, monitor) = verifier(target()).await;
    let own = own(&verifier, MAX_TOKENS, |_| {}).await.tokens;
    let stream = SessionStream::at_verifier(verifier.url(), numbered(1)).await;
    // Before any round: it is not even read.
    let mut no_tree = chain(0, &[1, 2, 3]);
    no_tree.survivals.clear();
    for early in [chain(0, &own[..8]), no_tree] {
        stream.send(Request::Append(early)).await;
    }
    let forwards = monitor.engine().forwards;
    let round = DecodeRound {
        max_tokens: MAX_TOKENS,
        until: FIRST,
        drafts: false,
        ..Default::default()
    };
    let round = Request::Round(with_header(round, 1, &[]));
    stream.send(round).await;
    let mut decoding = Decoding {
        stream,
        tokens: Vec::new(),
        forwards: Vec::new(),
    };
    decoding.rest().await;
    // Many more than find a place.
    let proposals = vec![chain(FIRST, &own[4..20]); 20];
    decoding.propose(&proposals, MAX_TOKENS).await;
    decoding.rest().await;
    assert_eq!(decoding.tokens, own);
    assert!(decoding.forwards.iter().all(|part| part.drafts.is_none()));
    assert_eq!(monitor.engine().forwards - forwards, u64::from(MAX_TOKENS));
    // After the round, and for the next one that takes them: they are of the one before.
    let stream = &mut decoding.stream;
    stream.send(Request::Append(chain(0, &own[..8]))).await;
    stream.send(decode(FIRST, 0)).await;
    (decoding.tokens, decoding.forwards) = (Vec::new(), Vec::new());
    decoding.rest().await;
    assert_eq!(decoding.tokens, own[..4]);
    assert_eq!(decoding.forwards.len(), FIRST as usize);
    assert!(decoding.forwards.iter().all(|part| {
        let counts = part.drafts.expect("counts");
        (counts.offered, counts.scored, counts.stale) == (0, 0, 0)
    }));
}

#[tokio::test]
async fn many_proposals_at_once_hold_up_nothing() {
    let (verifier, _) = verifier(target()).await;
    let own = own(&verifier, MAX_TOKENS, |_| {}).await.tokens;
    let mut decoding = Decoding::start(&verifier, MAX_TOKENS, numbered(1)).await;
    for round in 0..200_u32 {
        let tokens: Vec<u32> = (0..100).map(|at| (at * 7 + round) % 4_096).collect();
        let parents = vec![-1; tokens.len()];
        let proposed = super::tree(FIRST, &[], &tokens, &parents);
        decoding.stream.send(Request::Append(proposed)).await;
    }
    let grant = Request::Grant(Grant { until: MAX_TOKENS });
    decoding.stream.send(grant).await;
    decoding.rest().await;
    assert_eq!(decoding.tokens, own);
    // Some of them waited, of which the tree has room for some.
    let first = decoding.first_drafts();
    assert_eq!(first.offered as usize, ROOM, "{first:?}");
    assert!(first.scored <= 64, "{first:?}");
    assert!(
        tokio::time::timeout(QUIET, decoding.stream.part())
            .await
            .is_err()
    );
}
