//! An open stream to one peer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use server::deadline::within;
use speculation::TokenId;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use v1::{draft_reply, draft_request, verify_reply, verify_request};
use wire::size::Encoded;
use wire::status::{PeerFailure, classify};
use wire::v1;

use crate::error::PeerError;
use crate::exchange::Ask;
use crate::peers::{Endpoint, Kind, SILENT, drafter_client, failed, verifier_client};

/// Messages on their way to a peer. A round is asked only after the one before was answered, so
/// there is never more than one, and a Close.
const REQUEST_BUFFER: usize = 4;

/// Bytes of the messages exchanged with the peers of one request.
#[derive(Debug, Default)]
pub(crate) struct WireBytes {
    opening: AtomicU64,
    rounds: AtomicU64,
}

impl WireBytes {
    fn add(place: &AtomicU64, message: &impl Encoded) {
        place.fetch_add(message.encoded_bytes(), Ordering::Relaxed);
    }

    /// Bytes that opened sessions.
    pub(crate) fn opening(&self) -> u64 {
        self.opening.load(Ordering::Relaxed)
    }

    /// Bytes of rounds.
    pub(crate) fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }
}

/// The messages of one kind of stream.
pub(crate) trait Protocol {
    /// From the coordinator.
    type Request: Encoded + Send + 'static;
    /// From the peer.
    type Reply: Encoded;
    /// Who is at the other end.
    const KIND: Kind;

    fn open(open: v1::Open) -> Self::Request;
    fn close() -> Self::Request;
    fn opened(reply: &Self::Reply) -> Option<v1::Opened>;
    /// Whether the peer says that it is about to stop.
    fn is_draining(reply: &Self::Reply) -> bool;
    fn connect(
        endpoint: &Endpoint,
        requests: ReceiverStream<Self::Request>,
    ) -> impl Future<Output = Result<Streaming<Self::Reply>, Status>> + Send;
}

/// `Drafter.Draft`.
pub(crate) struct Drafting;

impl Protocol for Drafting {
    type Request = v1::DraftRequest;
    type Reply = v1::DraftReply;
    const KIND: Kind = Kind::Drafter;

    fn open(open: v1::Open) -> v1::DraftRequest {
        v1::DraftRequest {
            request: Some(draft_request::Request::Open(open)),
        }
    }

    fn close() -> v1::DraftRequest {
        v1::DraftRequest {
            request: Some(draft_request::Request::Close(v1::Close {})),
        }
    }

    fn opened(reply: &v1::DraftReply) -> Option<v1::Opened> {
        match reply.reply {
            Some(draft_reply::Reply::Opened(opened)) => Some(opened),
            _ => None,
        }
    }

    fn is_draining(reply: &v1::DraftReply) -> bool {
        matches!(reply.reply, Some(draft_reply::Reply::Draining(_)))
    }

    async fn connect(
        endpoint: &Endpoint,
        requests: ReceiverStream<v1::DraftRequest>,
    ) -> Result<Streaming<v1::DraftReply>, Status> {
        Ok(drafter_client(endpoint).draft(requests).await?.into_inner())
    }
}

/// `Verifier.Verify`.
pub(crate) struct Verifying;

impl Protocol for Verifying {
    type Request = v1::VerifyRequest;
    type Reply = v1::VerifyReply;
    const KIND: Kind = Kind::Verifier;

    fn open(open: v1::Open) -> v1::VerifyRequest {
        v1::VerifyRequest {
            request: Some(verify_request::Request::Open(open)),
        }
    }

    fn close() -> v1::VerifyRequest {
        v1::VerifyRequest {
            request: Some(verify_request::Request::Close(v1::Close {})),
        }
    }

    fn opened(reply: &v1::VerifyReply) -> Option<v1::Opened> {
        match reply.reply {
            Some(verify_reply::Reply::Opened(opened)) => Some(opened),
            _ => None,
        }
    }

    fn is_draining(reply: &v1::VerifyReply) -> bool {
        matches!(reply.reply, Some(verify_reply::Reply::Draining(_)))
    }

    async fn connect(
        endpoint: &Endpoint,
        requests: ReceiverStream<v1::VerifyRequest>,
    ) -> Result<Streaming<v1::VerifyReply>, Status> {
        Ok(verifier_client(endpoint)
            .verify(requests)
            .await?
            .into_inner())
    }
}

/// An open session at a peer. Dropping it frees the session there.
pub(crate) struct Link<P: Protocol> {
    endpoint: Arc<Endpoint>,
    epoch: u32,
    requests: mpsc::Sender<P::Request>,
    replies: Streaming<P::Reply>,
    /// Output tokens the peer is known to hold.
    pub(crate) held: usize,
    /// Most draft tokens the peer takes in a round.
    pub(crate) max_draft_tokens: u32,
    /// Longest sequence the peer's model holds, in tokens.
    pub(crate) context_len: u32,
    /// Whether the peer said that it is about to stop.
    draining: bool,
    wire_bytes: Arc<WireBytes>,
}

impl<P: Protocol> Link<P> {
    /// Opens the session, or re-attaches it, at the peer picked.
    ///
    /// # Errors
    /// If the peer cannot be reached, refuses, or does not answer within `timeout`.
    pub(crate) async fn open(
        endpoint: &Arc<Endpoint>,
        open: v1::Open,
        timeout: Duration,
        wire_bytes: Arc<WireBytes>,
    ) -> Result<Self, PeerError> {
        let epoch = open.epoch;
        let open = P::open(open);
        WireBytes::add(&wire_bytes.opening, &open);
        let (requests, outgoing) = mpsc::channel(REQUEST_BUFFER);
        let opening = async {
            // There is room: nothing was sent yet.
            let _ = requests.send(open).await;
            let mut replies = P::connect(endpoint, ReceiverStream::new(outgoing)).await?;
            let first = replies.message().await?;
            Ok::<_, Status>((replies, first))
        };
        let Ok(opened) = within(timeout, "open", opening).await else {
            endpoint.unreachable(SILENT);
            let address = endpoint.address().to_owned();
            return Err(PeerError::Late {
                address,
                after: timeout,
            });
        };
        let (replies, first) = opened.map_err(|status| failed(endpoint, P::KIND, status))?;
        if let Some(first) = &first {
            WireBytes::add(&wire_bytes.opening, first);
        }
        let opened = first
            .as_ref()
            .and_then(P::opened)
            .filter(|opened| opened.epoch == epoch);
        let Some(opened) = opened else {
            endpoint.failed();
            let address = endpoint.address().to_owned();
            let problem = "the stream did not begin with opened".to_owned();
            return Err(PeerError::Malformed { address, problem });
        };
        let endpoint = Arc::clone(endpoint);
        Ok(Self {
            endpoint,
            epoch,
            requests,
            replies,
            held: opened.held_len as usize,
            max_draft_tokens: u32::MAX,
            context_len: u32::MAX,
            draining: false,
            wire_bytes,
        })
    }

    /// The header of a request on top of `output`.
    pub(crate) fn header(&self, ask: Ask<'_>, digest: u64, output: &[TokenId]) -> v1::RoundHeader {
        let from_len = self.held.min(output.len());
        let trace_context = ask.trace.map(|context| context.to_bytes().to_vec());
        v1::RoundHeader {
            round: ask.round,
            epoch: self.epoch,
            timeout_ms: ask.timeout.as_millis().clamp(1, 600_000) as u32,
            from_len: from_len as u32,
            committed: output[from_len..].to_vec(),
            digest,
            trace_context: trace_context.unwrap_or_default(),
        }
    }

    /// Whether a reply answers the request with this round and digest on this stream. Others are
    /// left over from before a retry.
    pub(crate) fn answers(
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
    pub(crate) async fn send(&mut self, request: P::Request) {
        WireBytes::add(&self.wire_bytes.rounds, &request);
        let _ = self.requests.send(request).await;
    }

    /// The next reply, whatever it answers.
    ///
    /// A stream that breaks is one failed round: the peer may be back at once, and often is.
    pub(crate) async fn receive(&mut self) -> Result<P::Reply, PeerError> {
        let status = loop {
            match self.replies.message().await {
                Ok(Some(reply)) if P::is_draining(&reply) => {
                    self.draining = true;
                    self.endpoint.draining();
                }
                Ok(Some(reply)) => {
                    WireBytes::add(&self.wire_bytes.rounds, &reply);
                    return Ok(reply);
                }
                Ok(None) => break Status::unavailable("the stream ended"),
                Err(status) => break status,
            }
        };
        if classify(&status) == PeerFailure::Transient {
            self.endpoint.failed();
        } else {
            // It refuses what by its description it could do: it may have been started anew.
            self.endpoint.forget();
        }
        Err(PeerError::Status {
            address: self.endpoint.address().to_owned(),
            status: Box::new(status),
        })
    }

    /// The peer's latest answer was right.
    pub(crate) fn succeeded(&self) {
        // One that is about to stop is no place for new sessions, however well it answers.
        if !self.draining {
            self.endpoint.succeeded();
        }
    }

    /// The peer, if it said that it is about to stop.
    pub(crate) fn draining_at(&self) -> Option<&Arc<Endpoint>> {
        self.draining.then_some(&self.endpoint)
    }

    /// An answer that cannot be right.
    pub(crate) fn malformed(&self, problem: impl Into<String>) -> PeerError {
        self.endpoint.failed();
        PeerError::Malformed {
            address: self.endpoint.address().to_owned(),
            problem: problem.into(),
        }
    }

    /// Frees the session at the peer.
    pub(crate) fn close(self) {
        // If the buffer is full, or the stream broken, dropping it frees the session too.
        let _ = self.requests.try_send(P::close());
    }
}
