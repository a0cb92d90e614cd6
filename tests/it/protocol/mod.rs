//! The peers' own protocol, spoken by hand.

mod drafts;
mod streams;
mod trees;
mod verdicts;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};
use wire::digest::{Digestible, digest};
use wire::v1::{
    DraftReply, DraftRequest, DraftRound, Open, Opened, RoundHeader, SamplingParams, VerifyReply,
    VerifyRequest, draft_reply, draft_request, verify_reply, verify_request,
};
use wire::v1::{drafter_client::DrafterClient, verifier_client::VerifierClient};

/// "Once upon a time" and the like need no tokenizer here.
pub(crate) const PROMPT: [u32; 6] = [1, 400, 500, 600, 700, 800];

/// A session's opening; `change` what a test is about.
pub(crate) fn open(change: impl FnOnce(&mut Open)) -> Open {
    let mut open = Open {
        session_id: vec![3; 16],
        epoch: 1,
        prompt_token_ids: PROMPT.to_vec(),
        sampling: Some(SamplingParams::default()),
        seed: 5,
        vocab_size: 4096,
        ..Default::default()
    };
    change(&mut open);
    open
}

/// `request` with a header on top of `committed` output tokens, all of them said.
pub(crate) fn with_header<R: Digestible>(mut request: R, round: u64, committed: &[u32]) -> R {
    let digest = digest(&request);
    *request.header_mut() = Some(RoundHeader {
        round,
        epoch: 1,
        timeout_ms: 5_000,
        from_len: 0,
        committed: committed.to_vec(),
        digest,
        trace_context: Vec::new(),
    });
    request
}

/// A `Verify` stream.
pub(crate) struct VerifyStream {
    requests: mpsc::Sender<VerifyRequest>,
    replies: Streaming<VerifyReply>,
}

impl VerifyStream {
    pub(crate) async fn open(url: String, open: Open) -> Result<(Self, Opened), Status> {
        let channel = Channel::from_shared(url).expect("a URL").connect_lazy();
        let (requests, outgoing) = mpsc::channel(8);
        let opening = verify_request::Request::Open(open);
        requests
            .send(VerifyRequest {
                request: Some(opening),
            })
            .await
            .expect("room");
        let mut client = VerifierClient::new(channel);
        let replies = client
            .verify(ReceiverStream::new(outgoing))
            .await?
            .into_inner();
        let mut stream = Self { requests, replies };
        match stream.receive().await? {
            verify_reply::Reply::Opened(opened) => Ok((stream, opened)),
            other => panic!("another reply: {other:?}"),
        }
    }

    async fn send(&self, request: verify_request::Request) {
        self.requests
            .send(VerifyRequest {
                request: Some(request),
            })
            .await
            .expect("room");
    }

    async fn receive(&mut self) -> Result<verify_reply::Reply, Status> {
        let message = self.replies.message().await?;
        message
            .and_then(|message| message.reply)
            .ok_or_else(|| Status::unavailable("ended"))
    }

    pub(crate) async fn ask(
        &mut self,
        request: verify_request::Request,
    ) -> Result<verify_reply::Reply, Status> {
        self.send(request).await;
        self.receive().await
    }
}

/// A `Draft` stream.
pub(crate) struct DraftStream {
    requests: mpsc::Sender<DraftRequest>,
    replies: Streaming<DraftReply>,
}

impl DraftStream {
    pub(crate) async fn open(url: String, open: Open) -> Result<Self, Status> {
        let channel = Channel::from_shared(url).expect("a URL").connect_lazy();
        let (requests, outgoing) = mpsc::channel(8);
        let opening = draft_request::Request::Open(open);
        requests
            .send(DraftRequest {
                request: Some(opening),
            })
            .await
            .expect("room");
        let mut client = DrafterClient::new(channel);
        let replies = client
            .draft(ReceiverStream::new(outgoing))
            .await?
            .into_inner();
        let mut stream = Self { requests, replies };
        match stream.receive().await? {
            draft_reply::Reply::Opened(_) => Ok(stream),
            other => panic!("another reply: {other:?}"),
        }
    }

    pub(crate) async fn receive(&mut self) -> Result<draft_reply::Reply, Status> {
        let message = self.replies.message().await?;
        message
            .and_then(|message| message.reply)
            .ok_or_else(|| Status::unavailable("ended"))
    }

    pub(crate) async fn send(&self, round: DraftRound) {
        let request = Some(draft_request::Request::Round(round));
        self.requests
            .send(DraftRequest { request })
            .await
            .expect("room");
    }
}
