//! What is asked of a peer in a round, and its answer: functions from a request of the session to an answer,
//! which carries its timing, its distributions and its faults.

mod decide;
mod draft;
mod parts;
mod started;
mod verify;

use std::ops::Range;

use fleet::CallError;
use speculation::draft_tree::DraftTree;
use speculation::round::BlockInput;
use speculation::session::{Input, Peer};
use speculation::verification::layers::Horizon;
use wire::{logprobs, v1};

use crate::admitted::AdmittedRequest;
use crate::events::AnswerTiming;

pub(super) use decide::{ScoredBlock, decide};
pub(super) use draft::bonus;
pub(super) use started::StartedRound;

/// What the messages of an answer come to.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and it is taken apart at once"
)]
pub(crate) enum Taken {
    Answer(PeerAnswer),
    /// All slices of a block that the coordinator decides.
    Scored(BlockInput, Vec<v1::Slice>),
}

/// What came of a request of the session.
#[derive(Debug)]
pub(crate) struct PeerAnswer {
    /// What the session is to be told.
    pub(crate) input: Input,
    /// Where its time went; how long it took is seen by who asked.
    pub(crate) timing: AnswerTiming,
    /// What a drafter sent of the distributions of its block.
    pub(crate) proposals: RoundProposals,
    /// The distributions of a block, where they are reported.
    pub(crate) distributions: Option<v1::RoundDistributions>,
    /// Draft distributions that were asked for after the block.
    pub(crate) distributions_fetched: u32,
    /// Log probabilities of its tokens, or of those of the prompt, if the request wants them.
    pub(crate) logprobs: OutputLogprobs,
}

impl PeerAnswer {
    pub(super) fn new(input: Input, reported: v1::Timing) -> Self {
        Self {
            input,
            timing: AnswerTiming {
                reported,
                ..AnswerTiming::default()
            },
            proposals: RoundProposals::default(),
            distributions: None,
            distributions_fetched: 0,
            logprobs: OutputLogprobs::default(),
        }
    }
}

/// A peer that failed, and how.
#[derive(Debug)]
pub(crate) struct CallFailure {
    pub(crate) peer: Peer,
    pub(crate) error: CallError,
}

/// What a drafter sent of the distributions of a round's draft tokens, to be passed on to the verifier; nothing, in
/// a round in which it was not asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundProposals {
    /// Levels that the drafter was asked for, if it was.
    requested: Option<u32>,
    /// One for each draft token; empty if the session asks for nothing.
    proposals: Vec<v1::Proposal>,
    /// The same of the position after the block.
    bonus: Option<v1::Proposal>,
}

impl RoundProposals {
    /// Returns what was sent of the distributions of `drafts`: nothing, if none of them was drafted in the round.
    pub(super) fn of(&self, drafts: &DraftTree) -> Vec<v1::Proposal> {
        if drafts.is_empty() {
            Vec::new()
        } else {
            self.proposals.clone()
        }
    }

    /// Returns how far drafting would have gone: as `wanted` by the session, or less, where the drafter was asked for
    /// less.
    fn horizon(&self, wanted: Horizon, drafts: &DraftTree) -> Horizon {
        let requested = self.requested.unwrap_or(wanted.len);
        let len = wanted.len.min(requested.max(drafts.len() as u32));
        Horizon { len, ..wanted }
    }
}

/// Log probabilities of consecutive tokens.
#[derive(Debug, Default)]
pub(crate) struct OutputLogprobs {
    /// Number of tokens before them.
    from: usize,
    of_tokens: Vec<v1::TokenLogprobs>,
}

impl OutputLogprobs {
    /// Reads the log probabilities that a verifier sent for `tokens` tokens, which follow `from` others.
    ///
    /// # Errors
    /// If there is not what `request` wants of each of them.
    fn read(
        of_tokens: Vec<v1::TokenLogprobs>,
        from: usize,
        tokens: usize,
        request: &AdmittedRequest,
    ) -> Result<Self, String> {
        let checked = logprobs::check(&of_tokens, request.logprobs, tokens, request.vocab_size);
        checked.map_err(|bad| bad.to_string())?;
        Ok(Self { from, of_tokens })
    }

    /// Takes those of the tokens `range`; none if it does not hold them all.
    pub(crate) fn take(&mut self, range: Range<usize>) -> Vec<v1::TokenLogprobs> {
        let Self { from, of_tokens } = std::mem::take(self);
        let last = (range.end.checked_sub(from)).filter(|&last| last <= of_tokens.len());
        let (Some(first), Some(last)) = (range.start.checked_sub(from), last) else {
            return Vec::new();
        };
        let held = of_tokens.into_iter().take(last).skip(first);
        held.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_gets_its_own() {
        let at = |logprob| v1::TokenLogprobs {
            logprob,
            ..Default::default()
        };
        let held = || OutputLogprobs {
            from: 5,
            of_tokens: [-1.0, -2.0, -3.0].map(at).into(),
        };
        assert_eq!(held().take(5..8), [-1.0, -2.0, -3.0].map(at));
        assert_eq!(held().take(5..7), [-1.0, -2.0].map(at));
        assert_eq!(held().take(6..7), [at(-2.0)]);
        for other in [4..6, 7..9, 5..9, 0..1] {
            assert_eq!(held().take(other), []);
        }
        assert_eq!(OutputLogprobs::default().take(3..4), []);
    }
}
