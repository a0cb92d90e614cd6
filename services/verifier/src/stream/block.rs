//! Blocks: asked about, scored and decided.

use std::time::Duration;

use ops::trace::Span;
use peer::{Cost, RoundContext, RoundError, progress};
use speculation::drafting::TreeShape;
use speculation::methods::Options;
use speculation::round::BlockInput;
use speculation::verification::layers::Horizon;
use v1::round_answer::Part;
use wire::open::SessionSpec;
use wire::status::BadField;
use wire::{drafting, logprobs, proposal, v1, verdict};

use super::check_room;
use crate::scorer::{Verifier, VerifySession};

/// Answers one block by scoring it.
pub(super) async fn verify(
    verifier: &Verifier,
    session: &mut VerifySession,
    wire: v1::VerifyRound,
    context: &RoundContext<'_>,
    span: &mut Span,
) -> Result<(), RoundError> {
    let slices = wire.slices;
    let block = requested(verifier, session, wire)?;
    let scored = block.drafts.len() + 1;
    if let Some(cost) = answer(verifier, session, context, block, slices).await? {
        // Where rows come in parts, tokens are forwarded again for more of the same rows.
        let rows_are_parts = verifier.description.rows_are_parts;
        let prefills = !rows_are_parts && cost.step.forwarded_tokens > scored;
        span.add_breakdown(&cost.share(prefills), context.began, None);
    }
    Ok(())
}

/// Scores a block, and what that cost; none if the coordinator was told that too little is held.
async fn answer(
    verifier: &Verifier,
    session: &mut VerifySession,
    context: &RoundContext<'_>,
    block: BlockInput,
    slices: Option<v1::SliceRequest>,
) -> Result<Option<Cost>, RoundError> {
    let (round, scorer) = (&context.round, &verifier.role.scorer);
    // A node stands at its depth, so what a tree needs of the context is its longest path.
    let levels = block.drafts.levels() as usize;
    check_room(verifier, session, round.key.base_len, levels)?;
    if !session.advance(context).await? {
        return Ok(None);
    }
    let (reporter, mut progressing) = progress::channel();
    if session.spec.accept_at_coordinator {
        let drafts = block.drafts.tokens();
        let scoring = scorer.slices(session, drafts, slices.unwrap_or_default(), reporter);
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
    let deciding = scorer.decide(session, block, reporter, round.timeout);
    let (decided, cost) = context.wait(&mut progressing, deciding).await??;
    let timing = cost.timing(context.began, verifier.sessions().attached);
    let verdict = v1::Verdict {
        logprobs: decided.logprobs.iter().map(logprobs::to_wire).collect(),
        ..verdict::to_wire(decided.verdict, timing)
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
) -> Result<BlockInput, BadField> {
    let spec = &session.spec;
    let limits = verifier.description.limits.unwrap_or_default();
    let limit = limits.max_draft_tokens as usize;
    let drafts = drafting::tree_from_wire(wire.drafts, limit, spec.vocab_size)?;
    if !drafts.is_chain() {
        check_tree(spec)?;
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
        return Ok(BlockInput {
            drafts,
            ..BlockInput::default()
        });
    }
    if wire.slices.is_some() {
        let problem = "come only where the coordinator decides";
        return Err(BadField::new("slices", problem));
    }
    let (form, fields) = (spec.proposal_form, spec.proposal_fields);
    let bonus = wire
        .bonus_q
        .map(|bonus| proposal::one_from_wire(bonus, form, fields));
    Ok(BlockInput {
        // Of a tree, one for each group of siblings.
        proposals: proposal::from_wire(wire.proposals, drafts.inner().len(), form, fields)?,
        bonus: bonus.transpose()?,
        horizon: Horizon {
            len: horizon(wire.horizon, drafts.len(), limit)?,
            stopped: wire.stopped,
        },
        layers: verdict::layers_from_wire(&wire.layers)?,
        drafts,
    })
}

/// Checks that a session's rounds may be trees.
fn check_tree(spec: &SessionSpec) -> Result<(), BadField> {
    let options = Options {
        target: spec.target,
        verification: spec.verification,
        // Which one, nodes and their parents say.
        tree: TreeShape::Alternates(1),
        accept_at_coordinator: spec.accept_at_coordinator,
        ..Options::default()
    };
    let conflict = options.check();
    conflict.map_err(|conflict| BadField::new("drafts.parents", conflict.problem))
}

/// Returns the number of draft tokens there would be if no end token had cut the block.
fn horizon(requested: Option<u32>, drafts: usize, limit: usize) -> Result<u32, BadField> {
    let horizon = requested.unwrap_or(drafts as u32);
    BadField::in_range("horizon", horizon, drafts as u32..=limit as u32)?;
    Ok(horizon)
}
