//! The log probabilities of the prompt: one round before any output, whose answer comes in parts.

use speculation::session::{Input, Peer};
use v1::verify_reply::Reply;
use v1::verify_request::Request;
use wire::messages::Verifying;
use wire::v1;

use super::credit::Credit;
use super::exchange::{Exchange, Heard};
use super::{Answer, OutputLogprobs};
use crate::peer::error::PeerError;
use crate::peer::session::{Opener, PeerSession};
use crate::peer::stream::Position;

/// A verifier that scores the prompt.
#[derive(Debug)]
pub(crate) struct PendingScore {
    exchange: Exchange<Verifying>,
    credit: Credit,
    /// Scores that the client took.
    taken: u32,
}

impl PendingScore {
    /// Asks for the scores after the first `from`.
    ///
    /// # Errors
    /// If no verifier can be reached that has room for the request.
    pub(crate) async fn start(
        session: &mut PeerSession<Verifying>,
        opener: &mut Opener,
        position: Position<'_>,
        from: u32,
    ) -> Result<Self, PeerError> {
        let stream = session.ready(opener, position.allowance).await?;
        let len = opener.request.decoder_prefix_len();
        let credit = Credit::new(from, len.saturating_sub(1) as u32);
        let round = Request::Score(v1::ScoreRound {
            from,
            header: None,
            until: credit.until(),
        });
        Ok(Self {
            credit,
            taken: from,
            exchange: Exchange::start(stream, position, round.into()).await,
        })
    }

    /// The next scores, or progress; those before were taken by the client.
    ///
    /// # Errors
    /// If the stream breaks, or what comes cannot be right.
    pub(crate) async fn next(
        &mut self,
        session: &mut PeerSession<Verifying>,
        opener: &Opener,
        position: Position<'_>,
    ) -> Result<Answer, PeerError> {
        let round = position.round;
        let stream = session.stream()?;
        if let Some(renewal) = self.credit.renewed(self.taken) {
            stream.send(renewal.request).await;
            if renewal.was_awaited {
                return Ok(Answer::progress(round, Peer::Verifier));
            }
        }
        match self.exchange.next(stream, position).await? {
            Heard::Progress => Ok(Answer::progress(round, Peer::Verifier)),
            Heard::Part(Reply::Scored(scored)) => {
                let (from, count) = (scored.from, scored.logprobs.len());
                let logprobs =
                    OutputLogprobs::read(scored.logprobs, from as usize, count, &opener.request);
                let logprobs = logprobs.map_err(|error| stream.malformed(error.to_string()))?;
                self.taken = from.saturating_add(count as u32);
                if scored.last {
                    session.succeeded(0);
                }
                let input = Input::Scored {
                    round,
                    from,
                    count: count as u32,
                };
                Ok(Answer {
                    logprobs,
                    ..Answer::new(input, scored.timing.unwrap_or_default())
                })
            }
            Heard::Part(_) => Err(stream.malformed("an answer that nobody asked for")),
        }
    }
}
