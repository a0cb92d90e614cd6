//! A draft block, asked of a verifier: to be decided, or to be scored.

use fleet::CallError;
use speculation::draft_tree::DraftTree;
use speculation::round::BlockInput;
use speculation::session::Input;
use speculation::verification::layers::{Horizon, ResidualLayer};
use v1::round_answer::Part;
use v1::round_request::Round;
use wire::{drafting, slice, v1, verdict};

use super::{OutputLogprobs, PeerAnswer, RoundProposals, Taken};
use crate::admitted::AdmittedRequest;
use crate::peer::position::RoundPosition;
use crate::peer::stream::PeerStream;

/// A block that a verifier was asked about.
#[derive(Debug)]
pub(super) struct AwaitedVerdict {
    /// The block, where it is decided here: a slice is to come for each position.
    scored: Option<BlockInput>,
    slices: Vec<v1::Slice>,
}

impl AwaitedVerdict {
    /// Returns the round that asks the verifier of `stream` about a block, and what is to come of it. `proposals` are what
    /// the drafter sent in this round.
    ///
    /// # Errors
    /// If the verifier takes no block as long.
    pub(super) fn of(
        stream: &PeerStream,
        request: &AdmittedRequest,
        (drafts, horizon, layers): (&DraftTree, Horizon, &[ResidualLayer]),
        proposals: &RoundProposals,
    ) -> Result<(Round, Self), CallError> {
        let max_draft_tokens = stream.max_draft_tokens();
        if drafts.len() > max_draft_tokens as usize {
            return Err(CallError::TooLong { max_draft_tokens });
        }
        let mut round = v1::VerifyRound {
            drafts: Some(drafting::tree_to_wire(drafts)),
            ..Default::default()
        };
        let horizon = proposals.horizon(horizon, drafts);
        let mut scored = None;
        if request.method.accept_at_coordinator {
            scored = Some(BlockInput {
                drafts: drafts.clone(),
                horizon,
                layers: layers.to_vec(),
                // Read later.
                ..BlockInput::default()
            });
            round.slices = Some(v1::SliceRequest {
                top: 0,
                unscaled: request.needs_target_unscaled(),
                confidences: request.needs_confidences() || request.report_distributions,
            });
        } else {
            // Only layers have a horizon, and trees have none.
            let outlives_block = drafts.is_chain() && horizon.len != drafts.len() as u32;
            round.proposals = proposals.of(drafts);
            round.bonus_q.clone_from(&proposals.bonus);
            round.layers = verdict::layers_to_wire(layers);
            round.horizon = outlives_block.then_some(horizon.len);
            round.stopped = horizon.stopped;
        }
        let awaited = Self {
            scored,
            slices: Vec::new(),
        };
        Ok((Round::Verify(round), awaited))
    }

    /// Takes a message of the answer.
    ///
    /// # Errors
    /// Says what cannot be right.
    pub(super) fn take(
        &mut self,
        part: Part,
        position: RoundPosition<'_>,
        request: &AdmittedRequest,
    ) -> Result<Option<Taken>, String> {
        match part {
            Part::Verdict(mut decided) if self.scored.is_none() => {
                let timing = decided.timing.unwrap_or_default();
                let logprobs = std::mem::take(&mut decided.logprobs);
                let (from, count) = (position.output.len(), decided.emitted.len());
                let logprobs = OutputLogprobs::read(logprobs, from, count, request)?;
                let input = Input::Verified {
                    round: position.round,
                    verdict: verdict::from_wire(decided).map_err(|bad| bad.to_string())?,
                };
                Ok(Some(Taken::Answer(PeerAnswer {
                    logprobs,
                    ..PeerAnswer::new(input, timing)
                })))
            }
            Part::Slice(slice) if slice::fits(&slice, request.vocab_size) => {
                let is_last = slice.last;
                self.slices.push(slice);
                let positions = self.scored.as_ref().map(|block| 1 + block.drafts.len());
                if is_last != (Some(self.slices.len()) == positions) {
                    return Err("not one slice for each position".to_owned());
                }
                let block = self.scored.take_if(|_| is_last);
                Ok(block.map(|block| Taken::Scored(block, std::mem::take(&mut self.slices))))
            }
            Part::Verdict(_) => Err("a verdict came where slices were asked for".to_owned()),
            _ => Err("a slice that nobody asked for, or too large".to_owned()),
        }
    }
}
