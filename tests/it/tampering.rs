//! Peers that lose each of their replies once (they do the work, and break the stream instead of
//! sending what came of it), or lie about their draft distributions.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_stream::{Stream, StreamExt};
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status, Streaming};
use wire::v1::proposal::Probs;
use wire::v1::round_answer::Part;
use wire::v1::session_reply::Reply;
use wire::v1::{
    DescribeRequest, DraftBlock, LastToken, LearnRequest, Learned, PeerDescription, ReplyHeader,
    SessionReply, SessionRequest, SparseDistribution, TokenizerPart, TokenizerRequest, Verdict,
    slice,
};
use wire::v1::{drafter_client, drafter_server, verifier_client, verifier_server};

use crate::cluster::{Service, channel, config, coordinator, listener};
use crate::relay::Relay;

/// What is done to replies.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    /// Each draft and each verdict is lost once.
    LoseOnce,
    /// The proxy falsifies the distributions that the drafter sends.
    Forge(Forgery),
    /// The verifier's distributions hold what is no probability.
    ForgeSlices,
    /// The verifier returns a verdict where distributions were requested.
    ForgeVerdicts,
    /// The distribution after a block never comes.
    HoldBonus,
    /// Nothing, but it takes a while until a tokenizer comes.
    LateTokenizer,
    /// The verifier describes itself without features, as one in front of another engine does.
    Plain,
}

/// How what a drafter tells is falsified.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Forgery {
    /// Draft distributions give their own tokens no mass.
    TokensWithoutMass,
    /// Confidences are not numbers.
    ConfidencesNotNumbers,
    /// Confidences are left out.
    NoConfidences,
    /// Weights of sparse distributions are zero.
    NoWeights,
    /// There are fewer distributions than tokens.
    TooFew,
    /// The distribution after the block is left out.
    NoBonus,
    /// Unscaled probabilities are left out.
    NoUnscaled,
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
    tokenizers: Arc<AtomicUsize>,
    verified: Arc<AtomicUsize>,
}

impl Tampering {
    /// Starts it before the peers at these addresses; its own URL serves for both.
    pub(crate) async fn start(
        mode: Mode,
        drafter: SocketAddr,
        verifier: SocketAddr,
    ) -> (Self, String) {
        let relays = [Relay::start(drafter).await, Relay::start(verifier).await];
        let tampering = Self {
            drafter: channel(relays[0].url()),
            verifier: channel(relays[1].url()),
            lost: Arc::default(),
            mode,
            relays: Arc::new(relays),
            replayed: Arc::default(),
            tokenizers: Arc::default(),
            verified: Arc::default(),
        };
        let (listener, address) = listener().await;
        let serving = Server::builder()
            .add_service(drafter_server::DrafterServer::new(tampering.clone()))
            .add_service(verifier_server::VerifierServer::new(tampering.clone()))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(serving);
        (tampering, format!("http://{address}"))
    }

    /// How many replies were lost so far.
    pub(crate) fn count(&self) -> usize {
        self.lost.lock().expect("not poisoned").len()
    }

    /// How often a tokenizer was asked for.
    pub(crate) fn tokenizers(&self) -> usize {
        self.tokenizers.load(Ordering::Relaxed)
    }

    /// How many streams were opened at the verifier.
    pub(crate) fn verified(&self) -> usize {
        self.verified.load(Ordering::Relaxed)
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

/// A coordinator whose peers are these, with their messages changed on the way as `mode` says.
pub(crate) async fn tampered(
    mode: Mode,
    drafter: &Service,
    verifier: &Service,
) -> (Tampering, Service) {
    let (tampering, url) = Tampering::start(mode, drafter.address, verifier.address).await;
    let peers = std::slice::from_ref(&url);
    let mut config = config(peers, peers);
    if mode == Mode::LoseOnce {
        // A loss breaks the connections to both peers, and a round may lose three replies.
        (config.retries, config.verifier_retries) = (8, 8);
    }
    (tampering, coordinator(config).await)
}

/// Passes messages on as `change` makes them, if it leaves any, up to the first error.
fn relayed<T: Send + 'static>(
    mut upstream: Streaming<T>,
    change: impl Fn(T) -> Result<Option<T>, Status> + Send + 'static,
) -> Boxed<T> {
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        while let Some(message) = upstream.next().await {
            let Some(message) = message.and_then(&change).transpose() else {
                continue;
            };
            let ends = message.is_err();
            if sender.send(message).await.is_err() || ends {
                return;
            }
        }
    });
    Box::pin(ReceiverStream::new(receiver))
}

/// Falsifies the proposals of a block.
fn forge(block: &mut DraftBlock, forgery: Forgery) {
    let tokens = block.tree.clone().unwrap_or_default().token_ids;
    let reported = block.proposals.iter_mut().chain(&mut block.bonus);
    match forgery {
        Forgery::TokensWithoutMass => {
            for (proposal, token) in block.proposals.iter_mut().zip(tokens) {
                let probs = SparseDistribution {
                    token_ids: vec![(token + 1) % 4096],
                    weights: vec![1, 0],
                    unscaled: Vec::new(),
                };
                proposal.probs = Some(Probs::Sparse(probs));
            }
        }
        Forgery::ConfidencesNotNumbers => reported.for_each(|proposal| {
            proposal.max_probability = Some(f32::NAN);
            proposal.entropy = Some(f32::NAN);
        }),
        Forgery::NoConfidences => reported.for_each(|proposal| {
            proposal.max_probability = None;
            proposal.entropy = None;
        }),
        Forgery::NoWeights => reported.for_each(|proposal| {
            if let Some(Probs::Sparse(probs)) = &mut proposal.probs {
                probs.weights.fill(0);
            }
        }),
        Forgery::TooFew => {
            block.proposals.pop();
        }
        Forgery::NoBonus => block.bonus = None,
        Forgery::NoUnscaled => reported.for_each(|proposal| {
            proposal.unscaled = None;
            if let Some(Probs::Sparse(probs)) = &mut proposal.probs {
                probs.unscaled.clear();
            }
        }),
    }
}

/// What a reply answers, and its part of that.
fn part(reply: &mut SessionReply) -> Option<(Option<ReplyHeader>, &mut Part)> {
    match &mut reply.reply {
        Some(Reply::Answer(answer)) => Some((answer.header, answer.part.as_mut()?)),
        _ => None,
    }
}

/// The messages of a stream up to its end or first error.
fn messages<T: Send + 'static>(stream: Streaming<T>) -> impl Stream<Item = T> + Send + 'static {
    stream.map_while(Result::ok)
}

#[tonic::async_trait]
impl drafter_server::Drafter for Tampering {
    type DraftStream = Boxed<SessionReply>;

    async fn describe(
        &self,
        request: Request<DescribeRequest>,
    ) -> Result<Response<PeerDescription>, Status> {
        drafter_client::DrafterClient::new(self.drafter.clone())
            .describe(request)
            .await
    }

    async fn learn(
        &self,
        request: Request<Streaming<LearnRequest>>,
    ) -> Result<Response<Learned>, Status> {
        drafter_client::DrafterClient::new(self.drafter.clone())
            .learn(messages(request.into_inner()))
            .await
    }

    async fn draft(
        &self,
        request: Request<Streaming<SessionRequest>>,
    ) -> Result<Response<Boxed<SessionReply>>, Status> {
        let mut client = drafter_client::DrafterClient::new(self.drafter.clone());
        let upstream = client
            .draft(messages(request.into_inner()))
            .await?
            .into_inner();
        let tampering = self.clone();
        Ok(Response::new(relayed(upstream, move |mut reply| {
            if let Some((header, Part::Block(block))) = part(&mut reply) {
                match tampering.mode {
                    Mode::LoseOnce => tampering.lose("draft", header)?,
                    Mode::Forge(forgery) => forge(block, forgery),
                    Mode::HoldBonus if block.bonus.is_some() => return Ok(None),
                    _ => {}
                }
            }
            Ok(Some(reply))
        })))
    }
}

#[tonic::async_trait]
impl verifier_server::Verifier for Tampering {
    type TokenizerStream = Boxed<TokenizerPart>;
    type VerifyStream = Boxed<SessionReply>;

    async fn describe(
        &self,
        request: Request<DescribeRequest>,
    ) -> Result<Response<PeerDescription>, Status> {
        let mut client = verifier_client::VerifierClient::new(self.verifier.clone());
        let mut described = client.describe(request).await?;
        if self.mode == Mode::Plain {
            described.get_mut().features.clear();
        }
        Ok(described)
    }

    async fn tokenizer(
        &self,
        request: Request<TokenizerRequest>,
    ) -> Result<Response<Boxed<TokenizerPart>>, Status> {
        self.tokenizers.fetch_add(1, Ordering::Relaxed);
        if self.mode == Mode::LateTokenizer {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        let mut client = verifier_client::VerifierClient::new(self.verifier.clone());
        let upstream = client.tokenizer(request).await?.into_inner();
        Ok(Response::new(Box::pin(upstream)))
    }

    async fn verify(
        &self,
        request: Request<Streaming<SessionRequest>>,
    ) -> Result<Response<Boxed<SessionReply>>, Status> {
        self.verified.fetch_add(1, Ordering::Relaxed);
        let mut client = verifier_client::VerifierClient::new(self.verifier.clone());
        let upstream = client
            .verify(messages(request.into_inner()))
            .await?
            .into_inner();
        let tampering = self.clone();
        Ok(Response::new(relayed(upstream, move |mut reply| {
            let Some((header, part)) = part(&mut reply) else {
                return Ok(Some(reply));
            };
            match (&mut *part, tampering.mode) {
                (Part::Verdict(_), Mode::LoseOnce) => tampering.lose("verdict", header)?,
                (Part::Slice(slice), Mode::LoseOnce) if slice.last => {
                    tampering.lose("slice", header)?;
                }
                (Part::Slice(_), Mode::ForgeVerdicts) => {
                    *part = Part::Verdict(Verdict {
                        emitted: vec![5],
                        last: LastToken::Bonus.into(),
                        ..Default::default()
                    });
                }
                (Part::Slice(slice), Mode::ForgeSlices) => {
                    if let Some(slice::Probs::Dense(probs)) = &mut slice.probs {
                        let mut row = probs.row.to_vec();
                        row[..4].copy_from_slice(&f32::NAN.to_le_bytes());
                        probs.row = row.into();
                    }
                }
                _ => {}
            }
            Ok(Some(reply))
        })))
    }
}
