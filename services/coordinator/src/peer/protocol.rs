//! The messages of the two kinds of streams, as far as they are alike.

use std::fmt::Debug;

use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use v1::{draft_reply, draft_request, verify_reply, verify_request};
use wire::digest::digest;
use wire::size::Encoded;
use wire::v1;

use super::pool::{Endpoint, drafter_client, verifier_client};
use crate::admitted::PeerKind;

/// The messages of one kind of stream.
pub(super) trait Protocol {
    /// From the coordinator.
    type Request: Encoded + Clone + Debug + Send + 'static;
    /// From the peer.
    type Reply: Encoded + Debug + 'static;
    /// A part of a round's answer.
    type Part: Debug;
    /// Who is at the other end.
    const KIND: PeerKind;

    fn open(open: v1::Open) -> Self::Request;
    fn close() -> Self::Request;
    /// Puts the header into the request of a round.
    fn set_header(request: &mut Self::Request, header: v1::RoundHeader);
    /// The digest of the request of a round.
    fn digest(request: &Self::Request) -> u64;
    fn read(reply: Self::Reply) -> Incoming<Self::Part>;
    fn connect(
        endpoint: &Endpoint,
        requests: ReceiverStream<Self::Request>,
    ) -> impl Future<Output = Result<Streaming<Self::Reply>, Status>> + Send;
}

/// What a peer says.
#[derive(Debug)]
pub(super) enum Incoming<P> {
    Opened(v1::Opened),
    /// It is about to stop.
    Draining,
    /// It holds too little.
    NeedFrom(v1::NeedFrom),
    /// It is at work.
    Progress(Option<v1::ReplyHeader>),
    /// A part of the answer to the request with this header.
    Part(Option<v1::ReplyHeader>, P),
    /// Nothing that is to be acted on.
    Other,
}

/// `Drafter.Draft`.
#[derive(Debug)]
pub(super) struct Drafting;

impl Protocol for Drafting {
    type Request = v1::DraftRequest;
    type Reply = v1::DraftReply;
    type Part = v1::DraftBlock;
    const KIND: PeerKind = PeerKind::Drafter;

    fn open(open: v1::Open) -> v1::DraftRequest {
        draft_request::Request::Open(open).into()
    }

    fn close() -> v1::DraftRequest {
        draft_request::Request::Close(v1::Close {}).into()
    }

    fn set_header(request: &mut v1::DraftRequest, header: v1::RoundHeader) {
        if let Some(draft_request::Request::Round(round)) = &mut request.request {
            round.header = Some(header);
        }
    }

    fn digest(request: &v1::DraftRequest) -> u64 {
        match &request.request {
            Some(draft_request::Request::Round(round)) => digest(round),
            _ => 0,
        }
    }

    fn read(reply: v1::DraftReply) -> Incoming<v1::DraftBlock> {
        match reply.reply {
            Some(draft_reply::Reply::Opened(opened)) => Incoming::Opened(opened),
            Some(draft_reply::Reply::Draining(_)) => Incoming::Draining,
            Some(draft_reply::Reply::NeedFrom(need)) => Incoming::NeedFrom(need),
            Some(draft_reply::Reply::Progress(progress)) => Incoming::Progress(progress.header),
            Some(draft_reply::Reply::Block(block)) => Incoming::Part(block.header, block),
            Some(draft_reply::Reply::Closed(_)) | None => Incoming::Other,
        }
    }

    async fn connect(
        endpoint: &Endpoint,
        requests: ReceiverStream<v1::DraftRequest>,
    ) -> Result<Streaming<v1::DraftReply>, Status> {
        Ok(drafter_client(endpoint).draft(requests).await?.into_inner())
    }
}

/// `Verifier.Verify`.
#[derive(Debug)]
pub(super) struct Verifying;

impl Protocol for Verifying {
    type Request = v1::VerifyRequest;
    type Reply = v1::VerifyReply;
    type Part = verify_reply::Reply;
    const KIND: PeerKind = PeerKind::Verifier;

    fn open(open: v1::Open) -> v1::VerifyRequest {
        verify_request::Request::Open(open).into()
    }

    fn close() -> v1::VerifyRequest {
        verify_request::Request::Close(v1::Close {}).into()
    }

    fn set_header(request: &mut v1::VerifyRequest, header: v1::RoundHeader) {
        match &mut request.request {
            Some(verify_request::Request::Round(round)) => round.header = Some(header),
            Some(verify_request::Request::Decode(round)) => round.header = Some(header),
            _ => {}
        }
    }

    fn digest(request: &v1::VerifyRequest) -> u64 {
        match &request.request {
            Some(verify_request::Request::Round(round)) => digest(round),
            Some(verify_request::Request::Decode(round)) => digest(round),
            _ => 0,
        }
    }

    fn read(reply: v1::VerifyReply) -> Incoming<verify_reply::Reply> {
        use verify_reply::Reply;
        match reply.reply {
            Some(Reply::Opened(opened)) => Incoming::Opened(opened),
            Some(Reply::Draining(_)) => Incoming::Draining,
            Some(Reply::NeedFrom(need)) => Incoming::NeedFrom(need),
            Some(Reply::Progress(progress)) => Incoming::Progress(progress.header),
            Some(Reply::Verdict(part)) => Incoming::Part(part.header, Reply::Verdict(part)),
            Some(Reply::Slice(part)) => Incoming::Part(part.header, Reply::Slice(part)),
            Some(Reply::Decoded(part)) => Incoming::Part(part.header, Reply::Decoded(part)),
            Some(Reply::Closed(_)) | None => Incoming::Other,
        }
    }

    async fn connect(
        endpoint: &Endpoint,
        requests: ReceiverStream<v1::VerifyRequest>,
    ) -> Result<Streaming<v1::VerifyReply>, Status> {
        let verifying = verifier_client(endpoint).verify(requests).await?;
        Ok(verifying.into_inner())
    }
}
