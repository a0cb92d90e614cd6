//! What becomes of a session whose client leaves just as a round replies.

use std::io;
use std::sync::Mutex;

use axum::body::{Body, Bytes};
use net::listen::ServerConfig;
use ops::health::Health;
use ops::metrics::PeerMetrics;
use ops::process::Process;
use speculation::proposal::BadProposal;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codec::{DecodeBuf, Decoder};
use tonic::service::Routes;

use super::*;
use crate::lease::Leases;

/// Requests without content, as gRPC frames them.
const EMPTY: Bytes = Bytes::from_static(&[0; 5]);

/// Reads the first request as an Open, and all others as rounds.
struct Requests {
    is_open: bool,
}

impl Decoder for Requests {
    type Item = StreamRequest<()>;
    type Error = Status;

    fn decode(&mut self, _source: &mut DecodeBuf<'_>) -> Result<Option<StreamRequest<()>>, Status> {
        if std::mem::replace(&mut self.is_open, true) {
            return Ok(Some(StreamRequest::Round(())));
        }
        Ok(Some(StreamRequest::Open(Box::new(v1::Open {
            session_id: vec![1; 16],
            epoch: 1,
            prompt_token_ids: vec![0],
            sampling: Some(v1::SamplingParams::default()),
            vocab_size: 1,
            ..Default::default()
        }))))
    }
}

/// The client's ends of a stream.
struct Client {
    requests: mpsc::Sender<Result<Bytes, io::Error>>,
    replies: ReplyStream<&'static str>,
}

/// How the client leaves.
#[derive(Clone, Copy, Debug)]
enum Leave {
    Resetting,
    Breaking,
    /// Not at all.
    Staying,
}

/// A peer whose client leaves in the midst of each round, just before the reply is sent.
struct Left {
    leave: Leave,
    client: Mutex<Option<Client>>,
}

impl Role for Left {
    const NAME: &'static str = "verifier";
    const SERVICE: &'static str = "test";
    const MODEL: &'static str = "model";
    const ANSWER: &'static str = "answer";

    type Request = StreamRequest<()>;
    type Reply = &'static str;
    type Round = ();
    type Answer = ();
    type Memory = ();

    fn read(request: StreamRequest<()>) -> Option<StreamRequest<()>> {
        Some(request)
    }

    fn write(said: Said) -> &'static str {
        match said {
            Said::Opened(_) => "opened",
            _ => "something else",
        }
    }

    async fn round(
        peer: &Peer<Self>,
        _session: &mut Session<Self>,
        (): (),
        _granted: Granted,
        _epoch: u32,
        replies: &Replies<&'static str>,
    ) -> Result<(), Status> {
        // Nothing is awaited before the reply fails, so it is this that ends the stream, and not that the
        // stream was seen to be closed.
        let client = peer.role.client.lock().unwrap().take();
        match (peer.role.leave, client) {
            (Leave::Resetting, client) => drop(client),
            (Leave::Breaking, Some(client)) => {
                let broken = Err(io::ErrorKind::ConnectionReset.into());
                client.requests.try_send(broken).expect("room");
            }
            (Leave::Breaking, None) => panic!("a second round"),
            (Leave::Staying, client) => {
                *peer.role.client.lock().unwrap() = client;
                return Err(Status::internal("the round failed"));
            }
        }
        replies.send("a reply").await
    }

    fn bad_proposal(bad: &BadProposal) -> Status {
        Status::internal(bad.to_string())
    }

    fn routes(_peer: Arc<Peer<Self>>) -> Routes {
        Routes::default()
    }
}

/// A peer whose client leaves so, and the client's ends of a stream to it.
fn served(leave: Leave) -> (Arc<Peer<Left>>, Client) {
    let process = Process::default();
    let peer = Arc::new(Peer {
        role: Left {
            leave,
            client: Mutex::default(),
        },
        engines: Vec::new(),
        description: v1::PeerDescription {
            logits_size: 1,
            context_len: 8,
            ..wire::describe::capabilities()
        },
        traces: process.traces.clone(),
        metrics: PeerMetrics::new(&process.metrics, Left::NAME),
        sessions: Leases::new(4),
        health: Health::new(Left::SERVICE, &process),
        server: ServerConfig::default(),
        process,
    });
    let (requests, arriving) = mpsc::channel(4);
    let body = Body::from_stream(ReceiverStream::new(arriving));
    let arriving = Streaming::new_request(Requests { is_open: false }, body, None, None);
    let replies = spawn(Arc::clone(&peer), arriving);
    (peer, Client { requests, replies })
}

/// Sessions detached, once the stream of a client that leaves so has ended.
async fn detached_after(leave: Leave) -> usize {
    let (peer, mut client) = served(leave);
    let requests = client.requests.clone();
    requests.send(Ok(EMPTY)).await.expect("room");
    let opened = client.replies.next().await.expect("open");
    assert_eq!(opened.expect("in order"), "opened");
    assert_eq!(peer.sessions().attached, 1);
    *peer.role.client.lock().unwrap() = Some(client);
    requests.send(Ok(EMPTY)).await.expect("room");
    drop(requests);
    for _ in 0..1_000 {
        if peer.sessions().attached == 0 {
            return peer.sessions().detached;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the session stays attached");
}

#[tokio::test]
async fn a_client_that_resets_frees_its_session_and_what_breaks_or_fails_detaches_it() {
    assert_eq!(detached_after(Leave::Resetting).await, 0);
    assert_eq!(detached_after(Leave::Breaking).await, 1);
    assert_eq!(detached_after(Leave::Staying).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_never_says_open_is_ended() {
    let (_peer, mut client) = served(Leave::Staying);
    let began = tokio::time::Instant::now();
    let ended = client.replies.next().await.expect("told");
    let ended = ended.expect_err("ended");
    assert_eq!(ended.code(), tonic::Code::DeadlineExceeded);
    assert!(began.elapsed() >= OPEN_TIMEOUT);
}
