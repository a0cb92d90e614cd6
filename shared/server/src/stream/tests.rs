//! What becomes of a session whose client leaves just as a round replies.

use std::io;
use std::sync::Mutex;

use axum::body::{Body, Bytes};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codec::{DecodeBuf, Decoder};

use super::*;
use crate::process::Process;

/// Requests without content, as gRPC frames them.
const EMPTY: Bytes = Bytes::from_static(&[0; 5]);

struct Empty;

impl Decoder for Empty {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, _source: &mut DecodeBuf<'_>) -> Result<Option<()>, Status> {
        Ok(Some(()))
    }
}

/// The client's ends of a stream.
struct Client {
    requests: mpsc::Sender<Result<Bytes, io::Error>>,
    _replies: ReplyStream<&'static str>,
}

/// How the client leaves.
#[derive(Clone, Copy, Debug)]
enum Leave {
    Resetting,
    Breaking,
    /// Not at all.
    Staying,
}

/// A service whose client leaves in the midst of each round, just before the reply is sent.
struct Left {
    sessions: Leases<()>,
    health: Health,
    leave: Leave,
    client: Mutex<Option<Client>>,
}

impl SessionService for Left {
    type Request = ();
    type Reply = &'static str;
    type Spec = ();
    type Session = ();

    fn sessions(&self) -> &Leases<()> {
        &self.sessions
    }

    fn open(&self, (): ()) -> Result<Opening<()>, Status> {
        Ok(Opening {
            id: [1; 16],
            epoch: 1,
            lease: Duration::from_mins(1),
            spec: (),
        })
    }

    fn resume(&self, (): (), _held: Option<()>) {}

    fn opened(&self, (): &(), _epoch: u32) -> &'static str {
        "opened"
    }

    async fn round(
        &self,
        (): &mut (),
        (): (),
        _epoch: u32,
        replies: &Replies<&'static str>,
    ) -> Result<Next, Status> {
        // Nothing is awaited before the reply fails, so it is this that ends the stream, and not that the
        // stream was seen to be closed.
        let client = self.client.lock().unwrap().take();
        match (self.leave, client) {
            (Leave::Resetting, client) => drop(client),
            (Leave::Breaking, Some(client)) => {
                let broken = Err(io::ErrorKind::ConnectionReset.into());
                client.requests.try_send(broken).expect("room");
            }
            (Leave::Breaking, None) => panic!("a second round"),
            (Leave::Staying, client) => {
                *self.client.lock().unwrap() = client;
                return Err(Status::internal("the round failed"));
            }
        }
        replies.send("a reply").await?;
        Ok(Next::Request)
    }

    fn health(&self) -> &Health {
        &self.health
    }

    fn draining(&self) -> &'static str {
        "draining"
    }

    fn overloaded(&self, what: String, _retry_after: Duration) -> Status {
        Status::resource_exhausted(what)
    }
}

/// Sessions detached, once the stream of a client that leaves so has ended.
async fn detached_after(leave: Leave) -> usize {
    let service = Arc::new(Left {
        sessions: Leases::new(4),
        health: Health::new("test", &Process::default()),
        leave,
        client: Mutex::default(),
    });
    let (requests, arriving) = mpsc::channel(4);
    let body = Body::from_stream(ReceiverStream::new(arriving));
    let arriving = Streaming::new_request(Empty, body, None, None);
    requests.send(Ok(EMPTY)).await.expect("room");
    let mut replies = spawn(Arc::clone(&service), arriving);
    let opened = replies.next().await.expect("open").expect("in order");
    assert_eq!((opened, service.sessions.counts().attached), ("opened", 1));
    *service.client.lock().unwrap() = Some(Client {
        requests: requests.clone(),
        _replies: replies,
    });
    requests.send(Ok(EMPTY)).await.expect("room");
    drop(requests);
    for _ in 0..1_000 {
        if service.sessions.counts().attached == 0 {
            return service.sessions.counts().detached;
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
