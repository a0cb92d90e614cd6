//! The life of a session's stream: open, rounds, and what becomes of the session at its end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tonic::{Status, Streaming};
use tracing::Instrument;

use crate::health::Health;
use crate::lease::{AttachError, Attached, Leases, SessionId};
use crate::request_id::request_id;

/// How long a stream may take to say which session it is.
pub(crate) const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a session may keep its stream without a round; then it is detached. Longer than any
/// round of another peer that the client may be waiting for.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_mins(3);

/// How long a client should wait when all sessions are taken: about half a lease.
const SESSIONS_RETRY_AFTER: Duration = Duration::from_secs(5);

/// Replies buffered for one slow client before its stream is no longer read.
pub(crate) const REPLY_BUFFER: usize = 16;

/// How long a round waits for a client that is there and does not read, with the buffer full. No client
/// of ours does that: it reads until it gives the stream up.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// A service with one session a stream.
pub trait SessionService: Send + Sync + 'static {
    /// From the client.
    type Request: Send + 'static;
    /// To the client.
    type Reply: Send + 'static;
    /// What is known of a session from its opening alone.
    type Spec: Send;
    /// What is kept of a session between rounds.
    type Session: Send + 'static;

    /// The sessions that outlive their streams.
    fn sessions(&self) -> &Leases<Self::Session>;

    /// Reads the first message of a stream.
    ///
    /// # Errors
    /// What is wrong with it.
    fn open(&self, first: Self::Request) -> Result<Opening<Self::Spec>, Status>;

    /// The session that was opened: `held` if it is the same, else a new one.
    fn resume(&self, spec: Self::Spec, held: Option<Self::Session>) -> Self::Session;

    /// Tells the client that its stream is open.
    fn opened(&self, session: &Self::Session, epoch: u32) -> Self::Reply;

    /// Answers one request. It is dropped, at whatever it awaits, when the client is gone or another
    /// stream takes the session.
    fn round(
        &self,
        session: &mut Self::Session,
        request: Self::Request,
        epoch: u32,
        replies: &Replies<Self::Reply>,
    ) -> impl Future<Output = Result<Next, Status>> + Send;

    /// The service's own state: whether it drains.
    fn health(&self) -> &Health;

    /// Tells the client that the service is about to stop.
    fn draining(&self) -> Self::Reply;

    /// The status of a client that must come back later.
    fn overloaded(&self, what: String, retry_after: Duration) -> Status;
}

/// What a stream is opened with.
#[derive(Clone, Debug)]
pub struct Opening<Spec> {
    /// Which session.
    pub id: SessionId,
    /// Which of the session's streams: grows with each.
    pub epoch: u32,
    /// How long the session outlives a broken stream.
    pub lease: Duration,
    /// The rest.
    pub spec: Spec,
}

/// Whether a stream goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// With the next request.
    Request,
    /// No: the client closed the session.
    Closed,
}

/// Where a stream's replies go.
#[derive(Debug)]
pub struct Replies<R>(mpsc::Sender<Result<R, Status>>);

impl<R> Replies<R> {
    /// Sends a reply; waits for a while if the client does not read.
    ///
    /// # Errors
    /// If the client is gone, or reads nothing for a minute.
    pub async fn send(&self, reply: R) -> Result<(), Status> {
        match tokio::time::timeout(READ_TIMEOUT, self.0.send(Ok(reply))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Status::cancelled("the client is gone")),
            Err(_) => Err(Status::deadline_exceeded(
                "the client read none of its replies for a minute",
            )),
        }
    }

    /// Sends a reply that may be lost: it is dropped if the client does not read, or is gone.
    pub fn offer(&self, reply: R) {
        let _dropped = self.0.try_send(Ok(reply));
    }
}

/// What a stream answers with, as tonic takes it.
pub type ReplyStream<R> = tokio_stream::wrappers::ReceiverStream<Result<R, Status>>;

/// Serves one stream in a task of its own.
pub fn spawn<S: SessionService>(
    service: Arc<S>,
    mut requests: Streaming<S::Request>,
) -> ReplyStream<S::Reply> {
    let (sender, receiver) = mpsc::channel(REPLY_BUFFER);
    tokio::spawn(async move {
        let replies = Replies(sender);
        if let Err(status) = serve(&*service, &mut requests, &replies).await {
            // The client may be gone, or not reading; then nobody is left to tell.
            let _ = tokio::time::timeout(READ_TIMEOUT, replies.0.send(Err(status))).await;
        }
    });
    ReplyStream::new(receiver)
}

async fn serve<S: SessionService>(
    service: &S,
    requests: &mut Streaming<S::Request>,
    replies: &Replies<S::Reply>,
) -> Result<(), Status> {
    let first = tokio::time::timeout(OPEN_TIMEOUT, requests.message()).await;
    let late = |_| Status::deadline_exceeded("no open within 10 s of the stream's begin");
    let Some(first) = first.map_err(late)?? else {
        return Ok(());
    };
    let Opening {
        id,
        epoch,
        lease,
        spec,
    } = service.open(first)?;
    let (hold, held) = service
        .sessions()
        .attach(id, epoch)
        .map_err(|error| match error {
            AttachError::Full { .. } => service.overloaded(error.to_string(), SESSIONS_RETRY_AFTER),
            AttachError::Stale { .. } => Status::aborted(error.to_string()),
        })?;
    let mut session = service.resume(spec, held);
    replies.send(service.opened(&session, epoch)).await?;
    // The session is called as its request is. Of the highest level, so that lines of every level tell it.
    let request_id = request_id(id);
    let lines = tracing::error_span!("session", request_id);
    let answering = rounds(service, &hold, &mut session, requests, replies, epoch);
    let ended = tokio::select! {
        ended = answering.instrument(lines.clone()) => ended,
        () = service.health().last_call() => Err(Status::unavailable("the service is shutting down")),
        never = tell_draining(service, replies) => match never {},
    };
    if let Err(status) = &ended {
        let (code, reason) = (status.code(), status.message());
        lines.in_scope(|| tracing::debug!(?code, reason, "stream ended with an error"));
    }
    if !matches!(ended, Ok(End::Closed)) {
        hold.detach(session, lease);
    }
    ended.map(|_| ())
}

/// Tells the client as soon as the service drains, also in the midst of a round. Another replica may
/// take the session when the round is over; if there is none, it goes on here.
async fn tell_draining<S: SessionService>(service: &S, replies: &Replies<S::Reply>) -> Infallible {
    service.health().draining().await;
    // If the client is gone, its stream's end says so.
    let _ = replies.send(service.draining()).await;
    std::future::pending().await
}

/// How a stream ended.
enum End {
    /// The session is not wanted any more.
    Closed,
    /// The client may come back within the lease.
    Detached,
}

async fn rounds<S: SessionService>(
    service: &S,
    hold: &Attached<S::Session>,
    session: &mut S::Session,
    requests: &mut Streaming<S::Request>,
    replies: &Replies<S::Reply>,
    epoch: u32,
) -> Result<End, Status> {
    loop {
        let request = match arrival(requests, hold).await? {
            Arrival::Message(request) => request,
            Arrival::Broken | Arrival::Silent => return Ok(End::Detached),
            Arrival::Reset => return Ok(End::Closed),
        };
        let answered = tokio::select! {
            next = service.round(session, request, epoch, replies) => next,
            () = hold.superseded() => return Err(superseded()),
            () = replies.0.closed() => return client_gone(requests, hold).await,
        };
        match answered {
            Ok(Next::Request) => {}
            Ok(Next::Closed) => return Ok(End::Closed),
            // A round that sends may notice before this loop does.
            Err(_) if replies.0.is_closed() => return client_gone(requests, hold).await,
            Err(status) => return Err(status),
        }
    }
}

/// How a stream ends that nobody reads any more: what the client's side of it says tells why.
async fn client_gone<T, S: Send + 'static>(
    requests: &mut Streaming<T>,
    hold: &Attached<S>,
) -> Result<End, Status> {
    Ok(match arrival(requests, hold).await? {
        Arrival::Broken | Arrival::Silent => End::Detached,
        Arrival::Reset | Arrival::Message(_) => End::Closed,
    })
}

/// What a session's stream brought.
enum Arrival<T> {
    Message(T),
    /// The connection broke.
    Broken,
    /// Nothing came for long.
    Silent,
    /// The client ended or reset the stream: it does not want the session any more.
    Reset,
}

/// Awaits the next message.
async fn arrival<T, S: Send + 'static>(
    requests: &mut Streaming<T>,
    hold: &Attached<S>,
) -> Result<Arrival<T>, Status> {
    tokio::select! {
        biased;
        () = hold.superseded() => Err(superseded()),
        message = tokio::time::timeout(IDLE_TIMEOUT, requests.message()) => Ok(match message {
            Ok(Ok(Some(message))) => Arrival::Message(message),
            // tonic and hyper report a reset by the client as the end of its messages.
            Ok(Ok(None)) => Arrival::Reset,
            Ok(Err(_)) => Arrival::Broken,
            Err(_) => Arrival::Silent,
        }),
    }
}

fn superseded() -> Status {
    Status::aborted("a newer stream took the session")
}

#[cfg(test)]
mod tests;
