//! One round at a peer: what it is asked, and what comes of it.

use fleet::CallError;
use wire::round::digest;
use wire::v1;
use wire::v1::round_answer::Part;
use wire::v1::round_request::Round;
use wire::v1::session_reply::Reply;
use wire::v1::session_request::Request;

use crate::peer::position::RoundPosition;
use crate::peer::stream::PeerStream;

/// How often a peer may say that it holds too little before it is taken for broken.
const NEED_FROM_LIMIT: usize = 3;

/// What is wrong with an answer of a kind that was not asked for.
pub(super) const UNASKED: &str = "an answer that nobody asked for";

/// What a reply is to a round.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and it is taken apart at once"
)]
pub(super) enum Heard {
    /// Nothing: it answers another, left over from before a retry, or the round was sent again.
    Nothing,
    /// The peer is at work on it.
    Progress,
    /// A part of its answer.
    Part(Part),
}

/// A round that a peer was sent.
#[derive(Debug)]
pub(super) struct Exchange {
    requested: Round,
    round: u64,
    digest: u64,
    /// Whether a part of the answer came; those that follow may say no more than their round.
    is_answered: bool,
    /// Output tokens it builds on.
    pub(super) base_len: usize,
    need_from: usize,
}

impl Exchange {
    /// Sends a round on top of the output.
    pub(super) async fn start(
        stream: &mut PeerStream,
        position: RoundPosition<'_>,
        requested: Round,
    ) -> Self {
        let exchange = Self {
            round: position.round,
            digest: digest(&requested),
            is_answered: false,
            base_len: position.output.len(),
            requested,
            need_from: 0,
        };
        exchange.send(stream, position).await;
        exchange
    }

    async fn send(&self, stream: &mut PeerStream, position: RoundPosition<'_>) {
        let output = &position.output[..self.base_len];
        let request = v1::RoundRequest {
            header: Some(stream.header(position, self.digest, output)),
            round: Some(self.requested.clone()),
        };
        stream.send(Request::Round(request)).await;
    }

    /// Returns whether a reply with this header on `stream` answers the round. Others are left over from before a
    /// retry.
    fn is_meant_by(&self, header: Option<v1::ReplyHeader>, stream: &PeerStream) -> bool {
        header.is_some_and(|header| {
            let key = (header.epoch, header.round, header.digest);
            let goes_on = self.is_answered && key == (0, self.round, 0);
            goes_on || key == (stream.epoch, self.round, self.digest)
        })
    }

    /// Returns what a reply is to the round, which is sent again if the peer holds too little.
    ///
    /// # Errors
    /// If the peer keeps asking for earlier tokens.
    pub(super) async fn take(
        &mut self,
        reply: Reply,
        stream: &mut PeerStream,
        position: RoundPosition<'_>,
    ) -> Result<Heard, CallError> {
        Ok(match reply {
            Reply::NeedFrom(need) if self.is_meant_by(need.header, stream) => {
                self.need_from += 1;
                if self.need_from == NEED_FROM_LIMIT {
                    return Err(stream.malformed("it keeps asking for earlier tokens"));
                }
                stream.held = stream.held.min(need.from as usize);
                self.send(stream, position).await;
                Heard::Nothing
            }
            Reply::Progress(progress) if self.is_meant_by(progress.header, stream) => {
                Heard::Progress
            }
            Reply::Answer(v1::RoundAnswer {
                header,
                part: Some(part),
            }) if self.is_meant_by(header, stream) => {
                self.is_answered = true;
                Heard::Part(part)
            }
            _ => Heard::Nothing,
        })
    }
}
