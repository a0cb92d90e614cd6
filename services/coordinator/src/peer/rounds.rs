//! What is asked of a peer in a round, and its answer: functions from a request of the session to an answer,
//! which carries its timing, its distributions and its faults.

mod decide;
mod draft;
mod exchange;
mod parts;
mod verify;

use std::ops::Range;
use std::time::Duration;

use speculation::draft_tree::DraftTree;
use speculation::round::BlockInput;
use speculation::session::{Input, Peer, Request};
use speculation::verification::layers::Horizon;
use wire::{logprobs, v1};

use super::error::CallError;
use super::opener::Opener;
use super::position::RoundPosition;
use super::session::PeerSession;
use crate::admitted::AdmittedRequest;

pub(super) use decide::{ScoredBlock, decide};
pub(super) use draft::bonus;
pub use parts::PARTS_AHEAD;

use draft::AwaitedDraft;
use exchange::Exchange;
use parts::AwaitedParts;
use verify::AwaitedVerdict;

/// A round that a peer was asked.
#[derive(Debug)]
pub(super) struct StartedRound {
    exchange: Exchange,
    awaited: Awaited,
}

/// What is to come of a round, and what came of it so far.
#[derive(Debug)]
enum Awaited {
    Draft(AwaitedDraft),
    Verify(AwaitedVerdict),
    Parts(AwaitedParts),
}

/// What a message of an answer comes to.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and it is taken apart at once"
)]
enum Taken {
    /// Nothing yet: more is to come.
    Part,
    Answer(PeerAnswer),
    /// All slices of a block have come, which the coordinator decides.
    Scored,
}

impl StartedRound {
    /// Asks the peer of `session` for what `request` says; `proposals` are what the drafter sent in this round.
    ///
    /// # Errors
    /// If no peer can be reached that does what the request needs, or it takes no block as long.
    pub(super) async fn start(
        session: &mut PeerSession,
        opener: &mut Opener,
        request: &Request,
        position: RoundPosition<'_>,
        proposals: &RoundProposals,
    ) -> Result<Self, CallError> {
        let stream = session.ready(opener, position.deadline).await?;
        let admitted = &opener.request;
        let (round, awaited) = match request {
            Request::Draft {
                max_tokens,
                bonus_q,
            } => {
                let levels = (*max_tokens, *bonus_q);
                let (round, draft) = AwaitedDraft::of(stream, admitted, position, levels)?;
                (round, Awaited::Draft(draft))
            }
            Request::Verify {
                drafts,
                horizon,
                layers,
            } => {
                let block = (drafts, *horizon, &layers[..]);
                let (round, verdict) = AwaitedVerdict::of(stream, admitted, block, proposals)?;
                (round, Awaited::Verify(verdict))
            }
            Request::Decode { max_tokens } => {
                let from = position.output.len() as u32;
                let (round, parts) = AwaitedParts::of_decoding(from, *max_tokens);
                (round, Awaited::Parts(parts))
            }
            Request::Score { from } => {
                let end = admitted.decoder_prefix_len().saturating_sub(1);
                let (round, parts) = AwaitedParts::of_prompt(*from, end as u32);
                (round, Awaited::Parts(parts))
            }
        };
        Ok(Self {
            exchange: Exchange::start(stream, position, round).await,
            awaited,
        })
    }

    /// Returns the peer's answer, the next part of it, or its progress; none if all slices have come that the coordinator
    /// decides from. The client took all parts before, and `position` holds the output as it is by now. Between two
    /// tokens that are decoded alone the round moves off a peer that is about to stop.
    ///
    /// # Errors
    /// If the stream breaks, or what comes cannot be right.
    pub(super) async fn next(
        &mut self,
        session: &mut PeerSession,
        opener: &mut Opener,
        position: RoundPosition<'_>,
    ) -> Result<Option<PeerAnswer>, CallError> {
        let progress = Some(PeerAnswer::progress(position.round, session.peer));
        if let Awaited::Parts(parts) = &mut self.awaited {
            let decoded = position.output.len().saturating_sub(self.exchange.base_len);
            if let Some(max_tokens) = parts.left(decoded as u32)
                && session.leave_draining(opener, position.deadline).await
            {
                let left = Request::Decode { max_tokens };
                let none = RoundProposals::default();
                *self = Self::start(session, opener, &left, position, &none).await?;
                return Ok(progress);
            }
            if let Some(renewal) = parts.renewed(position) {
                session.stream()?.send(renewal.request).await;
                if renewal.was_awaited {
                    return Ok(progress);
                }
            }
        }
        let (stream, request) = (session.stream()?, &opener.request);
        loop {
            let Some(part) = self.exchange.next(stream, position).await? else {
                return Ok(progress);
            };
            let taken = match &mut self.awaited {
                Awaited::Draft(draft) => draft.take(part, position.round, request),
                Awaited::Verify(verdict) => verdict.take(part, position, request),
                Awaited::Parts(parts) => parts.take(part, position.round, request),
            };
            let answer = match taken.map_err(|problem| stream.malformed(problem))? {
                Taken::Part => continue,
                Taken::Answer(answer) => Some(answer),
                Taken::Scored => None,
            };
            // A round before any output leaves none to be held.
            session.succeeded(self.exchange.base_len.min(position.emitted));
            return Ok(answer);
        }
    }

    /// Returns the block `requested` as it is to be decided here, and what the drafter and the verifier sent of its
    /// distributions.
    pub(super) fn scored(
        &mut self,
        requested: &Request,
        proposals: &RoundProposals,
    ) -> Result<(BlockInput, v1::RoundDistributions), CallError> {
        let (
            Awaited::Verify(verdict),
            Request::Verify {
                drafts,
                horizon,
                layers,
            },
        ) = (&mut self.awaited, requested)
        else {
            return Err(CallError::Decision);
        };
        let distributions = v1::RoundDistributions {
            draft_token_ids: drafts.tokens().to_vec(),
            draft: proposals.of(drafts),
            target: std::mem::take(&mut verdict.slices),
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

/// What came of a request of the session.
#[derive(Debug)]
pub(crate) struct PeerAnswer {
    /// What the session is to be told.
    pub(crate) input: Input,
    /// What the peer says of its share.
    pub(crate) reported: v1::Timing,
    /// How long it took to decide a block here, where the coordinator decides.
    pub(crate) decided: Duration,
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
            reported,
            decided: Duration::ZERO,
            proposals: RoundProposals::default(),
            distributions: None,
            distributions_fetched: 0,
            logprobs: OutputLogprobs::default(),
        }
    }

    /// Returns the answer that `peer` is at work.
    pub(super) fn progress(round: u64, peer: Peer) -> Self {
        Self::new(Input::Progress { round, peer }, v1::Timing::default())
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
    pub(crate) round: u64,
    /// Levels that the drafter was asked for, if it was.
    requested: Option<u32>,
    /// One for each draft token; empty if the session asks for nothing.
    proposals: Vec<v1::Proposal>,
    /// The same of the position after the block.
    bonus: Option<v1::Proposal>,
}

impl RoundProposals {
    /// Returns what was sent of the distributions of `drafts`: nothing, if none of them was drafted in the round.
    fn of(&self, drafts: &DraftTree) -> Vec<v1::Proposal> {
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
