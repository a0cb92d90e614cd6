//! A draft block, asked of a verifier: to be decided, or to be scored.

use speculation::draft_tree::DraftTree;
use speculation::round::BlockInput;
use speculation::session::{Input, Peer, Request as SessionRequest};
use speculation::verification::layers::{Horizon, ResidualLayer};
use v1::round_answer::Part;
use v1::round_request::Round;
use wire::{drafting, slice, v1, verdict};

use super::exchange::Exchange;
use super::{OutputLogprobs, PeerAnswer, RoundProposals};
use crate::admitted::AdmittedRequest;
use crate::peer::error::CallError;
use crate::peer::opener::Opener;
use crate::peer::position::RoundPosition;
use crate::peer::session::PeerSession;

/// A block that a verifier was asked about.
#[derive(Debug)]
pub(crate) struct PendingVerify {
    exchange: Exchange,
    /// Slices that are to come, one a position; none where the verifier decides.
    positions: Option<usize>,
    slices: Vec<v1::Slice>,
}

impl PendingVerify {
    /// Asks about a block. `proposals` are what the drafter sent in this round.
    ///
    /// # Errors
    /// If no verifier can be reached that has room for the request, or it takes no block as long.
    pub(crate) async fn start(
        session: &mut PeerSession,
        opener: &mut Opener,
        position: RoundPosition<'_>,
        (drafts, horizon, layers): (&DraftTree, Horizon, &[ResidualLayer]),
        proposals: &RoundProposals,
    ) -> Result<Self, CallError> {
        let stream = session.ready(opener, position.deadline).await?;
        let max_draft_tokens = stream.max_draft_tokens();
        if drafts.len() > max_draft_tokens as usize {
            return Err(CallError::TooLong { max_draft_tokens });
        }
        let request = &opener.request;
        let mut round = v1::VerifyRound {
            drafts: Some(drafting::tree_to_wire(drafts)),
            ..Default::default()
        };
        let scores = request.method.accept_at_coordinator;
        if scores {
            round.slices = Some(v1::SliceRequest {
                top: 0,
                unscaled: request.needs_target_unscaled(),
                confidences: request.needs_confidences() || request.report_distributions,
            });
        } else {
            let horizon = proposals.horizon(horizon, drafts);
            // Only layers have a horizon, and trees have none.
            let outlives_block = drafts.is_chain() && horizon.len != drafts.len() as u32;
            round.proposals = proposals.of(drafts);
            round.bonus_q.clone_from(&proposals.bonus);
            round.layers = verdict::layers_to_wire(layers);
            round.horizon = outlives_block.then_some(horizon.len);
            round.stopped = horizon.stopped;
        }
        let round = Round::Verify(round);
        Ok(Self {
            exchange: Exchange::start(stream, position, round).await,
            positions: scores.then(|| 1 + drafts.len()),
            slices: Vec::new(),
        })
    }

    /// Returns the verifier's answer, or its progress; none if all slices have come that the coordinator decides from.
    ///
    /// # Errors
    /// If the stream breaks, or what comes cannot be right.
    pub(crate) async fn next(
        &mut self,
        session: &mut PeerSession,
        request: &AdmittedRequest,
        position: RoundPosition<'_>,
    ) -> Result<Option<PeerAnswer>, CallError> {
        let (stream, round) = (session.stream()?, position.round);
        loop {
            match self.exchange.next(stream, position).await? {
                None => {
                    let answer = PeerAnswer::progress(round, Peer::Verifier);
                    return Ok(Some(answer));
                }
                Some(Part::Verdict(mut decided)) if self.positions.is_none() => {
                    let timing = decided.timing.unwrap_or_default();
                    let logprobs = std::mem::take(&mut decided.logprobs);
                    let logprobs = OutputLogprobs::read(
                        logprobs,
                        position.output.len(),
                        decided.emitted.len(),
                        request,
                    );
                    let logprobs = logprobs.map_err(|error| stream.malformed(error.to_string()))?;
                    let verdict = verdict::from_wire(decided);
                    let verdict = verdict.map_err(|error| stream.malformed(error.to_string()))?;
                    session.succeeded(position.emitted);
                    let input = Input::Verified { round, verdict };
                    return Ok(Some(PeerAnswer {
                        logprobs,
                        ..PeerAnswer::new(input, timing)
                    }));
                }
                Some(Part::Slice(slice)) if slice::fits(&slice, request.vocab_size) => {
                    let is_last = slice.last;
                    self.slices.push(slice);
                    if is_last != (Some(self.slices.len()) == self.positions) {
                        return Err(stream.malformed("not one slice for each position"));
                    }
                    if is_last {
                        session.succeeded(position.emitted);
                        return Ok(None);
                    }
                }
                Some(Part::Verdict(_)) => {
                    return Err(stream.malformed("a verdict came where slices were asked for"));
                }
                Some(_) => {
                    return Err(stream.malformed("a slice that nobody asked for, or too large"));
                }
            }
        }
    }

    /// Returns the block as it is to be decided here, and what the drafter and the verifier sent of its distributions.
    pub(crate) fn scored(
        &mut self,
        requested: &SessionRequest,
        proposals: &RoundProposals,
    ) -> Result<(BlockInput, v1::RoundDistributions), CallError> {
        let SessionRequest::Verify {
            drafts,
            horizon,
            layers,
        } = requested
        else {
            return Err(CallError::Decision);
        };
        let distributions = v1::RoundDistributions {
            draft_token_ids: drafts.tokens().to_vec(),
            draft: proposals.of(drafts),
            target: std::mem::take(&mut self.slices),
        };
        let block = BlockInput {
            drafts: drafts.clone(),
            horizon: proposals.horizon(*horizon, drafts),
            layers: layers.clone(),
            // Read later.
            ..BlockInput::default()
        };
        Ok((block, distributions))
    }
}
