//! What a drafter answers.

use tonic::Code;
use wire::v1::draft_length::Policy;
use wire::v1::draft_reply::Reply;
use wire::v1::proposal::Law;
use wire::v1::{
    DraftBlock, DraftLength, DraftRound, Open, ProposalForm, StopCause, TreeShape, Verification,
};

use super::{DraftStream, with_header};
use crate::cluster::{draft, drafter};

/// All blocks of one round.
async fn blocks(stream: &mut DraftStream, round: DraftRound) -> Vec<DraftBlock> {
    stream.send(round).await;
    let mut blocks = Vec::new();
    loop {
        match stream.receive().await.expect("a block") {
            Reply::Block(block) => {
                let last = block.last;
                blocks.push(block);
                if last {
                    return blocks;
                }
            }
            other => panic!("another reply: {other:?}"),
        }
    }
}

fn tokens(blocks: &[DraftBlock]) -> Vec<u32> {
    blocks
        .iter()
        .flat_map(|block| block.tree.clone().unwrap_or_default().token_ids)
        .collect()
}

fn asked(max_tokens: u32) -> DraftRound {
    DraftRound {
        max_tokens,
        ..Default::default()
    }
}

#[tokio::test]
async fn drafts_come_in_blocks_of_the_size_asked_for() {
    let (drafter, _) = drafter(draft()).await;
    let mut stream = DraftStream::opened(drafter.url(), |_| {}).await;
    let whole = blocks(&mut stream, with_header(asked(5), 1, &[])).await;
    assert_eq!(whole.len(), 1);
    assert_eq!(whole[0].stop_cause(), StopCause::Length);
    let cut = DraftRound {
        tokens_per_block: 2,
        ..asked(5)
    };
    let parts = blocks(&mut stream, with_header(cut, 2, &[])).await;
    let offsets: Vec<u32> = parts.iter().map(|part| part.offset).collect();
    assert_eq!(offsets, [0, 2, 4]);
    assert!(parts[2].timing.is_some() && parts[2].last);
    assert_eq!(tokens(&parts), tokens(&whole));
}

#[tokio::test]
async fn a_repeated_round_gets_the_same_draft_without_drafting() {
    let (drafter, _) = drafter(draft()).await;
    let mut stream = DraftStream::opened(drafter.url(), |_| {}).await;
    let first = blocks(&mut stream, with_header(asked(4), 1, &[])).await;
    let again = blocks(&mut stream, with_header(asked(4), 1, &[])).await;
    assert!(!first[0].header.expect("a header").replayed);
    assert!(again[0].header.expect("a header").replayed);
    assert_eq!(tokens(&first), tokens(&again));
    // The same round with another output before it is another question.
    let other = blocks(&mut stream, with_header(asked(4), 1, &[900])).await;
    assert!(!other[0].header.expect("a header").replayed);
    assert_ne!(tokens(&other), tokens(&first));
}

/// After a refusal the cache still holds the refused tokens at positions that now belong to others.
#[tokio::test]
async fn a_draft_depends_on_what_is_committed_and_not_on_what_was_drafted_before() {
    let (drafter, _) = drafter(draft()).await;
    let mut stream = DraftStream::opened(drafter.url(), |_| {}).await;
    let first = tokens(&blocks(&mut stream, with_header(asked(4), 1, &[])).await);
    let committed = [first[0], 1234];
    let continued = tokens(&blocks(&mut stream, with_header(asked(4), 2, &committed)).await);
    let of_another = |open: &mut Open| open.session_id = vec![4; 16];
    let mut fresh = DraftStream::opened(drafter.url(), of_another).await;
    let anew = tokens(&blocks(&mut fresh, with_header(asked(4), 2, &committed)).await);
    assert_eq!(continued, anew);
}

/// A law cut to one token leaves no choice: a token drawn from the whole law would show at once.
#[tokio::test]
async fn a_draft_token_is_drawn_from_what_is_sent() {
    let (drafter, _) = drafter(draft()).await;
    for verification in [
        Verification::Coupled,
        Verification::Token,
        Verification::Block,
    ] {
        let mut stream = DraftStream::opened(drafter.url(), |open| {
            open.verification = verification.into();
            open.proposal_form = ProposalForm::Sparse.into();
            open.proposal_top = 1;
        })
        .await;
        for round in 1..=5 {
            let committed = vec![900; round as usize];
            let blocks = blocks(&mut stream, with_header(asked(8), round, &committed)).await;
            for (token, proposal) in tokens(&blocks).iter().zip(&blocks[0].proposals) {
                let Some(Law::Sparse(law)) = &proposal.law else {
                    panic!("another form");
                };
                assert_eq!(law.token_ids, [*token]);
            }
        }
    }
}

#[tokio::test]
async fn sparse_laws_come_with_tokens_drawn_from_them() {
    let (drafter, _) = drafter(draft()).await;
    let mut stream = DraftStream::opened(drafter.url(), |open| {
        open.verification = Verification::Token.into();
        open.proposal_form = ProposalForm::Sparse.into();
        open.proposal_top = 8;
    })
    .await;
    let blocks = blocks(&mut stream, with_header(asked(6), 1, &[])).await;
    assert_eq!(blocks[0].proposals.len(), 6);
    for (token, proposal) in tokens(&blocks).iter().zip(&blocks[0].proposals) {
        let Some(Law::Sparse(law)) = &proposal.law else {
            panic!("another form")
        };
        assert!(law.token_ids.len() <= 8 && law.weights.len() == 2 * law.token_ids.len());
        assert!(law.token_ids.contains(token));
    }
}

#[tokio::test]
async fn what_is_not_carried_out_is_refused_by_name() {
    let (drafter, _) = drafter(draft()).await;
    let length = |policy| DraftRound {
        draft_length: Some(DraftLength {
            policy: Some(policy),
        }),
        ..asked(4)
    };
    let tree = Some(TreeShape::default());
    for (field, round) in [
        ("max_tokens", asked(0)),
        ("max_tokens", asked(65)),
        (
            "drafting",
            DraftRound {
                drafting: 77,
                ..asked(4)
            },
        ),
        ("tree", DraftRound { tree, ..asked(4) }),
        ("draft_length.goodput", length(Policy::Goodput(true))),
        ("draft_length.confidence", length(Policy::Confidence(1.5))),
        ("draft_length.entropy", length(Policy::Entropy(f64::NAN))),
    ] {
        let mut stream = DraftStream::opened(drafter.url(), |_| {}).await;
        stream.send(with_header(round, 1, &[])).await;
        let status = stream.receive().await.expect_err("refused");
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(status.message().split(':').next(), Some(field));
    }
}
