//! A draft block, asked of a drafter.

use fleet::{CallError, has_head};
use speculation::TokenId;
use speculation::drafting::policies::LEARNED;
use speculation::drafting::{Drafting as Way, StopRule};
use speculation::proposal::Proposal;
use speculation::session::{DraftBlock, DraftStop, Input};
use v1::round_answer::Part;
use v1::round_request::Round;
use wire::draft_block::{PartialBlock, stop};
use wire::{drafting, proposal, v1};

use super::{PeerAnswer, RoundProposals, Taken};
use crate::admitted::AdmittedRequest;
use crate::peer::exchange::{Exchange, Heard, UNASKED};
use crate::peer::opener::Opener;
use crate::peer::position::RoundPosition;
use crate::peer::session::PeerSession;
use crate::peer::stream::PeerStream;

/// A draft block that was asked for.
#[derive(Debug)]
pub(super) struct AwaitedDraft {
    /// Levels asked for, and most nodes that may come.
    requested: u32,
    most: usize,
    /// Whether the draft model's context has no room for all that was wanted.
    is_cut_by_context: bool,
    block: PartialBlock,
}

impl AwaitedDraft {
    /// Returns the round that asks the drafter of `stream` for at most `max_tokens` levels, and for the distribution after
    /// them if `bonus_q`; and what is to come of it.
    ///
    /// # Errors
    /// If the draft model's context is full.
    pub(super) fn of(
        stream: &PeerStream,
        request: &AdmittedRequest,
        position: RoundPosition<'_>,
        (max_tokens, bonus_q): (u32, bool),
    ) -> Result<(Round, Self), CallError> {
        let len = request.decoder_prefix_len() + position.output.len();
        let room = request.draft_room(&stream.description, len);
        let full = CallError::ContextFull(stream.description.context_len);
        // The distribution after them takes one more.
        let room = room.ok_or(full)? - u32::from(bonus_q);
        let width = request.method.tree.width();
        // All nodes of a tree count.
        let most_levels = (stream.max_draft_tokens() / width).max(1);
        let wanted = max_tokens.min(most_levels);
        let stop_rule = stop_rule(request, &stream.description, position.worth);
        let requested = wanted.min(room);
        let round = Round::Draft(v1::DraftRound {
            max_tokens: requested,
            bonus_q,
            drafting: match request.method.drafting {
                // Drafters that draft in no other way need not be told.
                Way::Model => v1::Drafting::Unspecified,
                way => drafting::to_wire(way),
            }
            .into(),
            draft_length: drafting::rule_to_wire(stop_rule),
            tree: drafting::shape_to_wire(request.method.tree),
            cascade: drafting::cascade_to_wire(&request.method.cascade),
            ..Default::default()
        });
        let awaited = Self {
            requested,
            most: requested.saturating_mul(width) as usize,
            is_cut_by_context: room < wanted,
            block: PartialBlock::default(),
        };
        Ok((round, awaited))
    }

    /// Takes a message of the answer.
    ///
    /// # Errors
    /// Says what cannot be right.
    pub(super) fn take(
        &mut self,
        part: Part,
        round: u64,
        request: &AdmittedRequest,
    ) -> Result<Option<Taken>, String> {
        let Part::Block(mut part) = part else {
            return Err(UNASKED.to_owned());
        };
        let fits = |proposal: &v1::Proposal| request.allows(proposal);
        self.block.push(&mut part, self.most, fits)?;
        if !part.last {
            return Ok(None);
        }
        let answer = self.finish(round, part, request)?;
        Ok(Some(Taken::Answer(answer)))
    }

    /// Returns the answer, of which `last` was the last message.
    fn finish(
        &mut self,
        round: u64,
        last: v1::DraftBlock,
        request: &AdmittedRequest,
    ) -> Result<PeerAnswer, String> {
        let mut partial = std::mem::take(&mut self.block);
        let logprobs: Option<Vec<f32>> = if request.method.scores() {
            partial.proposals.iter().map(|it| it.logprob).collect()
        } else {
            Some(Vec::new())
        };
        let block = DraftBlock {
            drafts: partial.tree()?,
            stop: match stop(last.stop_cause()).ok_or("the block's end is not explained")? {
                // What the context has no room for was not asked for.
                DraftStop::Length if self.is_cut_by_context => DraftStop::Context,
                stop => stop,
            },
            logprobs: logprobs.ok_or("a draft token comes without its log probability")?,
            forwards: last.forwards,
        };
        let proposals = RoundProposals {
            requested: Some(self.requested),
            proposals: partial.proposals,
            bonus: last.bonus,
        };
        let input = Input::Drafted { round, block };
        Ok(PeerAnswer {
            proposals,
            ..PeerAnswer::new(input, last.timing.unwrap_or_default())
        })
    }
}

/// Survival below which Max-Gram proposes no token under draft length `auto` while nothing is known of costs.
const WORTH_TRYING: f64 = 0.4;

/// Returns the rule by which `drafter` stops early. Under draft length `auto`, a drafter with an acceptance head stops
/// once the head predicts that the draft survives with a probability below `worth`, and Max-Gram proposes no token
/// that by its own estimate does; otherwise the rule is the method's.
pub(in crate::peer) fn stop_rule(
    request: &AdmittedRequest,
    drafter: &v1::PeerDescription,
    worth: Option<f64>,
) -> StopRule {
    if request.thresholds_max_gram() {
        let worth = worth.unwrap_or(WORTH_TRYING);
        return StopRule::new(&LEARNED, 1.0 - worth);
    }
    let label = request.predicting_head();
    let foretells = label.is_some_and(|label| has_head(drafter, label));
    match worth.filter(|_| foretells) {
        Some(worth) => StopRule::new(&LEARNED, 1.0 - worth).with_least(1),
        None => request.method.stop_rule,
    }
}

/// Asks a drafter for its distribution after `drafts`, all of which were accepted.
///
/// # Errors
/// If the drafter cannot be reached, or its answer cannot be right.
pub(crate) async fn bonus(
    session: &mut PeerSession,
    opener: &mut Opener,
    position: RoundPosition<'_>,
    drafts: &[TokenId],
) -> Result<Proposal, CallError> {
    let stream = session.ready(opener, position.deadline).await?;
    let request = &opener.request;
    let output = [position.output, drafts].concat();
    let after = RoundPosition {
        output: &output,
        ..position
    };
    let round = Round::Draft(v1::DraftRound {
        bonus_q: true,
        ..Default::default()
    });
    let len = request.decoder_prefix_len() + output.len();
    if request.draft_room(&stream.description, len).is_none() {
        return Err(CallError::ContextFull(stream.description.context_len));
    }
    let mut exchange = Exchange::start(stream, after, round).await;
    let part = loop {
        let reply = stream.receive().await?;
        match exchange.take(reply, stream, after).await? {
            Heard::Part(Part::Block(part)) => break part,
            Heard::Part(_) => return Err(stream.malformed(UNASKED)),
            Heard::Progress | Heard::Nothing => {}
        }
    };
    let Some(bonus) = part.bonus.filter(|bonus| request.allows(bonus)) else {
        return Err(stream.malformed("the distribution after the block did not come"));
    };
    let read = proposal::one_from_wire(bonus, request.method.proposal, request.proposal_fields());
    let read = read.map_err(|error| stream.malformed(error.to_string()))?;
    session.succeeded(position.emitted);
    Ok(read)
}
