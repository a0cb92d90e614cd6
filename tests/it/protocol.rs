//! The peers' own protocol, spoken by hand.

mod drafts;
mod grants;
mod progress;
mod streams;
mod trees;
mod verdicts;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use wire::digest::{Digestible, digest};
use wire::v1::{
    DraftReply, DraftRequest, DraftRound, Open, Opened, RoundHeader, SamplingParams, Verdict,
    VerifyReply, VerifyRequest, VerifyRound, draft_reply, draft_request, verify_reply,
    verify_request,
};
use wire::v1::{drafter_client::DrafterClient, verifier_client::VerifierClient};

use crate::cluster::channel;

/// "Once upon a time" and the like need no tokenizer here.
pub(crate) const PROMPT: [u32; 6] = [1, 400, 500, 600, 700, 800];

/// What of a session's opening a test is about.
type Change = fn(&mut Open);

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
        let (requests, outgoing) = mpsc::channel(8);
        let mut client = VerifierClient::new(channel(url));
        let request = Some(verify_request::Request::Open(open));
        let sent = requests.send(VerifyRequest { request }).await;
        sent.expect("room");
        let replies = client.verify(ReceiverStream::new(outgoing)).await?;
        let replies = replies.into_inner();
        let mut stream = Self { requests, replies };
        match stream.receive().await? {
            verify_reply::Reply::Opened(opened) => Ok((stream, opened)),
            other => panic!("another reply: {other:?}"),
        }
    }

    /// A session in order at `url`, opened with what `change` makes of it.
    pub(crate) async fn opened(url: String, change: impl FnOnce(&mut Open)) -> Self {
        let opened = Self::open(url, open(change)).await;
        opened.expect("a session in order").0
    }

    /// Why a session is not opened.
    async fn refused(url: String, change: impl FnOnce(&mut Open)) -> Status {
        let opened = Self::open(url, open(change)).await;
        opened.err().expect("refused")
    }

    async fn send(&self, request: verify_request::Request) {
        let request = Some(request);
        let sent = self.requests.send(VerifyRequest { request }).await;
        sent.expect("room");
    }

    async fn receive(&mut self) -> Result<verify_reply::Reply, Status> {
        let message = self.replies.message().await?;
        let reply = message.and_then(|message| message.reply);
        reply.ok_or_else(|| Status::unavailable("ended"))
    }

    /// The verdict on a round.
    async fn verdict(&mut self, round: VerifyRound) -> Result<Verdict, Status> {
        match self.ask(verify_request::Request::Round(round)).await? {
            verify_reply::Reply::Verdict(verdict) => Ok(verdict),
            other => panic!("another reply: {other:?}"),
        }
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
        let (requests, outgoing) = mpsc::channel(8);
        let mut client = DrafterClient::new(channel(url));
        let request = Some(draft_request::Request::Open(open));
        let sent = requests.send(DraftRequest { request }).await;
        sent.expect("room");
        let replies = client.draft(ReceiverStream::new(outgoing)).await?;
        let replies = replies.into_inner();
        let mut stream = Self { requests, replies };
        match stream.receive().await? {
            draft_reply::Reply::Opened(_) => Ok(stream),
            other => panic!("another reply: {other:?}"),
        }
    }

    /// A session in order at `url`, opened with what `change` makes of it.
    pub(crate) async fn opened(url: String, change: impl FnOnce(&mut Open)) -> Self {
        let opened = Self::open(url, open(change)).await;
        opened.expect("a session in order")
    }

    pub(crate) async fn receive(&mut self) -> Result<draft_reply::Reply, Status> {
        let message = self.replies.message().await?;
        let reply = message.and_then(|message| message.reply);
        reply.ok_or_else(|| Status::unavailable("ended"))
    }

    pub(crate) async fn send(&self, round: DraftRound) {
        let request = Some(draft_request::Request::Round(round));
        let sent = self.requests.send(DraftRequest { request }).await;
        sent.expect("room");
    }
}
