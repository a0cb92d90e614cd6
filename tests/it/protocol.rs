//! The peers' own protocol, spoken by hand.

mod ahead;
mod drafts;
mod grants;
mod progress;
mod proposals;
mod streams;
mod trees;
mod verdicts;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use wire::round::digest;
use wire::v1::drafter_client::DrafterClient;
use wire::v1::round_answer::Part;
use wire::v1::round_request::Round;
use wire::v1::session_reply::Reply;
use wire::v1::session_request::Request;
use wire::v1::verifier_client::VerifierClient;
use wire::v1::{
    AheadRound, DecodeRound, DraftRound, Open, Opened, ReplyHeader, RoundHeader, RoundRequest,
    SamplingParams, ScoreRound, SessionReply, SessionRequest, Verdict, VerifyRound,
};

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

/// What a round asks.
pub(crate) trait Asked {
    fn round(self) -> Round;
}

impl Asked for DraftRound {
    fn round(self) -> Round {
        Round::Draft(self)
    }
}

impl Asked for AheadRound {
    fn round(self) -> Round {
        Round::Ahead(self)
    }
}

impl Asked for VerifyRound {
    fn round(self) -> Round {
        Round::Verify(self)
    }
}

impl Asked for DecodeRound {
    fn round(self) -> Round {
        Round::Decode(self)
    }
}

impl Asked for ScoreRound {
    fn round(self) -> Round {
        Round::Score(self)
    }
}

/// A round with a header on top of `committed` output tokens, all of them said.
pub(crate) fn with_header(asked: impl Asked, round: u64, committed: &[u32]) -> RoundRequest {
    let asked = asked.round();
    let header = RoundHeader {
        round,
        epoch: 1,
        timeout_ms: 5_000,
        from_len: 0,
        committed: committed.to_vec(),
        digest: digest(&asked),
        trace_context: Vec::new(),
    };
    RoundRequest {
        header: Some(header),
        round: Some(asked),
    }
}

/// A session's stream to a drafter or a verifier.
pub(crate) struct SessionStream {
    requests: mpsc::Sender<SessionRequest>,
    replies: Streaming<SessionReply>,
    /// That of the latest answer.
    header: Option<ReplyHeader>,
}

impl SessionStream {
    /// A session in order at the drafter `url`, opened with what `change` makes of it.
    pub(crate) async fn at_drafter(url: String, change: impl FnOnce(&mut Open)) -> Self {
        let opened = Self::draft(url, open(change)).await;
        opened.expect("a session in order").0
    }

    /// The same at the verifier `url`.
    pub(crate) async fn at_verifier(url: String, change: impl FnOnce(&mut Open)) -> Self {
        let opened = Self::verify(url, open(change)).await;
        opened.expect("a session in order").0
    }

    /// Why a session is not opened at the verifier `url`.
    async fn refused(url: String, change: impl FnOnce(&mut Open)) -> Status {
        let opened = Self::verify(url, open(change)).await;
        opened.err().expect("refused")
    }

    pub(crate) async fn draft(url: String, open: Open) -> Result<(Self, Opened), Status> {
        let (requests, outgoing) = begin(open).await;
        let mut client = DrafterClient::new(channel(url));
        let replies = client.draft(outgoing).await?;
        Self::opened(requests, replies.into_inner()).await
    }

    pub(crate) async fn verify(url: String, open: Open) -> Result<(Self, Opened), Status> {
        let (requests, outgoing) = begin(open).await;
        let mut client = VerifierClient::new(channel(url));
        let replies = client.verify(outgoing).await?;
        Self::opened(requests, replies.into_inner()).await
    }

    async fn opened(
        requests: mpsc::Sender<SessionRequest>,
        replies: Streaming<SessionReply>,
    ) -> Result<(Self, Opened), Status> {
        let mut stream = Self {
            requests,
            replies,
            header: None,
        };
        match stream.receive().await? {
            Reply::Opened(opened) => Ok((stream, opened)),
            other => panic!("another reply: {other:?}"),
        }
    }

    pub(crate) async fn send(&self, request: Request) {
        let sent = self.requests.send(request.into()).await;
        sent.expect("room");
    }

    pub(crate) async fn receive(&mut self) -> Result<Reply, Status> {
        let message = self.replies.message().await?;
        let reply = message.and_then(|message| message.reply);
        if let Some(Reply::Answer(answer)) = &reply {
            self.header = answer.header;
        }
        reply.ok_or_else(|| Status::unavailable("ended"))
    }

    /// The next part of a round's answer.
    pub(crate) async fn part(&mut self) -> Result<Part, Status> {
        match self.receive().await? {
            Reply::Answer(answer) => Ok(answer.part.expect("a part")),
            other => panic!("another reply: {other:?}"),
        }
    }

    /// The header of the latest answer.
    pub(crate) fn header(&self) -> ReplyHeader {
        self.header.expect("a header")
    }

    /// The verdict on a round.
    async fn verdict(&mut self, round: RoundRequest) -> Result<Verdict, Status> {
        self.send(Request::Round(round)).await;
        match self.part().await? {
            Part::Verdict(verdict) => Ok(verdict),
            other => panic!("another part: {other:?}"),
        }
    }

    pub(crate) async fn ask(&mut self, request: Request) -> Result<Reply, Status> {
        self.send(request).await;
        self.receive().await
    }
}

/// The requests of a stream, of which `open` is the first.
async fn begin(open: Open) -> (mpsc::Sender<SessionRequest>, ReceiverStream<SessionRequest>) {
    let (requests, outgoing) = mpsc::channel(8);
    let sent = requests.send(Request::Open(open).into()).await;
    sent.expect("room");
    (requests, ReceiverStream::new(outgoing))
}
