//! Drafting with Max-Gram alone, and the upkeep of its index.

use speculation::max_gram::{Bigram, MaxGram, Sure};
use speculation::proposal::{ProposalForm, ProposalProbs};
use wire::v1::StopCause;

use crate::block::{BlockEnd, DraftStep};
use crate::draft_params::DraftParams;
use crate::proposers::DraftSession;

/// Tokens indexed before other work on this thread has its turn: about a millisecond's worth.
const PIECE: usize = 4_096;

/// Takes the session's index, made to hold prompt (or start token) and output. It is to be put back: otherwise the next
/// round makes a new one.
pub(crate) async fn take_index(session: &mut DraftSession) -> MaxGram {
    let spec = &session.spec;
    // An encoder's input is searched first.
    let index = session.memory.max_gram.take();
    let mut index = index.unwrap_or_else(|| MaxGram::new(spec.source()));
    let context = session.sequence(&[]);
    for left in index.reconcile_by(&context, PIECE) {
        if left > 0 {
            tokio::task::yield_now().await;
        }
    }
    index
}

/// Drafts a block with Max-Gram, in a tree with other tokens beside each that followed its match: as many tokens as were
/// asked for, but none that the stop rule finds not sure enough. Without a table of bigrams the block ends where there
/// is nothing to copy.
pub(crate) async fn draft(
    session: &mut DraftSession,
    bigram: &Bigram,
    requested: &DraftParams,
) -> Vec<DraftStep> {
    let mut index = take_index(session).await;
    let most = requested.max_tokens as usize;
    let mut tokens = index.propose_sure(most, bigram);
    if session.spec.verification.carries_layers {
        // The length of a block must not depend on its tokens: any token stands for none.
        let filler = tokens.last().map_or(0, |sure| sure.id);
        tokens.resize(most, Sure::guess(filler));
    }
    let leads: Vec<_> = tokens.iter().map(|sure| sure.id).collect();
    let beside = requested.tree.width() as usize - 1;
    let siblings = match beside {
        0 => vec![Vec::new(); leads.len()],
        most => index.alternatives(&leads, most),
    };
    session.memory.max_gram = Some(index);
    let ends = &session.spec.sampling.end_tokens;
    let probs = match session.spec.proposal_form {
        ProposalForm::Point => ProposalProbs::Point,
        ProposalForm::None | ProposalForm::Sparse { .. } | ProposalForm::Dense { .. } => {
            ProposalProbs::None
        }
    };
    let mut drafted: Vec<DraftStep> = Vec::with_capacity(tokens.len());
    let mut cause = if tokens.len() < most {
        StopCause::Policy
    } else {
        requested.cause()
    };
    let mut survival = 1.0;
    for (Sure { id, chance, .. }, siblings) in tokens.into_iter().zip(siblings) {
        survival *= chance;
        let count = drafted.len() as u32;
        if (requested.stop_rule).stops_before_known(count, chance, survival) {
            cause = StopCause::Policy;
            break;
        }
        drafted.push(DraftStep::to(id, probs.clone(), siblings));
        if ends.contains(&id) {
            cause = StopCause::EndToken;
            break;
        }
    }
    if drafted.is_empty() {
        drafted.push(DraftStep::default());
    }
    if let Some(last) = drafted.last_mut() {
        last.ending = Some(BlockEnd {
            cause,
            bonus: None,
            forwards: vec![0; session.slots.len().max(1)],
        });
    }
    drafted
}
