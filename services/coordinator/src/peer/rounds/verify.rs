//! A draft block, asked of a verifier: to be decided, or to be scored.

use speculation::draft_tree::DraftTree;
use speculation::session::{Input, Peer, Request as SessionRequest};
use speculation::verification::layers::{Horizon, ResidualLayer};
use v1::verify_reply::Reply;
use v1::verify_request::Request;
use wire::{drafting, slice, v1, verdict};

use super::exchange::{Exchange, Heard};
use super::{Answer, OutputLogprobs, RoundProposals, WireBlock};
use crate::admitted::AdmittedRequest;
use crate::peer::error::PeerError;
use crate::peer::session::{Opener, PeerSession};
use crate::peer::stream::Position;
use wire::messages::Verifying;

/// A block that a verifier was asked about.
#[derive(Debug)]
pub(crate) struct PendingVerify {
    exchange: Exchange<Verifying>,
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
        session: &mut PeerSession<Verifying>,
        opener: &mut Opener,
        position: Position<'_>,
        (drafts, horizon, layers): (&DraftTree, Horizon, &[ResidualLayer]),
        proposals: &RoundProposals,
    ) -> Result<Self, PeerError> {
        let stream = session.ready(opener, position.allowance).await?;
        let max_draft_tokens = stream.max_draft_tokens();
        if drafts.len() > max_draft_tokens as usize {
            return Err(PeerError::TooLong { max_draft_tokens });
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
        let round = Request::Round(round).into();
        Ok(Self {
            exchange: Exchange::start(stream, position, round).await,
            positions: scores.then(|| 1 + drafts.len()),
            slices: Vec::new(),
        })
    }

    /// The verifier's answer, or its progress; none if all slices have come that the coordinator decides from.
    ///
    /// # Errors
    /// If the stream breaks, or what comes cannot be right.
    pub(crate) async fn next(
        &mut self,
        session: &mut PeerSession<Verifying>,
        request: &AdmittedRequest,
        position: Position<'_>,
    ) -> Result<Option<Answer>, PeerError> {
        let (stream, round) = (session.stream()?, position.round);
        loop {
            match self.exchange.next(stream, position).await? {
                Heard::Progress => {
                    let answer = Answer::progress(round, Peer::Verifier);
                    return Ok(Some(answer));
                }
                Heard::Part(Reply::Verdict(mut decided)) if self.positions.is_none() => {
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
                    return Ok(Some(Answer {
                        logprobs,
                        ..Answer::new(input, timing)
                    }));
                }
                Heard::Part(Reply::Slice(slice)) if slice::fits(&slice, request.vocab_size) => {
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
                Heard::Part(Reply::Verdict(_)) => {
                    return Err(stream.malformed("a verdict came where slices were asked for"));
                }
                Heard::Part(_) => {
                    return Err(stream.malformed("a slice that nobody asked for, or too large"));
                }
            }
        }
    }

    /// The block as it is to be decided here: what the verifier and the drafter sent of it.
    pub(crate) fn scored(
        &mut self,
        requested: &SessionRequest,
        position: Position<'_>,
        proposals: &RoundProposals,
    ) -> Result<WireBlock, PeerError> {
        let SessionRequest::Verify {
            drafts,
            horizon,
            layers,
        } = requested
        else {
            return Err(PeerError::Decision);
        };
        Ok(WireBlock {
            base_len: position.output.len() as u32,
            drafts: drafts.tokens().to_vec(),
            proposals: proposals.of(drafts),
            bonus: proposals.bonus.clone(),
            horizon: proposals.horizon(*horizon, drafts),
            layers: layers.clone(),
            slices: std::mem::take(&mut self.slices),
        })
    }
}

/// The distributions of a block, as they are reported.
pub(crate) fn report(
    request: &AdmittedRequest,
    block: &WireBlock,
) -> Option<v1::RoundDistributions> {
    request
        .report_distributions
        .then(|| v1::RoundDistributions {
            draft_token_ids: block.drafts.clone(),
            draft: block.proposals.clone(),
            target: block.slices.clone(),
        })
}
