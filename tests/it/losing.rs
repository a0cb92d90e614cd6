//! Peers that lose each of their replies once: they do the work, and break the stream instead of
//! sending what came of it.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_stream::{Stream, StreamExt};
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status, Streaming};
use wire::v1::{
    DescribeRequest, DraftReply, DraftRequest, PeerDescription, TokenizerPart, TokenizerRequest,
    VerifyReply, VerifyRequest, draft_reply, verify_reply,
};
use wire::v1::{drafter_client, drafter_server, verifier_client, verifier_server};

/// A reply that was lost already: its kind, its round and its position.
type Lost = (&'static str, u64, u32);

type Boxed<T> = std::pin::Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Stands between the coordinator and both of its peers.
#[derive(Clone)]
pub(crate) struct Losing {
    drafter: Channel,
    verifier: Channel,
    lost: Arc<Mutex<HashSet<Lost>>>,
}

impl Losing {
    /// Starts it before the peers at these addresses; its own URL serves for both.
    pub(crate) async fn start(drafter: SocketAddr, verifier: SocketAddr) -> (Self, String) {
        let channel = |address| {
            Channel::from_shared(format!("http://{address}"))
                .expect("a URL")
                .connect_lazy()
        };
        let lost = Arc::default();
        let losing = Self {
            drafter: channel(drafter),
            verifier: channel(verifier),
            lost,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let serving = Server::builder()
            .add_service(drafter_server::DrafterServer::new(losing.clone()))
            .add_service(verifier_server::VerifierServer::new(losing.clone()))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(serving);
        (losing, url)
    }

    /// How many replies were lost so far.
    pub(crate) fn count(&self) -> usize {
        self.lost.lock().expect("not poisoned").len()
    }

    /// Whether this is the first copy of a reply.
    fn loses(&self, kind: &'static str, round: u64, base_len: u32) -> bool {
        self.lost
            .lock()
            .expect("not poisoned")
            .insert((kind, round, base_len))
    }
}

/// Passes messages on until `loses` one; then the stream is broken.
fn relayed<T: Send + 'static>(
    mut upstream: Streaming<T>,
    loses: impl Fn(&T) -> bool + Send + 'static,
) -> Boxed<T> {
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        while let Some(message) = upstream.next().await {
            let message = match message {
                Ok(message) if loses(&message) => Err(Status::unavailable("the reply was lost")),
                message => message,
            };
            if sender.send(message).await.is_err() {
                return;
            }
        }
    });
    Box::pin(ReceiverStream::new(receiver))
}

/// The messages of a stream up to its end or first error.
fn messages<T: Send + 'static>(stream: Streaming<T>) -> impl Stream<Item = T> + Send + 'static {
    stream.map_while(Result::ok)
}

#[tonic::async_trait]
impl drafter_server::Drafter for Losing {
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
        let losing = self.clone();
        Ok(Response::new(relayed(
            upstream,
            move |reply| match &reply.reply {
                Some(draft_reply::Reply::Block(block)) => {
                    let header = block.header.expect("a header");
                    losing.loses("draft", header.round, header.base_len)
                }
                _ => false,
            },
        )))
    }
}

#[tonic::async_trait]
impl verifier_server::Verifier for Losing {
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
        let losing = self.clone();
        Ok(Response::new(relayed(
            upstream,
            move |reply| match &reply.reply {
                Some(verify_reply::Reply::Verdict(verdict)) => {
                    let header = verdict.header.expect("a header");
                    losing.loses("verdict", header.round, header.base_len)
                }
                _ => false,
            },
        )))
    }
}
