//! Peers that lose each of their replies once (they do the work, and break the stream instead of
//! sending what came of it), or lie about their draft laws.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_stream::{Stream, StreamExt};
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status, Streaming};
use wire::v1::proposal::Law;
use wire::v1::{
    DescribeRequest, DraftBlock, DraftReply, DraftRequest, PeerDescription, ReplyHeader, SparseLaw,
    TokenizerPart, TokenizerRequest, VerifyReply, VerifyRequest, draft_reply, verify_reply,
};
use wire::v1::{drafter_client, drafter_server, verifier_client, verifier_server};

use crate::relay::Relay;

/// What is done to replies.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    /// Each draft and each verdict is lost once.
    LoseOnce,
    /// Draft laws give their own tokens no mass.
    ForgeLaws,
}

/// A reply that was lost already: its kind, its round and its position.
type Lost = (&'static str, u64, u32);

type Boxed<T> = std::pin::Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Stands between the coordinator and both of its peers.
#[derive(Clone)]
pub(crate) struct Tampering {
    mode: Mode,
    drafter: Channel,
    verifier: Channel,
    lost: Arc<Mutex<HashSet<Lost>>>,
    /// In front of both peers, so that a lost reply is a broken connection to them.
    relays: Arc<[Relay; 2]>,
    replayed: Arc<AtomicUsize>,
}

impl Tampering {
    /// Starts it before the peers at these addresses; its own URL serves for both.
    pub(crate) async fn start(
        mode: Mode,
        drafter: SocketAddr,
        verifier: SocketAddr,
    ) -> (Self, String) {
        let relays = [Relay::start(drafter).await, Relay::start(verifier).await];
        let channel = |relay: &Relay| {
            Channel::from_shared(relay.url())
                .expect("a URL")
                .connect_lazy()
        };
        let lost = Arc::default();
        let tampering = Self {
            drafter: channel(&relays[0]),
            verifier: channel(&relays[1]),
            lost,
            mode,
            relays: Arc::new(relays),
            replayed: Arc::default(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let serving = Server::builder()
            .add_service(drafter_server::DrafterServer::new(tampering.clone()))
            .add_service(verifier_server::VerifierServer::new(tampering.clone()))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(serving);
        (tampering, url)
    }

    /// How many replies were lost so far.
    pub(crate) fn count(&self) -> usize {
        self.lost.lock().expect("not poisoned").len()
    }

    /// How many replies came from a peer's memory.
    pub(crate) fn replayed(&self) -> usize {
        self.replayed.load(Ordering::Relaxed)
    }

    /// Loses the first copy of a reply, and the connection it came on.
    fn lose(&self, kind: &'static str, header: Option<ReplyHeader>) -> Result<(), Status> {
        let header = header.expect("a header");
        let ReplyHeader {
            round, base_len, ..
        } = header;
        let first = self
            .lost
            .lock()
            .expect("not poisoned")
            .insert((kind, round, base_len));
        if first {
            self.relays.iter().for_each(Relay::cut);
            return Err(Status::unavailable("the reply was lost"));
        }
        self.replayed
            .fetch_add(usize::from(header.replayed), Ordering::Relaxed);
        Ok(())
    }
}

/// Passes messages on as `change` makes them, up to the first error.
fn relayed<T: Send + 'static>(
    mut upstream: Streaming<T>,
    change: impl Fn(T) -> Result<T, Status> + Send + 'static,
) -> Boxed<T> {
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        while let Some(message) = upstream.next().await {
            let message = message.and_then(&change);
            let ends = message.is_err();
            if sender.send(message).await.is_err() || ends {
                return;
            }
        }
    });
    Box::pin(ReceiverStream::new(receiver))
}

/// Replaces each law by one that its token cannot have been drawn from.
fn forge(block: &mut DraftBlock) {
    let tokens = block.tree.clone().unwrap_or_default().token_ids;
    for (proposal, token) in block.proposals.iter_mut().zip(tokens) {
        let law = SparseLaw {
            token_ids: vec![(token + 1) % 4096],
            weights: vec![1, 0],
            unscaled: Vec::new(),
        };
        proposal.law = Some(Law::Sparse(law));
    }
}

/// The messages of a stream up to its end or first error.
fn messages<T: Send + 'static>(stream: Streaming<T>) -> impl Stream<Item = T> + Send + 'static {
    stream.map_while(Result::ok)
}

#[tonic::async_trait]
impl drafter_server::Drafter for Tampering {
    type DraftStream = Boxed<DraftReply>;

    async fn describe(
        &self,
        request: Request<DescribeRequest>,
    ) -> Result<Response<PeerDescription>, Status> {
        drafter_client::DrafterClient::new(self.drafter.clone())
            .describe(request)
            .await
    }

    async fn draft(
        &self,
        request: Request<Streaming<DraftRequest>>,
    ) -> Result<Response<Boxed<DraftReply>>, Status> {
        let mut client = drafter_client::DrafterClient::new(self.drafter.clone());
        let upstream = client
            .draft(messages(request.into_inner()))
            .await?
            .into_inner();
        let tampering = self.clone();
        Ok(Response::new(relayed(upstream, move |mut reply| {
            if let Some(draft_reply::Reply::Block(block)) = &mut reply.reply {
                match tampering.mode {
                    Mode::LoseOnce => tampering.lose("draft", block.header)?,
                    Mode::ForgeLaws => forge(block),
                }
            }
            Ok(reply)
        })))
    }
}

#[tonic::async_trait]
impl verifier_server::Verifier for Tampering {
    type TokenizerStream = Boxed<TokenizerPart>;
    type VerifyStream = Boxed<VerifyReply>;

    async fn describe(
        &self,
        request: Request<DescribeRequest>,
    ) -> Result<Response<PeerDescription>, Status> {
        verifier_client::VerifierClient::new(self.verifier.clone())
            .describe(request)
            .await
    }

    async fn tokenizer(
        &self,
        request: Request<TokenizerRequest>,
    ) -> Result<Response<Boxed<TokenizerPart>>, Status> {
        let mut client = verifier_client::VerifierClient::new(self.verifier.clone());
        let upstream = client.tokenizer(request).await?.into_inner();
        Ok(Response::new(Box::pin(upstream)))
    }

    async fn verify(
        &self,
        request: Request<Streaming<VerifyRequest>>,
    ) -> Result<Response<Boxed<VerifyReply>>, Status> {
        let mut client = verifier_client::VerifierClient::new(self.verifier.clone());
        let upstream = client
            .verify(messages(request.into_inner()))
            .await?
            .into_inner();
        let tampering = self.clone();
        Ok(Response::new(relayed(upstream, move |reply| {
            if let Some(verify_reply::Reply::Verdict(verdict)) = &reply.reply
                && tampering.mode == Mode::LoseOnce
            {
                tampering.lose("verdict", verdict.header)?;
            }
            Ok(reply)
        })))
    }
}
