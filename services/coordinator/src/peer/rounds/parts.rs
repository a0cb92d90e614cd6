//! Rounds that a verifier answers part by part, no further than it is granted: decoding alone, and the log
//! probabilities of the prompt.

use speculation::session::{Input, Peer};
use v1::round_answer::Part;
use v1::round_request::Round;
use v1::session_request::Request;
use wire::v1;

use super::exchange::{Exchange, UNASKED};
use super::{OutputLogprobs, PeerAnswer};
use crate::peer::error::CallError;
use crate::peer::opener::Opener;
use crate::peer::position::RoundPosition;
use crate::peer::session::PeerSession;

/// Number of parts (tokens or log probabilities) that a verifier may be ahead of what the client has read. The verifier
/// never waits if a round trip takes less time than half of them.
pub const PARTS_AHEAD: u32 = 256;

/// A round whose answer comes in parts.
#[derive(Debug)]
pub(crate) struct PendingParts {
    exchange: Exchange,
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

impl PendingParts {
    /// Asks for `max` tokens.
    ///
    /// # Errors
    /// If no verifier can be reached that has room for the request.
    pub(crate) async fn decode(
        session: &mut PeerSession,
        opener: &mut Opener,
        position: RoundPosition<'_>,
        max: u32,
    ) -> Result<Self, CallError> {
        let from = position.output.len() as u32;
        let credit = Credit::new(from, from.saturating_add(max));
        let round = Round::Decode(v1::DecodeRound {
            max_tokens: max,
            until: credit.until,
        });
        let exchange = ask(session, opener, position, round).await?;
        Ok(Self {
            exchange,
            kind: PartKind::Tokens { max },
            credit,
        })
    }

    /// Asks for the log probabilities of the prompt after the first `from`.
    ///
    /// # Errors
    /// If no verifier can be reached that has room for the request.
    pub(crate) async fn score(
        session: &mut PeerSession,
        opener: &mut Opener,
        position: RoundPosition<'_>,
        from: u32,
    ) -> Result<Self, CallError> {
        let end = opener.request.decoder_prefix_len().saturating_sub(1);
        let credit = Credit::new(from, end as u32);
        let round = Round::Score(v1::ScoreRound {
            from,
            until: credit.until,
        });
        let exchange = ask(session, opener, position, round).await?;
        Ok(Self {
            exchange,
            kind: PartKind::Scores { taken: from },
            credit,
        })
    }

    /// Returns the next part, or progress; the client took all parts before. `position` holds the output as it is by
    /// now. Between two tokens the round moves off a peer that is about to stop.
    ///
    /// # Errors
    /// If the stream breaks, or what comes cannot be right.
    pub(crate) async fn next(
        &mut self,
        session: &mut PeerSession,
        opener: &mut Opener,
        position: RoundPosition<'_>,
    ) -> Result<PeerAnswer, CallError> {
        let round = position.round;
        let progress = || PeerAnswer::progress(round, Peer::Verifier);
        let taken = match self.kind {
            PartKind::Tokens { max } => {
                if session.leave_draining(opener, position.deadline).await {
                    let decoded = position.output.len().saturating_sub(self.exchange.base_len);
                    let left = max.saturating_sub(decoded as u32).max(1);
                    *self = Self::decode(session, opener, position, left).await?;
                    return Ok(progress());
                }
                position.output.len() as u32
            }
            PartKind::Scores { taken } => taken,
        };
        let stream = session.stream()?;
        if let Some(renewal) = self.credit.renewed(taken) {
            stream.send(renewal.request).await;
            if renewal.was_awaited {
                return Ok(progress());
            }
        }
        let Some(part) = self.exchange.next(stream, position).await? else {
            return Ok(progress());
        };
        let (input, from, count, logprobs, timing) = match (part, &mut self.kind) {
            (Part::Decoded(decoded), PartKind::Tokens { .. }) => {
                let (at, tokens) = (decoded.from, decoded.token_ids);
                let count = tokens.len();
                let input = Input::Decoded { round, at, tokens };
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
            _ => return Err(stream.malformed(UNASKED)),
        };
        let logprobs = OutputLogprobs::read(logprobs, from as usize, count, &opener.request);
        let logprobs = logprobs.map_err(|error| stream.malformed(error.to_string()))?;
        // A round before any output leaves none to be held.
        session.succeeded(self.exchange.base_len.min(position.emitted));
        Ok(PeerAnswer {
            logprobs,
            ..PeerAnswer::new(input, timing.unwrap_or_default())
        })
    }
}

/// Sends a round to the verifier.
async fn ask(
    session: &mut PeerSession,
    opener: &mut Opener,
    position: RoundPosition<'_>,
    round: Round,
) -> Result<Exchange, CallError> {
    let stream = session.ready(opener, position.deadline).await?;
    Ok(Exchange::start(stream, position, round).await)
}

/// The grants of one round.
#[derive(Clone, Copy, Debug)]
struct Credit {
    /// Position up to which parts are granted.
    until: u32,
    /// Position at which the round ends; nothing beyond it needs a grant.
    end: u32,
}

/// A further grant.
#[derive(Clone, Debug)]
struct Renewal {
    request: Request,
    /// Whether the verifier had used up its grants, so that its time for an answer begins now.
    was_awaited: bool,
}

impl Credit {
    /// Creates the first grant of a round that begins at position `taken` and ends at `end` at the latest.
    fn new(taken: u32, end: u32) -> Self {
        let until = taken.saturating_add(PARTS_AHEAD);
        Self { until, end }
    }

    /// Returns a further grant if the client has read half or more of the granted parts; `taken` is the position before
    /// which it has read all.
    fn renewed(&mut self, taken: u32) -> Option<Renewal> {
        let left = self.until.saturating_sub(taken);
        if self.until >= self.end || left > PARTS_AHEAD / 2 {
            return None;
        }
        self.until = taken.saturating_add(PARTS_AHEAD);
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

    #[test]
    fn a_verifier_is_granted_more_when_half_is_taken_and_nothing_beyond_the_end() {
        let mut credit = Credit::new(10, 1_000);
        assert_eq!(credit.until, 10 + PARTS_AHEAD);
        assert!(credit.renewed(10 + PARTS_AHEAD / 2 - 1).is_none());
        let taken = 10 + PARTS_AHEAD / 2;
        let more = credit.renewed(taken).expect("half is taken");
        assert!(!more.was_awaited);
        assert_eq!(credit.until, taken + PARTS_AHEAD);
        assert!(credit.renewed(taken).is_none(), "once");
        let more = credit.renewed(credit.until).expect("all is taken");
        assert!(more.was_awaited);
        let mut short = Credit::new(0, PARTS_AHEAD);
        assert!(short.renewed(PARTS_AHEAD).is_none(), "the round is over");
    }
}
