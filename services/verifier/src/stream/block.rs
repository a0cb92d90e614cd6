//! Blocks: asked about, scored and decided.

use std::time::Duration;

use peer::{Cost, RoundContext, RoundError};
use server::progress;
use server::trace::Span;
use speculation::draft_tree::DraftTree;
use speculation::verification::layers::Horizon;
use v1::round_answer::Part;
use wire::status::BadField;
use wire::{drafting, logprobs, proposal, v1, verdict};

use super::check_room;
use crate::logprobs::WithLogprobs;
use crate::remote;
use crate::scoring::score;
use crate::service::{Verifier, VerifySession};
use crate::tree::{self, Tree};
use crate::verify::{VerifyInput, Wanted};

/// A block that is to be scored, and what is to come of it.
struct Block {
    drafts: DraftTree,
    requested: VerifyInput,
    slices: Option<v1::SliceRequest>,
}

/// Answers one block by scoring it.
pub(super) async fn verify(
    verifier: &Verifier,
    session: &mut VerifySession,
    wire: v1::VerifyRound,
    context: &RoundContext<'_>,
    span: &mut Span,
) -> Result<(), RoundError> {
    let slices = wire.slices;
    let (drafts, requested) = requested(verifier, session, wire)?;
    let scored = drafts.len() + 1;
    let block = Block {
        drafts,
        requested,
        slices,
    };
    if let Some(cost) = answer(verifier, session, context, block).await? {
        // What an engine elsewhere reads beside the rows is not told.
        let is_here = verifier.role.remote.is_none();
        let prefills = is_here && cost.step.forwarded_tokens > scored;
        span.add_share(&cost.share(prefills), context.began, None);
    }
    Ok(())
}

/// Scores a block, and what that cost; none if the coordinator was told that too little is held.
async fn answer(
    verifier: &Verifier,
    session: &mut VerifySession,
    context: &RoundContext<'_>,
    block: Block,
) -> Result<Option<Cost>, RoundError> {
    let Block {
        drafts,
        requested,
        slices,
    } = block;
    let round = &context.round;
    // A node stands at its depth, so what a tree needs of the context is its longest path.
    let levels = drafts.levels() as usize;
    check_room(verifier, session, round.key.base_len, levels)?;
    if !session.advance(context).await? {
        return Ok(None);
    }
    let (reporter, mut progressing) = progress::channel();
    if session.spec.accept_at_coordinator {
        let wanted = Wanted(slices.unwrap_or_default());
        let scoring = score(session, drafts.tokens(), wanted, reporter);
        let (mut slices, mut cost) = context.wait(&mut progressing, scoring).await??;
        // Nothing is decided here.
        cost.accept = Duration::ZERO;
        if let Some(last) = slices.last_mut() {
            last.timing = Some(cost.timing(context.began, verifier.sessions().attached));
        }
        cost.count(&verifier.metrics);
        // Not kept for a retry: rows are large, and scoring again gives the same.
        for slice in slices {
            context.answer(Part::Slice(slice)).await?;
        }
        return Ok(Some(cost));
    }
    let deciding = async {
        let tokens = drafts.tokens().to_vec();
        if let Some(remote) = &verifier.role.remote {
            let deciding = remote::decide(remote, session, requested, reporter, round.timeout);
            Box::pin(deciding).await
        } else if drafts.is_chain() {
            score(session, &tokens, WithLogprobs(requested), reporter).await
        } else {
            let tree = WithLogprobs(Tree {
                drafts,
                proposals: requested.proposals,
                path: Vec::new(),
            });
            score(session, &tokens, tree, reporter).await
        }
    };
    let ((decided, of_tokens), cost) = context.wait(&mut progressing, deciding).await??;
    let timing = cost.timing(context.began, verifier.sessions().attached);
    let verdict = v1::Verdict {
        logprobs: of_tokens.iter().map(logprobs::to_wire).collect(),
        ..verdict::to_wire(decided, timing)
    };
    cost.count(&verifier.metrics);
    let part = Part::Verdict(verdict);
    session.answers.keep(round.key, vec![part.clone()]);
    context.answer(part).await?;
    Ok(Some(cost))
}

/// Checks what a round asks to be decided. Where the coordinator decides only the draft tokens.
fn requested(
    verifier: &Verifier,
    session: &VerifySession,
    wire: v1::VerifyRound,
) -> Result<(DraftTree, VerifyInput), BadField> {
    let spec = &session.spec;
    let limits = verifier.description.limits.unwrap_or_default();
    let limit = limits.max_draft_tokens as usize;
    let drafts = drafting::tree_from_wire(wire.drafts, limit, spec.vocab_size)?;
    if !drafts.is_chain() {
        tree::check(spec)?;
        let reported = [
            (
                "proposals",
                !wire.proposals.is_empty() && !spec.verification.reads_draft,
            ),
            ("bonus_q", wire.bonus_q.is_some()),
            ("layers", !wire.layers.is_empty()),
            ("horizon", wire.horizon.is_some()),
            ("stopped", wire.stopped),
        ];
        if let Some((field, _)) = reported.into_iter().find(|(_, is_told)| *is_told) {
            return Err(BadField::new(field, "does not go with a tree"));
        }
    }
    if wire.stopped && (spec.accept_at_coordinator || !spec.verification.carries_layers) {
        let problem = "comes only with verification BLOCK_GREEDY, decided at the verifier";
        return Err(BadField::new("stopped", problem));
    }
    if spec.accept_at_coordinator {
        return Ok((drafts, VerifyInput::default()));
    }
    if wire.slices.is_some() {
        let problem = "come only where the coordinator decides";
        return Err(BadField::new("slices", problem));
    }
    let (form, fields) = (spec.proposal_form, spec.proposal_fields);
    let bonus = wire
        .bonus_q
        .map(|bonus| proposal::one_from_wire(bonus, form, fields));
    let requested = VerifyInput {
        // Of a tree, one for each group of siblings.
        proposals: proposal::from_wire(wire.proposals, drafts.inner().len(), form, fields)?,
        bonus: bonus.transpose()?,
        horizon: Horizon {
            len: horizon(wire.horizon, drafts.len(), limit)?,
            stopped: wire.stopped,
        },
        layers: verdict::layers_from_wire(&wire.layers)?,
        drafts: drafts.tokens().to_vec(),
    };
    Ok((drafts, requested))
}

/// Draft tokens there would be if no end token had cut the block.
fn horizon(requested: Option<u32>, drafts: usize, limit: usize) -> Result<u32, BadField> {
    match requested {
        None => Ok(drafts as u32),
        Some(horizon) if (drafts..=limit).contains(&(horizon as usize)) => Ok(horizon),
        Some(horizon) => {
            let problem = format!("{horizon} is out of range, expected {drafts} to {limit}");
            Err(BadField::new("horizon", problem))
        }
    }
}
