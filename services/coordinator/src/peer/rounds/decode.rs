//! Decoding by a verifier alone: one long round, whose tokens come one by one.

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

/// A verifier that decodes alone.
#[derive(Debug)]
pub(crate) struct PendingDecode {
    exchange: Exchange<Verifying>,
    max_tokens: u32,
    credit: Credit,
}

impl PendingDecode {
    /// Asks for `max_tokens` tokens.
    ///
    /// # Errors
    /// If no verifier can be reached that has room for the request.
    pub(crate) async fn start(
        session: &mut PeerSession<Verifying>,
        opener: &mut Opener,
        position: Position<'_>,
        max_tokens: u32,
    ) -> Result<Self, PeerError> {
        let stream = session.ready(opener, position.allowance).await?;
        let from = position.output.len() as u32;
        let credit = Credit::new(from, from.saturating_add(max_tokens));
        let round = Request::Decode(v1::DecodeRound {
            max_tokens,
            header: None,
            until: credit.until(),
        });
        Ok(Self {
            exchange: Exchange::start(stream, position, round.into()).await,
            max_tokens,
            credit,
        })
    }

    /// The next tokens, or progress; `position` holds the output as it is by now, all of which the client took. Between
    /// two tokens the round moves off a peer that is about to stop.
    ///
    /// # Errors
    /// If the stream breaks, or what comes cannot be right.
    pub(crate) async fn next(
        &mut self,
        session: &mut PeerSession<Verifying>,
        opener: &mut Opener,
        position: Position<'_>,
    ) -> Result<Answer, PeerError> {
        let round = position.round;
        if session.leave_draining(opener, position.allowance).await {
            let decoded = position.output.len().saturating_sub(self.exchange.base_len);
            let left = self.max_tokens.saturating_sub(decoded as u32).max(1);
            *self = Self::start(session, opener, position, left).await?;
            return Ok(Answer::progress(round, Peer::Verifier));
        }
        let stream = session.stream()?;
        if let Some(renewal) = self.credit.renewed(position.output.len() as u32) {
            stream.send(renewal.request).await;
            if renewal.was_awaited {
                return Ok(Answer::progress(round, Peer::Verifier));
            }
        }
        match self.exchange.next(stream, position).await? {
            Heard::Progress => Ok(Answer::progress(round, Peer::Verifier)),
            Heard::Part(Reply::Decoded(decoded)) => {
                let at = decoded.header.unwrap_or_default().base_len;
                let tokens = decoded.token_ids;
                let logprobs = OutputLogprobs::read(
                    decoded.logprobs,
                    at as usize,
                    tokens.len(),
                    &opener.request,
                );
                let logprobs = logprobs.map_err(|error| stream.malformed(error.to_string()))?;
                session.succeeded(self.exchange.base_len.min(position.emitted));
                let input = Input::Decoded { round, at, tokens };
                Ok(Answer {
                    logprobs,
                    ..Answer::new(input, decoded.timing.unwrap_or_default())
                })
            }
            Heard::Part(_) => Err(stream.malformed("an answer that nobody asked for")),
        }
    }
}
