//! An open stream to one peer.

mod read_ahead;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use fleet::{CallError, PeerEndpoint, drafter_client, failed, verifier_client};
use net::KEEPALIVE_TIMEOUT;
use net::deadline::within;
use net::fault::{connection_fault, describe};
use net::replicas::EnteredSession;
use ops::trace::TraceContext;
use parking_lot::Mutex;
use speculation::TokenId;
use speculation::session::Peer;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use v1::session_reply::Reply;
use v1::session_request::Request;
use wire::failure::Failure;
use wire::round::MAX_TIMEOUT;
use wire::status::{PeerFailure, classify};
use wire::{encoded_bytes, v1};

use super::position::{Deadline, RoundPosition};
pub use read_ahead::MAX_AHEAD_BYTES;
use read_ahead::ReadAhead;

/// Messages on their way to a peer. A round is asked only after the one before was answered, so
/// there is never more than one, and a Close.
const REQUEST_BUFFER: usize = 4;

/// Bytes of the messages exchanged with the peers of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    /// That opened sessions.
    pub(crate) opening: u64,
    /// Of rounds.
    pub(crate) rounds: u64,
}

/// The same, counted by all streams of the request.
pub(super) type TrafficCounter = Arc<Mutex<Traffic>>;

/// An open stream to a peer. Dropping it frees the session there.
pub(crate) struct PeerStream {
    pub(super) endpoint: Arc<PeerEndpoint>,
    pub(super) epoch: u32,
    requests: mpsc::Sender<v1::SessionRequest>,
    replies: ReadAhead,
    /// Output tokens from the first on that the peer is known to hold.
    pub(super) held: usize,
    /// What the peer said of itself when the session was opened.
    pub(super) description: Arc<v1::PeerDescription>,
    /// Whether the peer said that it is about to stop.
    draining: bool,
    /// When it was heard last, or asked something after that.
    heard: tokio::time::Instant,
    traffic: TrafficCounter,
    /// Counts it at its replica.
    _entered: EnteredSession,
}

impl PeerStream {
    /// Opens the session, or re-attaches it, at `endpoint`, which describes itself so. Of what the peer says that
    /// it holds, no more than the first `emitted` tokens are taken for the output's.
    ///
    /// # Errors
    /// If the peer cannot be reached, refuses, or does not answer in time.
    pub(super) async fn open(
        peer: Peer,
        endpoint: &Arc<PeerEndpoint>,
        description: Arc<v1::PeerDescription>,
        open: v1::Open,
        emitted: usize,
        deadline: Deadline,
        traffic: TrafficCounter,
    ) -> Result<Self, CallError> {
        let (epoch, entered) = (open.epoch, endpoint.enter());
        let open = v1::SessionRequest::from(Request::Open(open));
        let sent = encoded_bytes(&open);
        let (requests, outgoing) = mpsc::channel(REQUEST_BUFFER);
        let opening = async {
            // There is room: nothing was sent yet.
            let _ = requests.send(open).await;
            let requests = ReceiverStream::new(outgoing);
            let replies = match peer {
                Peer::Drafter => drafter_client(endpoint).draft(requests).await?,
                Peer::Verifier => verifier_client(endpoint).verify(requests).await?,
            };
            let mut replies = replies.into_inner();
            let first = replies.message().await?;
            Ok::<_, Status>((replies, first))
        };
        let given = deadline.left();
        let Ok(opened) = within(given, "open", opening).await else {
            if !deadline.is_short {
                endpoint.silent();
            }
            return Err(deadline.exceeded(given));
        };
        let (replies, first) = opened.map_err(|status| failed(endpoint, peer, status))?;
        let bytes = sent + first.as_ref().map_or(0, encoded_bytes);
        let held_len = match first.and_then(|first| first.reply) {
            Some(Reply::Opened(opened)) if opened.epoch == epoch => opened.held_len,
            _ => {
                let problem = "the stream did not begin with opened";
                endpoint.failed(problem);
                return Err(CallError::Malformed(problem.to_owned()));
            }
        };
        traffic.lock().opening += bytes;
        Ok(Self {
            endpoint: Arc::clone(endpoint),
            epoch,
            requests,
            replies: ReadAhead::of(Box::pin(replies)),
            held: emitted.min(held_len as usize),
            description,
            draining: false,
            heard: tokio::time::Instant::now(),
            traffic,
            _entered: entered,
        })
    }

    /// Returns the most draft tokens that the peer takes in a round.
    pub(super) fn max_draft_tokens(&self) -> u32 {
        let limits = self.description.limits.unwrap_or_default();
        limits.max_draft_tokens.max(1)
    }

    /// Returns the header of a request on top of `output`.
    pub(super) fn header(
        &self,
        position: RoundPosition<'_>,
        digest: u64,
        output: &[TokenId],
    ) -> v1::RoundHeader {
        let from_len = self.held.min(output.len());
        let trace_context = position.trace.map(TraceContext::to_bytes);
        let timeout = position.deadline.left();
        let timeout = timeout.clamp(Duration::from_millis(1), MAX_TIMEOUT);
        v1::RoundHeader {
            round: position.round,
            epoch: self.epoch,
            timeout_ms: timeout.as_millis() as u32,
            from_len: from_len as u32,
            committed: output[from_len..].to_vec(),
            digest,
            trace_context: trace_context.unwrap_or_default(),
        }
    }

    /// Sends a request. If the stream is broken, its status comes with the next reply.
    pub(super) async fn send(&mut self, request: Request) {
        let request = v1::SessionRequest::from(request);
        self.traffic.lock().rounds += encoded_bytes(&request);
        self.heard = tokio::time::Instant::now();
        let _ = self.requests.send(request).await;
    }

    /// Sends a request that may be lost: it is dropped if the stream is broken, or the peer does not read. Returns whether
    /// it was sent.
    pub(super) fn offer(&mut self, request: Request) -> bool {
        let request = v1::SessionRequest::from(request);
        let bytes = encoded_bytes(&request);
        let is_sent = self.requests.try_send(request).is_ok();
        if is_sent {
            self.traffic.lock().rounds += bytes;
        }
        is_sent
    }

    /// Goes on reading for as long as this is awaited, while nobody takes what was read: the connection's window is
    /// shared by all its streams, and what one of them leaves unread is missing to the others.
    pub(super) async fn read_ahead(&mut self) -> Infallible {
        self.replies.read_ahead().await
    }

    /// Returns the next reply, whatever it answers.
    ///
    /// A stream that breaks is one failed round: the peer may be back at once, and often is. One that breaks after a
    /// silence was broken by the keepalive, as its host is gone: nobody waits there for a connection.
    pub(super) async fn receive(&mut self) -> Result<Reply, CallError> {
        let status = loop {
            match self.replies.next().await {
                Some(Ok(reply)) => {
                    let bytes = encoded_bytes(&reply);
                    self.heard = tokio::time::Instant::now();
                    match reply.reply {
                        Some(Reply::Draining(_)) => {
                            self.draining = true;
                            self.endpoint.draining();
                        }
                        reply => {
                            self.traffic.lock().rounds += bytes;
                            // One of a later version says nothing that is to be acted on.
                            if let Some(reply) = reply {
                                return Ok(reply);
                            }
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
        Err(CallError::Status(Box::new(status)))
    }

    /// Records that the peer's latest answer was right; it holds the output's first `held` tokens.
    pub(super) fn succeeded(&mut self, held: usize) {
        self.held = held;
        // One that is about to stop is no place for new sessions, however well it answers.
        if !self.draining {
            self.endpoint.succeeded();
        }
    }

    /// Returns the peer, if it said that it is about to stop.
    pub(super) fn draining_at(&self) -> Option<&Arc<PeerEndpoint>> {
        self.draining.then_some(&self.endpoint)
    }

    /// Returns the error of an answer that cannot be right, and counts it against the peer.
    pub(super) fn malformed(&self, problem: impl Into<String>) -> CallError {
        let problem = problem.into();
        self.endpoint.failed(&problem);
        CallError::Malformed(problem)
    }

    /// Frees the session at the peer.
    pub(super) fn close(self) {
        // If the buffer is full, or the stream broken, dropping it frees the session too.
        let _ = self.requests.try_send(Request::Close(v1::Close {}).into());
    }
}

#[cfg(test)]
mod tests {
    use tonic::codegen::BoxStream;

    use super::*;

    impl PeerStream {
        /// An open stream to `endpoint`, which describes itself so, over what a test holds in its hands.
        pub(in crate::peer) fn over(
            endpoint: Arc<PeerEndpoint>,
            description: v1::PeerDescription,
            requests: mpsc::Sender<v1::SessionRequest>,
            replies: BoxStream<v1::SessionReply>,
            traffic: TrafficCounter,
        ) -> Self {
            Self {
                _entered: endpoint.enter(),
                endpoint,
                epoch: 1,
                requests,
                replies: ReadAhead::of(replies),
                held: 0,
                description: Arc::new(description),
                draining: false,
                heard: tokio::time::Instant::now(),
                traffic,
            }
        }
    }
}
