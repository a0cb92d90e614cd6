//! Rounds that a verifier answers part by part, no further than it is granted: decoding alone, and the log
//! probabilities of the prompt.

use speculation::session::Input;
use v1::round_answer::Part;
use v1::round_request::Round;
use v1::session_request::Request;
use wire::{pending, v1};

use super::{OutputLogprobs, PeerAnswer, Taken};
use crate::admitted::AdmittedRequest;
use crate::peer::exchange::UNASKED;
use crate::peer::position::RoundPosition;

/// In a stream one in so many forwards tells where its time went, which is a third of what a message says; each does where
/// that is reported, or traced.
const TIMING_EVERY: u32 = 16;

/// An answer that comes in parts.
#[derive(Debug)]
pub(super) struct AwaitedParts {
    kind: PartKind,
    credit: Credit,
}

/// What the parts are of.
#[derive(Clone, Copy, Debug)]
enum PartKind {
    /// Tokens that the verifier decodes alone, at most so many.
    Tokens { max: u32 },
    /// Log probabilities of the prompt; the client took those before `taken`.
    Scores { taken: u32 },
}

impl AwaitedParts {
    /// Returns the round that asks for `max` tokens after `from` others, and what is to come of it.
    pub(super) fn of_decoding(
        position: RoundPosition<'_>,
        max: u32,
        request: &AdmittedRequest,
    ) -> (Round, Self) {
        let from = position.output.len() as u32;
        let is_watched = request.report_rounds || position.trace.is_some();
        let drafts = request.method.streams();
        let (kind, credit) = (
            PartKind::Tokens { max },
            Credit::new(from, from.saturating_add(max), request.tokens_ahead),
        );
        let round = Round::Decode(v1::DecodeRound {
            max_tokens: max,
            until: credit.until,
            drafts,
            timing_every: if drafts && !is_watched {
                TIMING_EVERY
            } else {
                1
            },
        });
        (round, Self { kind, credit })
    }

    /// Returns the round that asks for the log probabilities of the prompt after the first `from` and up to `end`, and
    /// what is to come of it.
    pub(super) fn of_prompt(from: u32, end: u32, ahead: u32) -> (Round, Self) {
        let credit = Credit::new(from, end, ahead);
        let kind = PartKind::Scores { taken: from };
        let round = Round::Score(v1::ScoreRound {
            from,
            until: credit.until,
        });
        (round, Self { kind, credit })
    }

    /// Returns how many tokens are still to be decoded after the first `decoded`; none if it is not tokens that come.
    pub(super) fn left(&self, decoded: u32) -> Option<u32> {
        match self.kind {
            PartKind::Tokens { max } => Some(max.saturating_sub(decoded).max(1)),
            PartKind::Scores { .. } => None,
        }
    }

    /// Returns a further grant if it is time for one.
    pub(super) fn renewed(&mut self, position: RoundPosition<'_>) -> Option<Renewal> {
        self.credit.renewed(match self.kind {
            PartKind::Tokens { .. } => position.output.len() as u32,
            PartKind::Scores { taken } => taken,
        })
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
        let (input, from, count, logprobs, timing) = match (part, &mut self.kind) {
            (Part::Decoded(decoded), PartKind::Tokens { .. }) => {
                let (at, tokens) = (decoded.from, decoded.token_ids);
                let count = tokens.len();
                let drafts = decoded.drafts.as_ref().map(pending::scored_from_wire);
                let drafts = drafts.transpose().map_err(|bad| bad.to_string())?.flatten();
                let input = Input::Decoded {
                    round,
                    at,
                    tokens,
                    drafts,
                };
                (input, at, count, decoded.logprobs, decoded.timing)
            }
            (Part::Scored(scored), PartKind::Scores { taken }) => {
                let (from, count) = (scored.from, scored.logprobs.len());
                *taken = from.saturating_add(count as u32);
                let input = Input::Scored {
                    round,
                    from,
                    count: count as u32,
                };
                (input, from, count, scored.logprobs, scored.timing)
            }
            _ => return Err(UNASKED.to_owned()),
        };
        let logprobs = OutputLogprobs::read(logprobs, from as usize, count, request)?;
        Ok(Some(Taken::Answer(PeerAnswer {
            logprobs,
            ..PeerAnswer::new(input, timing.unwrap_or_default())
        })))
    }
}

/// The grants of one round.
#[derive(Clone, Copy, Debug)]
struct Credit {
    /// Position up to which parts are granted.
    until: u32,
    /// Position at which the round ends; nothing beyond it needs a grant.
    end: u32,
    /// Number of parts that the verifier may be ahead of what the client has read.
    ahead: u32,
}

/// A further grant.
#[derive(Clone, Debug)]
pub(super) struct Renewal {
    pub(super) request: Request,
    /// Whether the verifier had used up its grants, so that its time for an answer begins now.
    pub(super) was_awaited: bool,
}

impl Credit {
    /// Creates the first grant of a round that begins at position `taken` and ends at `end` at the latest, of `ahead` parts.
    fn new(taken: u32, end: u32, ahead: u32) -> Self {
        let until = taken.saturating_add(ahead);
        Self { until, end, ahead }
    }

    /// Returns a further grant if the client has read half or more of the granted parts; `taken` is the position before
    /// which it has read all.
    fn renewed(&mut self, taken: u32) -> Option<Renewal> {
        let left = self.until.saturating_sub(taken);
        if self.until >= self.end || left > self.ahead / 2 {
            return None;
        }
        self.until = taken.saturating_add(self.ahead);
        let until = self.until;
        Some(Renewal {
            request: Request::Grant(v1::Grant { until }),
            was_awaited: left == 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AHEAD: u32 = 256;

    #[test]
    fn a_verifier_is_granted_more_when_half_is_taken_and_nothing_beyond_the_end() {
        let mut credit = Credit::new(10, 1_000, AHEAD);
        assert_eq!(credit.until, 10 + AHEAD);
        assert!(credit.renewed(10 + AHEAD / 2 - 1).is_none());
        let taken = 10 + AHEAD / 2;
        let more = credit.renewed(taken).expect("half is taken");
        assert!(!more.was_awaited);
        assert_eq!(credit.until, taken + AHEAD);
        assert!(credit.renewed(taken).is_none(), "once");
        let more = credit.renewed(credit.until).expect("all is taken");
        assert!(more.was_awaited);
        let mut short = Credit::new(0, AHEAD, AHEAD);
        assert!(short.renewed(AHEAD).is_none(), "the round is over");
    }
}
