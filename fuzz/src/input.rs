//! Inputs of the targets that speak gRPC. Each is one protobuf message, so that the fuzzer's changes leave most of
//! it readable.

use prost::Message;
use wire::digest::{Digestible, digest};
use wire::v1::{
    DraftReply, DraftRequest, GenerateRequest, PeerDescription, VerifyReply, VerifyRequest,
    draft_request, verify_request,
};

/// What a coordinator, or whoever pretends to be one, sends to a verifier in one stream.
#[derive(Clone, PartialEq, Message)]
pub struct VerifyStream {
    #[prost(message, repeated, tag = "1")]
    pub requests: Vec<VerifyRequest>,
}

/// The same to a drafter.
#[derive(Clone, PartialEq, Message)]
pub struct DraftStream {
    #[prost(message, repeated, tag = "1")]
    pub requests: Vec<DraftRequest>,
}

/// A client's request, and what the coordinator's peers answer: the next reply to each of its messages. Without a
/// description they can do everything.
#[derive(Clone, PartialEq, Message)]
pub struct Exchange {
    #[prost(message, optional, tag = "1")]
    pub request: Option<GenerateRequest>,
    #[prost(message, repeated, tag = "2")]
    pub verifier: Vec<VerifyReply>,
    #[prost(message, repeated, tag = "3")]
    pub drafter: Vec<DraftReply>,
    #[prost(message, optional, tag = "4")]
    pub description: Option<PeerDescription>,
}

impl VerifyStream {
    /// The requests, each round with the digest that belongs to it: no change of a byte would find it.
    pub fn with_digests(mut self) -> Vec<VerifyRequest> {
        for request in &mut self.requests {
            match &mut request.request {
                Some(verify_request::Request::Round(round)) => set_digest(round),
                Some(verify_request::Request::Decode(round)) => set_digest(round),
                Some(verify_request::Request::Score(round)) => set_digest(round),
                _ => {}
            }
        }
        self.requests
    }
}

impl DraftStream {
    /// The requests, each round with the digest that belongs to it.
    pub fn with_digests(mut self) -> Vec<DraftRequest> {
        for request in &mut self.requests {
            if let Some(draft_request::Request::Round(round)) = &mut request.request {
                set_digest(round);
            }
        }
        self.requests
    }
}

fn set_digest(round: &mut impl Digestible) {
    let digest = digest(round);
    if let Some(header) = round.header_mut() {
        header.digest = digest;
    }
}
