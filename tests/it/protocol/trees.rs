//! Draft trees at the verifier.

use wire::v1::{AcceptAt, LastToken, Open, ProposalForm, TokenTree, Verification, VerifyRound};

use super::{Change, SessionStream, with_header};
use crate::cluster::{Service, target, verifier};

fn tree(token_ids: &[u32], parents: &[i32]) -> VerifyRound {
    VerifyRound {
        drafts: Some(TokenTree {
            token_ids: token_ids.to_vec(),
            parents: parents.to_vec(),
        }),
        ..Default::default()
    }
}

/// The target's own tokens, one a round.
async fn own_tokens(verifier: &Service, count: u64) -> Vec<u32> {
    let mut stream =
        SessionStream::at_verifier(verifier.url(), |open| open.session_id = vec![9; 16]).await;
    let mut tokens = Vec::new();
    for round in 1..=count {
        let next = stream
            .verdict(with_header(tree(&[], &[]), round, &tokens))
            .await;
        tokens.extend(next.expect("a verdict").emitted);
    }
    tokens
}

#[tokio::test]
async fn a_verdict_on_a_tree_tells_its_path_and_the_session_goes_on_from_there() {
    let (verifier, _) = verifier(target()).await;
    let own = own_tokens(&verifier, 7).await;
    let other = |at: usize| if own[at] == 77 { 78 } else { 77 };
    let mut stream = SessionStream::at_verifier(verifier.url(), |_| {}).await;
    // Others stand before the right ones, have children of their own, and come in between.
    let tokens = [other(0), own[0], other(1), own[1], own[1], own[2], other(2)];
    let requested = with_header(tree(&tokens, &[-1, -1, 1, 1, 0, 3, 3]), 1, &[]);
    let reported = stream.verdict(requested.clone()).await.expect("a verdict");
    assert_eq!(reported.path, [1, 3, 5]);
    assert_eq!(reported.accepted_len, 3);
    assert_eq!(reported.emitted, own[..4]);
    assert_eq!(reported.last(), LastToken::Bonus);
    // A repetition gets the verdict that was kept, its path with it.
    let again = stream.verdict(requested).await.expect("a verdict");
    assert!(stream.header().replayed);
    assert_eq!(
        (&again.path, &again.emitted),
        (&reported.path, &reported.emitted)
    );
    // Refused at the second level: nothing below it counts, and what it emits is the target's own.
    let tokens = [own[4], other(5), own[6], own[6]];
    let requested = with_header(tree(&tokens, &[-1, 0, 1, -1]), 2, &reported.emitted);
    let next = stream.verdict(requested).await.expect("a verdict");
    assert_eq!(next.path, [0]);
    assert_eq!(next.emitted, own[4..6]);
    assert_eq!(next.last(), LastToken::Recovered);
}

#[tokio::test]
async fn what_is_no_tree_or_goes_with_none_is_refused() {
    let (verifier, _) = verifier(target()).await;
    let branches = || tree(&[900, 901], &[-1, -1]);
    let block = |open: &mut Open| {
        open.verification = Verification::Block.into();
        open.proposal_form = ProposalForm::Point.into();
        open.sampling.get_or_insert_default().temperature = Some(0.0);
    };
    let elsewhere = |open: &mut Open| open.accept_at = AcceptAt::Coordinator.into();
    let with_horizon = VerifyRound {
        horizon: Some(4),
        ..branches()
    };
    let no_tree = tree(&[900, 900], &[-1, -1]);
    let requested: [(Change, VerifyRound, &str, &str); 4] = [
        (|_| {}, no_tree, "drafts.parents", ""),
        (
            block,
            branches(),
            "drafts.parents",
            "verification 'coupled'",
        ),
        (elsewhere, branches(), "drafts.parents", "accept_at"),
        (|_| {}, with_horizon, "horizon", "tree"),
    ];
    for (change, round, field, word) in requested {
        let mut stream = SessionStream::at_verifier(verifier.url(), change).await;
        let round = with_header(round, 1, &[]);
        let status = stream.verdict(round).await.expect_err("refused");
        let reported = status.message();
        assert_eq!(reported.split(':').next(), Some(field), "{reported}");
        assert!(reported.contains(word), "{reported}");
    }
}
