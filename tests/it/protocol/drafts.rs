//! What a drafter answers.

use wire::v1::proposal::Probs;
use wire::v1::round_answer::Part;
use wire::v1::session_request::Request;
use wire::v1::{DraftBlock, DraftRound, Open, ProposalForm, RoundRequest, StopCause, Verification};

use super::{SessionStream, with_header};
use crate::cluster::{draft, drafter};

/// All blocks of one round.
async fn blocks(stream: &mut SessionStream, round: RoundRequest) -> Vec<DraftBlock> {
    stream.send(Request::Round(round)).await;
    let mut blocks = Vec::new();
    loop {
        match stream.part().await.expect("a block") {
            Part::Block(block) => {
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

fn requested(max_tokens: u32) -> DraftRound {
    DraftRound {
        max_tokens,
        ..Default::default()
    }
}

#[tokio::test]
async fn drafts_come_in_blocks_of_the_size_asked_for() {
    let (drafter, _) = drafter(draft()).await;
    let mut stream = SessionStream::at_drafter(drafter.url(), |_| {}).await;
    let whole = blocks(&mut stream, with_header(requested(5), 1, &[])).await;
    assert_eq!(whole.len(), 1);
    assert_eq!(whole[0].stop_cause(), StopCause::Length);
    let cut = DraftRound {
        tokens_per_block: 2,
        ..requested(5)
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
    let mut stream = SessionStream::at_drafter(drafter.url(), |_| {}).await;
    let first = blocks(&mut stream, with_header(requested(4), 1, &[])).await;
    assert!(!stream.header().replayed);
    let again = blocks(&mut stream, with_header(requested(4), 1, &[])).await;
    assert!(stream.header().replayed);
    assert_eq!(tokens(&first), tokens(&again));
    // The same round with another output before it is another question.
    let other = blocks(&mut stream, with_header(requested(4), 1, &[900])).await;
    assert!(!stream.header().replayed);
    assert_ne!(tokens(&other), tokens(&first));
}

/// After a refusal the cache still holds the refused tokens at positions that now belong to others.
#[tokio::test]
async fn a_draft_depends_on_what_is_committed_and_not_on_what_was_drafted_before() {
    let (drafter, _) = drafter(draft()).await;
    let mut stream = SessionStream::at_drafter(drafter.url(), |_| {}).await;
    let first = tokens(&blocks(&mut stream, with_header(requested(4), 1, &[])).await);
    let committed = [first[0], 1234];
    let continued = tokens(&blocks(&mut stream, with_header(requested(4), 2, &committed)).await);
    let of_another = |open: &mut Open| open.session_id = vec![4; 16];
    let mut fresh = SessionStream::at_drafter(drafter.url(), of_another).await;
    let anew = tokens(&blocks(&mut fresh, with_header(requested(4), 2, &committed)).await);
    assert_eq!(continued, anew);
}

/// A distribution cut to one token leaves no choice: a token drawn from the whole distribution would show at once.
#[tokio::test]
async fn a_draft_token_is_drawn_from_what_is_sent() {
    let (drafter, _) = drafter(draft()).await;
    for (verification, top) in [
        (Verification::Coupled, 1),
        (Verification::Token, 1),
        (Verification::Block, 1),
        (Verification::Token, 8),
    ] {
        let mut stream = SessionStream::at_drafter(drafter.url(), |open| {
            open.verification = verification.into();
            open.proposal_form = ProposalForm::Sparse.into();
            open.proposal_top = top;
        })
        .await;
        for round in 1..=5 {
            let committed = vec![900; round as usize];
            let blocks = blocks(&mut stream, with_header(requested(8), round, &committed)).await;
            let tokens = tokens(&blocks);
            let is_told = verification != Verification::Coupled;
            assert!(!is_told || blocks[0].proposals.len() == tokens.len());
            for (token, proposal) in tokens.iter().zip(&blocks[0].proposals) {
                let Some(Probs::Sparse(probs)) = &proposal.probs else {
                    panic!("another form");
                };
                assert!(probs.token_ids.contains(token) && probs.token_ids.len() <= top as usize);
                assert_eq!(probs.weights.len(), 2 * probs.token_ids.len());
            }
        }
    }
}
