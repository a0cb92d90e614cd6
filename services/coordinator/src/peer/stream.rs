//! An open stream to one peer.

mod read_ahead;

use std::convert::Infallible;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::{Duration, Instant};

use net::KEEPALIVE_TIMEOUT;
use net::deadline::within;
use net::fault::connection_fault;
use ops::trace::TraceContext;
use speculation::TokenId;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use wire::failure::Failure;
use wire::messages::{Encoded, Incoming};
use wire::status::{PeerFailure, classify, describe};
use wire::v1;

use super::error::PeerError;
use super::pool::{Endpoint, failed};
use super::protocol::Protocol;
pub use read_ahead::MAX_AHEAD_BYTES;
use read_ahead::ReadAhead;

/// Messages on their way to a peer. A round is asked only after the one before was answered, so
/// there is never more than one, and a Close.
const REQUEST_BUFFER: usize = 4;

/// Longest time that a peer is told it may take, in milliseconds: the protocol's limit.
const MAX_TIMEOUT_MS: u128 = 600_000;

/// How long a peer may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// Until then.
    pub(crate) until: Instant,
    /// Whether that is less than a peer is due, as the request's own time ends: then nobody is to blame.
    pub(crate) is_short: bool,
}

impl Allowance {
    /// Returns the time that is left.
    pub(crate) fn left(self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// For a peer that is due `whole`, and gets no more than `most`.
    pub(crate) fn at_most(most: Duration, whole: Duration) -> Self {
        Self {
            until: Instant::now() + whole.min(most),
            is_short: most < whole,
        }
    }

    /// The failure of a peer that did not answer within the time it was given.
    pub(crate) fn exceeded(self, given: Duration) -> PeerError {
        if self.is_short {
            PeerError::OutOfTime(given)
        } else {
            PeerError::Late(given)
        }
    }
}

/// Where a request stands when a peer is asked.
#[derive(Clone, Copy)]
pub(crate) struct Position<'a> {
    pub(crate) round: u64,
    pub(crate) allowance: Allowance,
    /// All output tokens so far.
    pub(crate) output: &'a [TokenId],
    /// How many of them were emitted, and so will stand at the next round.
    pub(crate) emitted: usize,
    /// The least probability of survival at which one more draft token pays, see [`Decision::min_survival`].
    ///
    /// [`Decision::min_survival`]: speculation::goodput::Decision::min_survival
    pub(crate) worth: Option<f64>,
    /// What the peer hangs its spans on, if it is to make any.
    pub(crate) trace: Option<TraceContext>,
}

/// Bytes of the messages exchanged with a peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    /// That opened sessions.
    pub(crate) opening: u64,
    /// Of rounds.
    pub(crate) rounds: u64,
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.opening += other.opening;
        self.rounds += other.rounds;
    }
}

/// An open stream to a peer. Dropping it frees the session there.
pub(crate) struct PeerStream<P: Protocol> {
    pub(super) endpoint: Arc<Endpoint>,
    epoch: u32,
    requests: mpsc::Sender<P::Request>,
    replies: ReadAhead<P::Reply>,
    /// Output tokens from the first on that the peer is known to hold.
    pub(super) held: usize,
    /// What the peer said of itself when the session was opened.
    pub(super) description: Arc<v1::PeerDescription>,
    /// Whether the peer said that it is about to stop.
    draining: bool,
    /// When it was heard last, or asked something after that.
    heard: tokio::time::Instant,
    pub(super) traffic: Traffic,
}

impl<P: Protocol> PeerStream<P> {
    /// Opens the session, or re-attaches it, at `endpoint`, which describes itself so. Of what the peer says that
    /// it holds, no more than the first `emitted` tokens are taken for the output's.
    ///
    /// # Errors
    /// If the peer cannot be reached, refuses, or does not answer in time.
    pub(super) async fn open(
        endpoint: &Arc<Endpoint>,
        description: Arc<v1::PeerDescription>,
        open: v1::Open,
        emitted: usize,
        allowance: Allowance,
    ) -> Result<Self, PeerError> {
        let epoch = open.epoch;
        let open = P::open(open);
        let mut traffic = Traffic {
            opening: open.encoded_bytes(),
            rounds: 0,
        };
        let (requests, outgoing) = mpsc::channel(REQUEST_BUFFER);
        let opening = async {
            // There is room: nothing was sent yet.
            let _ = requests.send(open).await;
            let mut replies = P::connect(endpoint, ReceiverStream::new(outgoing)).await?;
            let first = replies.message().await?;
            Ok::<_, Status>((replies, first))
        };
        let given = allowance.left();
        let Ok(opened) = within(given, "open", opening).await else {
            if !allowance.is_short {
                endpoint.silent();
            }
            return Err(allowance.exceeded(given));
        };
        let (replies, first) = opened.map_err(|status| failed(endpoint, P::PEER, status))?;
        traffic.opening += first.as_ref().map_or(0, Encoded::encoded_bytes);
        let opened = match first.map(P::read) {
            Some(Incoming::Opened(opened)) if opened.epoch == epoch => Some(opened),
            _ => None,
        };
        let Some(opened) = opened else {
            let problem = "the stream did not begin with opened";
            endpoint.failed(problem);
            return Err(PeerError::Malformed(problem.to_owned()));
        };
        Ok(Self {
            endpoint: Arc::clone(endpoint),
            epoch,
            requests,
            replies: ReadAhead::of(Box::pin(replies)),
            held: emitted.min(opened.held_len as usize),
            description,
            draining: false,
            heard: tokio::time::Instant::now(),
            traffic,
        })
    }

    /// Most draft tokens that the peer takes in a round.
    pub(super) fn max_draft_tokens(&self) -> u32 {
        let limits = self.description.limits.unwrap_or_default();
        limits.max_draft_tokens.max(1)
    }

    /// The header of a request on top of `output`.
    pub(super) fn header(
        &self,
        position: Position<'_>,
        digest: u64,
        output: &[TokenId],
    ) -> v1::RoundHeader {
        let from_len = self.held.min(output.len());
        let trace_context = position.trace.map(TraceContext::to_bytes);
        let timeout_ms = position.allowance.left().as_millis();
        v1::RoundHeader {
            round: position.round,
            epoch: self.epoch,
            timeout_ms: timeout_ms.clamp(1, MAX_TIMEOUT_MS) as u32,
            from_len: from_len as u32,
            committed: output[from_len..].to_vec(),
            digest,
            trace_context: trace_context.unwrap_or_default(),
        }
    }

    /// Whether a reply answers the request with this round and digest on this stream. Others are
    /// left over from before a retry.
    pub(super) fn answers(
        &self,
        header: Option<&v1::ReplyHeader>,
        round: u64,
        digest: u64,
    ) -> bool {
        header.is_some_and(|header| {
            header.epoch == self.epoch && header.round == round && header.digest == digest
        })
    }

    /// Sends a request. If the stream is broken, its status comes with the next reply.
    pub(super) async fn send(&mut self, request: P::Request) {
        self.traffic.rounds += request.encoded_bytes();
        self.heard = tokio::time::Instant::now();
        let _ = self.requests.send(request).await;
    }

    /// Goes on reading for as long as this is awaited, while nobody takes what was read: the connection's window is
    /// shared by all its streams, and what one of them leaves unread is missing to the others.
    pub(super) async fn read_ahead(&mut self) -> Infallible {
        self.replies.read_ahead().await
    }

    /// The next reply, whatever it answers.
    ///
    /// A stream that breaks is one failed round: the peer may be back at once, and often is. One that breaks after a
    /// silence was broken by the keepalive, as its host is gone: nobody waits there for a connection.
    pub(super) async fn receive(&mut self) -> Result<Incoming<P::Part>, PeerError> {
        let status = loop {
            match self.replies.next().await {
                Some(Ok(reply)) => {
                    let bytes = reply.encoded_bytes();
                    self.heard = tokio::time::Instant::now();
                    match P::read(reply) {
                        Incoming::Draining => {
                            self.draining = true;
                            self.endpoint.draining();
                        }
                        incoming => {
                            self.traffic.rounds += bytes;
                            return Ok(incoming);
                        }
                    }
                }
                None => break Failure::Unavailable.status("the stream ended"),
                Some(Err(status)) => break status,
            }
        };
        if connection_fault(&status).is_some() && self.heard.elapsed() >= KEEPALIVE_TIMEOUT {
            self.endpoint.silent();
        } else if classify(&status) == PeerFailure::Transient {
            self.endpoint.failed(&describe(&status));
        } else {
            // It refuses what by its description it could do: it may have been started anew.
            self.endpoint.forget();
        }
        Err(PeerError::Status {
            status: Box::new(status),
        })
    }

    /// The peer's latest answer was right; it holds the output's first `held` tokens.
    pub(super) fn succeeded(&mut self, held: usize) {
        self.held = held;
        // One that is about to stop is no place for new sessions, however well it answers.
        if !self.draining {
            self.endpoint.succeeded();
        }
    }

    /// The peer, if it said that it is about to stop.
    pub(super) fn draining_at(&self) -> Option<&Arc<Endpoint>> {
        self.draining.then_some(&self.endpoint)
    }

    /// An answer that cannot be right.
    pub(super) fn malformed(&self, problem: impl Into<String>) -> PeerError {
        let problem = problem.into();
        self.endpoint.failed(&problem);
        PeerError::Malformed(problem)
    }

    /// Frees the session at the peer.
    pub(super) fn close(self) {
        // If the buffer is full, or the stream broken, dropping it frees the session too.
        let _ = self.requests.try_send(P::close());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl<P: Protocol> PeerStream<P> {
        /// An open stream to `endpoint`, which describes itself so, over what a test holds in its hands.
        pub(in crate::peer) fn over(
            endpoint: Arc<Endpoint>,
            description: v1::PeerDescription,
            requests: mpsc::Sender<P::Request>,
            replies: read_ahead::Replies<P::Reply>,
        ) -> Self {
            Self {
                endpoint,
                epoch: 1,
                requests,
                replies: ReadAhead::of(replies),
                held: 0,
                description: Arc::new(description),
                draining: false,
                heard: tokio::time::Instant::now(),
                traffic: Traffic::default(),
            }
        }
    }
}
