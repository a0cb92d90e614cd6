//! Blocks: asked about, scored and decided.

use std::time::Instant;

use server::progress::{self, Reporter};
use server::stream::Replies;
use server::trace::{self, names};
use speculation::TokenId;
use speculation::draft_tree::DraftTree;
use tonic::Status;
use v1::verify_reply::Reply;
use wire::round::Round;
use wire::status::BadField;
use wire::{drafting, proposal, round, v1, verdict};

use super::{advance, check_room, offer, reply};
use crate::cost::Cost;
use crate::error::RoundError;
use crate::score::ScoreTask;
use crate::session::Session;
use crate::shared::Shared;
use crate::tree::{self, TreeTask};
use crate::verify::{Asked, VerifyTask};

/// A block that is to be scored, and what is to come of it.
struct Block {
    drafts: DraftTree,
    asked: Asked,
    slices: Option<v1::SliceRequest>,
}

/// Answers one block: with the verdict kept, or by scoring it.
pub(super) async fn verify(
    service: &Shared,
    session: &mut Session,
    replies: &Replies<v1::VerifyReply>,
    mut wire: v1::VerifyRound,
    epoch: u32,
) -> Result<(), Status> {
    let began = Instant::now();
    let (header, slices) = (wire.header.take(), wire.slices);
    let (drafts, asked) = asked(service, session, wire)?;
    let round = round::from_wire(header, epoch, session.spec.vocab_size)?;
    let mut span = service
        .traces
        .round(names::VERIFY, &round.trace_context, began);
    if let Some(kept) = session.replies.find(&round.key) {
        span.set(names::REPLAYED, true);
        let header = Some(round.reply_header(true));
        let again = v1::Verdict {
            header,
            ..kept.clone()
        };
        return replies.send(reply(Reply::Verdict(again))).await;
    }
    let scored = drafts.len() + 1;
    let block = Block {
        drafts,
        asked,
        slices,
    };
    let answering = answer(service, session, replies, &round, block, began);
    let answered = trace::within(span.context(), answering).await;
    match &answered {
        Ok(Some(cost)) => cost.trace(&mut span, scored, began),
        Ok(None) => {}
        Err(status) => span.fail(format!("{:?}", status.code())),
    }
    answered.map(|_| ())
}

/// Scores a block, and what that cost; none if the coordinator was told that too little is held.
async fn answer(
    service: &Shared,
    session: &mut Session,
    replies: &Replies<v1::VerifyReply>,
    round: &Round,
    block: Block,
    began: Instant,
) -> Result<Option<Cost>, Status> {
    let Block {
        drafts,
        asked,
        slices,
    } = block;
    // A node stands at its depth, so what a tree needs of the context is its longest path.
    let levels = drafts.levels() as usize;
    check_room(service, session, round.key.base_len, levels)?;
    if !advance(session, replies, round).await? {
        return Ok(None);
    }
    let (reporter, mut progressing) = progress::channel();
    let offer = offer(round, replies);
    if session.spec.accept_at_coordinator {
        let wanted = slices.unwrap_or_default();
        let scoring = score(session, round, (drafts.tokens(), wanted), reporter, began);
        let scored = progressing.wait(round.timeout, scoring, offer).await;
        let (slices, cost) = scored.map_err(RoundError::from)??;
        cost.count(&service.metrics);
        // Not kept for a retry: rows are large, and scoring again gives the same.
        for slice in slices {
            replies.send(reply(Reply::Slice(slice))).await?;
        }
        return Ok(Some(cost));
    }
    let deciding = async {
        if drafts.is_chain() {
            decide(session, round, asked, reporter, began).await
        } else {
            decide_tree(session, round, drafts, reporter, began).await
        }
    };
    let decided = progressing.wait(round.timeout, deciding, offer).await;
    let (verdict, cost) = decided.map_err(RoundError::from)??;
    cost.count(&service.metrics);
    session.replies.keep(round.key, verdict.clone());
    replies.send(reply(Reply::Verdict(verdict))).await?;
    Ok(Some(cost))
}

/// Checks what a round asks to be decided. Where the coordinator decides, and of a tree, only the draft
/// tokens.
fn asked(
    service: &Shared,
    session: &Session,
    wire: v1::VerifyRound,
) -> Result<(DraftTree, Asked), BadField> {
    let spec = &session.spec;
    let limits = service.description.limits.unwrap_or_default();
    let limit = limits.max_draft_tokens as usize;
    let drafts = drafting::tree_from_wire(wire.drafts, limit, spec.vocab_size)?;
    if !drafts.is_chain() {
        tree::check(spec)?;
        let told = [
            ("proposals", !wire.proposals.is_empty()),
            ("bonus_q", wire.bonus_q.is_some()),
            ("layers", !wire.layers.is_empty()),
            ("horizon", wire.horizon.is_some()),
        ];
        if let Some((field, _)) = told.into_iter().find(|(_, is_told)| *is_told) {
            return Err(BadField::new(field, "does not go with a tree"));
        }
    }
    if spec.accept_at_coordinator {
        return Ok((drafts, Asked::default()));
    }
    if wire.slices.is_some() {
        let problem = "come only where the coordinator decides";
        return Err(BadField::new("slices", problem));
    }
    if !drafts.is_chain() {
        return Ok((drafts, Asked::default()));
    }
    let (form, telling) = (spec.proposal_form, spec.telling);
    let bonus = wire
        .bonus_q
        .map(|bonus| proposal::one_from_wire(bonus, form, telling));
    let asked = Asked {
        proposals: proposal::from_wire(wire.proposals, drafts.len(), form, telling)?,
        bonus: bonus.transpose()?,
        horizon: horizon(wire.horizon, drafts.len(), limit)?,
        layers: verdict::layers_from_wire(&wire.layers)?,
        drafts: drafts.tokens().to_vec(),
    };
    Ok((drafts, asked))
}

/// Draft tokens there would be if no end token had cut the block.
fn horizon(asked: Option<u32>, drafts: usize, limit: usize) -> Result<u32, BadField> {
    match asked {
        None => Ok(drafts as u32),
        Some(horizon) if (drafts..=limit).contains(&(horizon as usize)) => Ok(horizon),
        Some(horizon) => {
            let problem = format!("{horizon} is out of range, expected {drafts} to {limit}");
            Err(BadField::new("horizon", problem))
        }
    }
}

async fn decide(
    session: &Session,
    round: &Round,
    asked: Asked,
    reporter: Reporter,
    began: Instant,
) -> Result<(v1::Verdict, Cost), RoundError> {
    let (task, answer) = VerifyTask::new(session, asked, reporter);
    session.slot.try_submit(task)?;
    let (verdict, cost) = answer.await.map_err(|_| RoundError::Dropped)??;
    let (header, timing) = (round.reply_header(false), cost.timing(began));
    Ok((verdict::to_wire(verdict, header, timing), cost))
}

async fn decide_tree(
    session: &Session,
    round: &Round,
    drafts: DraftTree,
    reporter: Reporter,
    began: Instant,
) -> Result<(v1::Verdict, Cost), RoundError> {
    let (task, answer) = TreeTask::new(session, drafts, reporter);
    session.slot.try_submit(task)?;
    let (verdict, cost) = answer.await.map_err(|_| RoundError::Dropped)??;
    let (header, timing) = (round.reply_header(false), cost.timing(began));
    Ok((verdict::to_wire(verdict, header, timing), cost))
}

async fn score(
    session: &Session,
    round: &Round,
    (drafts, wanted): (&[TokenId], v1::SliceRequest),
    reporter: Reporter,
    began: Instant,
) -> Result<(Vec<v1::Slice>, Cost), RoundError> {
    let (task, answer) = ScoreTask::new(session, drafts, wanted, reporter);
    session.slot.try_submit(task)?;
    let (mut slices, cost) = answer.await.map_err(|_| RoundError::Dropped)??;
    for slice in &mut slices {
        slice.header = Some(round.reply_header(false));
    }
    if let Some(last) = slices.last_mut() {
        last.timing = Some(cost.timing(began));
    }
    Ok((slices, cost))
}
