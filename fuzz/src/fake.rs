//! Peers that answer what they are told to.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tokio_stream::{Stream, StreamExt};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};
use wire::v1::drafter_server::{self, DrafterServer};
use wire::v1::session_reply::Reply;
use wire::v1::session_request::Request as RequestKind;
use wire::v1::verifier_server::{self, VerifierServer};
use wire::v1::{
    DescribeRequest, Drafting, LearnRequest, Learned, Numerics, PeerDescription, PeerLimits, ReplyHeader, RoundHeader,
    SessionReply, SessionRequest, TokenizerPart, TokenizerRequest,
};

use crate::input::Exchange;
use crate::models::{END, TOKENIZER_JSON, VOCAB_SIZE};
use crate::services::{RUNTIME, listener};

type Replies<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// What is left to be answered.
#[derive(Default)]
struct Script {
    /// What both say of themselves; none: that they can do everything.
    description: Option<PeerDescription>,
    verifier: VecDeque<SessionReply>,
    drafter: VecDeque<SessionReply>,
}

/// A drafter and a verifier in one server.
#[derive(Clone)]
pub struct FakePeers {
    script: Arc<Mutex<Script>>,
    url: Arc<str>,
}

/// The peers of this process, for as long as it lives.
pub static FAKE_PEERS: LazyLock<FakePeers> = LazyLock::new(|| {
    let (listener, url) = listener();
    let peers = FakePeers {
        script: Arc::default(),
        url: url.into(),
    };
    let server = Server::builder()
        .add_service(VerifierServer::new(peers.clone()))
        .add_service(DrafterServer::new(peers.clone()))
        .serve_with_incoming(TcpIncoming::from(listener));
    RUNTIME.spawn(server);
    peers
});

impl FakePeers {
    /// Where both are reached.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on they answer as `exchange` says, and then no more.
    pub fn play(&self, exchange: Exchange) {
        self.with(|script| {
            script.description = exchange.description;
            script.verifier = exchange.verifier.into();
            script.drafter = exchange.drafter.into();
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut Script) -> T) -> T {
        change(&mut self.script.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn description(&self) -> PeerDescription {
        let played = self.with(|script| script.description.clone());
        played.unwrap_or_else(capable)
    }

    /// The next reply of the script that `queue` chooses, to `request`.
    fn reply(
        &self,
        request: SessionRequest,
        queue: fn(&mut Script) -> &mut VecDeque<SessionReply>,
    ) -> Option<SessionReply> {
        let mut next = self.with(|script| queue(script).pop_front())?;
        let requested = match request.request? {
            RequestKind::Round(round) => round.header,
            _ => None,
        };
        match &mut next.reply {
            Some(Reply::Answer(reply)) => answer(&mut reply.header, requested),
            Some(Reply::NeedFrom(reply)) => answer(&mut reply.header, requested),
            Some(Reply::Progress(reply)) => answer(&mut reply.header, requested),
            _ => {}
        }
        Some(next)
    }
}

/// Where the reply has no header, gives it the one that belongs to what was asked.
fn answer(header: &mut Option<ReplyHeader>, requested: Option<RoundHeader>) {
    if let (None, Some(requested)) = (&header, requested) {
        *header = Some(ReplyHeader {
            round: requested.round,
            epoch: requested.epoch,
            base_len: requested.from_len + requested.committed.len() as u32,
            digest: requested.digest,
            replayed: false,
        });
    }
}

/// A peer of the tiny models that can do everything.
pub fn capable() -> PeerDescription {
    PeerDescription {
        model: "tiny".to_owned(),
        logits_size: VOCAB_SIZE,
        vocab_size: VOCAB_SIZE,
        vocab_fingerprint: vec![7; 32],
        context_len: 64,
        numerics: Some(Numerics::default()),
        limits: Some(PeerLimits {
            max_draft_tokens: 16,
            max_sessions: 1000,
            max_message_bytes: 1 << 20,
            max_lease_ms: 10_000,
        }),
        eos_token_ids: vec![END],
        trees: true,
        draftings: vec![Drafting::Model.into(), Drafting::MaxGram.into()],
        ..wire::describe::capabilities()
    }
}

#[tonic::async_trait]
impl verifier_server::Verifier for FakePeers {
    type TokenizerStream = Replies<TokenizerPart>;
    type VerifyStream = Replies<SessionReply>;

    async fn describe(
        &self,
        _: Request<DescribeRequest>,
    ) -> Result<Response<PeerDescription>, Status> {
        Ok(Response::new(self.description()))
    }

    async fn tokenizer(
        &self,
        _: Request<TokenizerRequest>,
    ) -> Result<Response<Self::TokenizerStream>, Status> {
        let part = TokenizerPart {
            tokenizer_json: TOKENIZER_JSON.as_bytes().to_vec(),
            ..Default::default()
        };
        Ok(Response::new(Box::pin(tokio_stream::once(Ok(part)))))
    }

    async fn verify(
        &self,
        requests: Request<Streaming<SessionRequest>>,
    ) -> Result<Response<Self::VerifyStream>, Status> {
        let peers = self.clone();
        let replies = requests.into_inner().map_while(move |request| {
            peers
                .reply(request.ok()?, |script| &mut script.verifier)
                .map(Ok)
        });
        Ok(Response::new(Box::pin(replies)))
    }
}

#[tonic::async_trait]
impl drafter_server::Drafter for FakePeers {
    type DraftStream = Replies<SessionReply>;

    async fn describe(
        &self,
        _: Request<DescribeRequest>,
    ) -> Result<Response<PeerDescription>, Status> {
        Ok(Response::new(self.description()))
    }

    async fn learn(
        &self,
        _: Request<Streaming<LearnRequest>>,
    ) -> Result<Response<Learned>, Status> {
        Ok(Response::new(Learned {
            description: Some(self.description()),
        }))
    }

    async fn draft(
        &self,
        requests: Request<Streaming<SessionRequest>>,
    ) -> Result<Response<Self::DraftStream>, Status> {
        let peers = self.clone();
        let replies = requests.into_inner().map_while(move |request| {
            peers
                .reply(request.ok()?, |script| &mut script.drafter)
                .map(Ok)
        });
        Ok(Response::new(Box::pin(replies)))
    }
}
