//! What becomes of a session whose client leaves just as a round replies.

use std::io;
use std::sync::Mutex;

use axum::body::{Body, Bytes};
use net::listen::ServerConfig;
use ops::health::Health;
use ops::metrics::PeerMetrics;
use ops::process::Process;
use ops::trace::Span;
use speculation::proposal::BadProposal;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codec::{DecodeBuf, Decoder};
use tonic::service::Routes;
use wire::v1::round_answer::Part;

use super::*;
use crate::error::RoundError;
use crate::lease::Leases;

/// Requests without content, as gRPC frames them.
const EMPTY: Bytes = Bytes::from_static(&[0; 5]);

/// Reads them as these, one after the other.
struct Requests(std::vec::IntoIter<Request>);

impl Decoder for Requests {
    type Item = v1::SessionRequest;
    type Error = Status;

    fn decode(&mut self, _source: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Status> {
        Ok(self.0.next().map(Into::into))
    }
}

fn opening() -> Request {
    Request::Open(v1::Open {
        session_id: vec![1; 16],
        epoch: 1,
        prompt_token_ids: vec![0],
        sampling: Some(v1::SamplingParams::default()),
        vocab_size: 1,
        ..Default::default()
    })
}

fn round() -> Request {
    let header = v1::RoundHeader {
        round: 1,
        epoch: 1,
        timeout_ms: 1_000,
        ..Default::default()
    };
    Request::Round(v1::RoundRequest {
        header: Some(header),
        round: Some(Round::Decode(v1::DecodeRound::default())),
    })
}

/// The client's ends of a stream.
struct Client {
    requests: mpsc::Sender<Result<Bytes, io::Error>>,
    replies: ReplyStream,
}

impl Client {
    async fn next(&mut self) -> Result<Reply, Status> {
        let next = self.replies.next().await.expect("open");
        Ok(next?.reply.expect("a reply"))
    }
}

/// How the client leaves.
#[derive(Clone, Copy, Debug)]
enum Leave {
    Resetting,
    Breaking,
    /// Not at all, and the round fails.
    Staying,
    /// Not at all, and the round goes on for ever.
    Waiting,
    /// Not at all, and the round waits for a grant of its second part.
    Granting,
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

    type Memory = ();

    async fn round(
        peer: &PeerServer<Self>,
        _session: &mut HeldSession<Self>,
        _round: Round,
        context: RoundContext<'_>,
        _span: &mut Span,
    ) -> Result<(), RoundError> {
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
                return Err(Status::internal("the round failed").into());
            }
            (Leave::Waiting, _) => std::future::pending().await,
            (Leave::Granting, _) => context.granted.clone().from_first(1).reaches(1).await?,
        }
        let part = Part::Decoded(v1::Decoded::default());
        Ok(context.answer(part).await?)
    }

    fn bad_proposal(bad: &BadProposal) -> Status {
        Status::internal(bad.to_string())
    }

    fn routes(_peer: Arc<PeerServer<Self>>) -> Routes {
        Routes::default()
    }
}

/// A peer whose client leaves so, and the client's ends of a stream to it that says these.
fn served(leave: Leave, said: Vec<Request>) -> (Arc<PeerServer<Left>>, Client) {
    let process = Process::default();
    let peer = Arc::new(PeerServer {
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
    let arriving = Streaming::new_request(Requests(said.into_iter()), body, None, None);
    let replies = spawn(Arc::clone(&peer), arriving);
    (peer, Client { requests, replies })
}

/// Sessions detached, once the stream of a client that leaves so has ended.
async fn detached_after(leave: Leave) -> usize {
    let (peer, mut client) = served(leave, vec![opening(), round()]);
    let requests = client.requests.clone();
    requests.send(Ok(EMPTY)).await.expect("room");
    assert!(matches!(client.next().await, Ok(Reply::Opened(_))));
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

/// The client's ends of a stream that is open and in the midst of a round, when `then` comes too.
async fn beside_a_round(then: Request) -> (Arc<PeerServer<Left>>, Client) {
    beside_a_round_of(Leave::Waiting, then).await
}

async fn beside_a_round_of(leave: Leave, then: Request) -> (Arc<PeerServer<Left>>, Client) {
    let (peer, mut client) = served(leave, vec![opening(), round(), then]);
    for _ in 0..3 {
        client.requests.send(Ok(EMPTY)).await.expect("room");
    }
    assert!(matches!(client.next().await, Ok(Reply::Opened(_))));
    (peer, client)
}

#[tokio::test(start_paused = true)]
async fn a_close_ends_the_round_under_way_and_frees_the_session() {
    let (peer, mut client) = beside_a_round(Request::Close(v1::Close {})).await;
    assert!(matches!(client.next().await, Ok(Reply::Closed(_))));
    assert!(client.replies.next().await.is_none());
    let sessions = peer.sessions();
    assert_eq!((sessions.attached, sessions.detached), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_second_round_while_one_is_answered_is_an_error_that_says_so() {
    for then in [round(), opening()] {
        let (peer, mut client) = beside_a_round(then).await;
        let ended = client.next().await.expect_err("ended");
        assert_eq!(ended.code(), tonic::Code::InvalidArgument);
        assert!(
            ended.message().starts_with("round: the round before it")
                || ended.message().starts_with("request: "),
            "{ended:?}"
        );
        assert!(client.replies.next().await.is_none());
        assert_eq!(peer.sessions().detached, 1);
    }
}

/// A grant is no reason to end it.
#[tokio::test(start_paused = true)]
async fn a_round_goes_on_beside_grants_and_after_the_last_message() {
    let grant = Request::Grant(v1::Grant { until: 3 });
    let (peer, mut client) = beside_a_round(grant).await;
    drop(client.requests);
    let next = tokio::time::timeout(Duration::from_secs(60), client.replies.next()).await;
    assert!(next.is_err(), "{next:?}");
    assert_eq!(peer.sessions().attached, 1);
}

/// After the last message no grant can come.
#[tokio::test(start_paused = true)]
async fn a_round_waits_for_a_grant_until_the_last_message() {
    let too_little = Request::Grant(v1::Grant { until: 1 });
    let (peer, mut client) = beside_a_round_of(Leave::Granting, too_little).await;
    let minute = Duration::from_secs(60);
    let waiting = tokio::time::timeout(minute, client.replies.next()).await;
    assert!(waiting.is_err(), "{waiting:?}");
    drop(client.requests);
    let ended = tokio::time::timeout(minute, client.replies.next()).await;
    let ended = ended.expect("at once").expect("told").expect_err("ended");
    assert_eq!(ended.code(), tonic::Code::Cancelled, "{ended:?}");
    assert!(ended.message().contains("beyond 1"), "{ended:?}");
    assert_eq!(peer.sessions().detached, 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_never_says_open_is_ended() {
    let (_peer, mut client) = served(Leave::Staying, Vec::new());
    let began = tokio::time::Instant::now();
    let ended = client.replies.next().await.expect("told");
    let ended = ended.expect_err("ended");
    assert_eq!(ended.code(), tonic::Code::DeadlineExceeded);
    assert!(began.elapsed() >= OPEN_TIMEOUT);
}
