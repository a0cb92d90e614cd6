//! The messages of the streams to drafters and to verifiers, as far as they are alike: what whoever asks either
//! needs to know of them, and how many bytes a message takes.

use std::fmt::Debug;

use prost::Message;
use speculation::session::Peer;
use v1::{draft_reply, draft_request, verify_reply, verify_request};

use crate::digest::digest;
use crate::v1;

/// The messages of one kind of stream.
pub trait Messages {
    /// From the coordinator.
    type Request: Encoded + Clone + Debug + Send + 'static;
    /// From the peer.
    type Reply: Encoded + Debug + 'static;
    /// A part of a round's answer.
    type Part: Debug;
    /// Who is at the other end.
    const PEER: Peer;

    /// The request that opens a session.
    fn open(open: v1::Open) -> Self::Request;
    /// The request that frees it.
    fn close() -> Self::Request;
    /// Puts the header into the request of a round.
    fn set_header(request: &mut Self::Request, header: v1::RoundHeader);
    /// The digest of the request of a round; 0 for other requests.
    fn digest(request: &Self::Request) -> u64;
    /// Reads what a reply says.
    fn read(reply: Self::Reply) -> Incoming<Self::Part>;
}

/// What a peer says.
#[derive(Debug)]
pub enum Incoming<P> {
    /// The session is open.
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

/// Those of `Drafter.Draft`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drafting;

impl Messages for Drafting {
    type Request = v1::DraftRequest;
    type Reply = v1::DraftReply;
    type Part = v1::DraftBlock;
    const PEER: Peer = Peer::Drafter;

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
        use draft_reply::Reply;
        match reply.reply {
            Some(Reply::Opened(opened)) => Incoming::Opened(opened),
            Some(Reply::Draining(_)) => Incoming::Draining,
            Some(Reply::NeedFrom(need)) => Incoming::NeedFrom(need),
            Some(Reply::Progress(progress)) => Incoming::Progress(progress.header),
            Some(Reply::Block(block)) => Incoming::Part(block.header, block),
            Some(Reply::Closed(_)) | None => Incoming::Other,
        }
    }
}

/// Those of `Verifier.Verify`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verifying;

impl Messages for Verifying {
    type Request = v1::VerifyRequest;
    type Reply = v1::VerifyReply;
    type Part = verify_reply::Reply;
    const PEER: Peer = Peer::Verifier;

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
            Some(verify_request::Request::Score(round)) => round.header = Some(header),
            _ => {}
        }
    }

    fn digest(request: &v1::VerifyRequest) -> u64 {
        match &request.request {
            Some(verify_request::Request::Round(round)) => digest(round),
            Some(verify_request::Request::Decode(round)) => digest(round),
            Some(verify_request::Request::Score(round)) => digest(round),
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
            Some(Reply::Scored(part)) => Incoming::Part(part.header, Reply::Scored(part)),
            Some(Reply::Closed(_)) | None => Incoming::Other,
        }
    }
}

impl From<draft_request::Request> for v1::DraftRequest {
    fn from(request: draft_request::Request) -> Self {
        let request = Some(request);
        Self { request }
    }
}

impl From<verify_request::Request> for v1::VerifyRequest {
    fn from(request: verify_request::Request) -> Self {
        let request = Some(request);
        Self { request }
    }
}

/// A message of the protocol.
pub trait Encoded {
    /// Bytes it takes on the wire, without gRPC's frame of five bytes and without compression.
    fn encoded_bytes(&self) -> u64;
}

impl<M: Message> Encoded for M {
    fn encoded_bytes(&self) -> u64 {
        self.encoded_len() as u64
    }
}
