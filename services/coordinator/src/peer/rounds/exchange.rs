//! One request to a peer, and what is heard of it.

use wire::messages::Incoming;
use wire::v1;

use crate::peer::error::PeerError;
use crate::peer::protocol::Protocol;
use crate::peer::stream::{PeerStream, Position};

/// How often a peer may say that it holds too little before it is taken for broken.
const NEED_FROM_LIMIT: usize = 3;

/// A request that a peer was sent in a round.
#[derive(Debug)]
pub(super) struct Exchange<P: Protocol> {
    /// Without its header.
    request: P::Request,
    round: u64,
    digest: u64,
    /// Output tokens it builds on.
    pub(super) base_len: usize,
    need_from: usize,
}

/// What is heard of a peer.
pub(super) enum Heard<P> {
    /// It is at work.
    Progress,
    /// A part of its answer.
    Part(P),
}

impl<P: Protocol> Exchange<P> {
    /// Sends `request` on top of the output.
    pub(super) async fn start(
        stream: &mut PeerStream<P>,
        position: Position<'_>,
        request: P::Request,
    ) -> Self {
        let exchange = Self {
            round: position.round,
            digest: P::digest(&request),
            base_len: position.output.len(),
            request,
            need_from: 0,
        };
        exchange.send(stream, position).await;
        exchange
    }

    async fn send(&self, stream: &mut PeerStream<P>, position: Position<'_>) {
        let output = &position.output[..self.base_len];
        let mut request = self.request.clone();
        P::set_header(&mut request, stream.header(position, self.digest, output));
        stream.send(request).await;
    }

    /// Returns what is heard next. Answers to another request, left over from before a retry, are skipped.
    ///
    /// # Errors
    /// If the stream breaks, or the peer keeps asking for earlier tokens.
    pub(super) async fn next(
        &mut self,
        stream: &mut PeerStream<P>,
        position: Position<'_>,
    ) -> Result<Heard<P::Part>, PeerError> {
        loop {
            let answers = |header: Option<v1::ReplyHeader>, stream: &PeerStream<P>| {
                stream.answers(header.as_ref(), self.round, self.digest)
            };
            match stream.receive().await? {
                Incoming::NeedFrom(need) if answers(need.header, stream) => {
                    self.need_from += 1;
                    if self.need_from == NEED_FROM_LIMIT {
                        return Err(stream.malformed("it keeps asking for earlier tokens"));
                    }
                    stream.held = stream.held.min(need.from as usize);
                    self.send(stream, position).await;
                }
                Incoming::Progress(header) if answers(header, stream) => {
                    return Ok(Heard::Progress);
                }
                Incoming::Part(header, part) if answers(header, stream) => {
                    return Ok(Heard::Part(part));
                }
                _ => {}
            }
        }
    }
}
