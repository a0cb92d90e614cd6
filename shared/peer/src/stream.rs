//! The life of a session's stream: open, rounds, and what becomes of the session at its end.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use speculation::committed::Committed;
use tokio::sync::mpsc;
use tonic::{Status, Streaming};
use tracing::Instrument;
use wire::digest::request_id;
use wire::failure::Failure;
use wire::open::{self, SessionSpec};
use wire::status::{BadField, overloaded};
use wire::v1;

use crate::granted::{Granted, Granting, grants};
use crate::lease::{AttachError, Attached};
use crate::replies::ReplyCache;
use crate::role::{
    HistoryHome, Peer, READ_TIMEOUT, REPLY_BUFFER, Replies, Role, Said, Session, StreamRequest,
};

/// How long a stream may take to say which session it is.
pub const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a session may keep its stream without a round; then it is detached. Longer than any
/// round of another peer that the client may be waiting for.
pub const IDLE_TIMEOUT: Duration = Duration::from_mins(3);

/// How long a client should wait when all sessions are taken: about half a lease.
const SESSIONS_RETRY_AFTER: Duration = Duration::from_secs(5);

/// What a stream answers with, as tonic takes it.
pub type ReplyStream<R> = tokio_stream::wrappers::ReceiverStream<Result<R, Status>>;

/// How a stream ended.
enum End {
    /// The session is not wanted any more.
    Closed,
    /// The client may come back within the lease.
    Detached,
}

/// Serves one stream in a task of its own.
pub fn spawn<R: Role>(
    peer: Arc<Peer<R>>,
    mut requests: Streaming<R::Request>,
) -> ReplyStream<R::Reply> {
    let (sender, receiver) = mpsc::channel(REPLY_BUFFER);
    tokio::spawn(async move {
        let replies = Replies(sender);
        if let Err(status) = serve(&*peer, &mut requests, &replies).await {
            // The client may be gone, or not reading; then nobody is left to tell.
            let _ = tokio::time::timeout(READ_TIMEOUT, replies.0.send(Err(status))).await;
        }
    });
    ReplyStream::new(receiver)
}

async fn serve<R: Role>(
    peer: &Peer<R>,
    requests: &mut Streaming<R::Request>,
    replies: &Replies<R::Reply>,
) -> Result<(), Status> {
    let first = tokio::time::timeout(OPEN_TIMEOUT, requests.message()).await;
    let late = |_| Failure::Late.status("no open within 10 s of the stream's begin");
    let Some(first) = first.map_err(late)?? else {
        return Ok(());
    };
    let Some(StreamRequest::Open(opening)) = R::read(first) else {
        return Err(open::missing().into());
    };
    let (epoch, numerics) = (opening.epoch, opening.numerics.clone());
    let spec = open::from_wire(*opening, &peer.description)?;
    let (id, lease_ms) = (spec.id, spec.lease_ms);
    let (hold, held) = peer
        .sessions
        .attach(id, epoch)
        .map_err(|error| match error {
            AttachError::Full { .. } => overloaded(error.to_string(), SESSIONS_RETRY_AFTER),
            AttachError::Stale { .. } => Failure::Superseded.status(error.to_string()),
        })?;
    let mut session = resumed(peer, spec, held);
    if let Err(status) = R::opened(peer, &mut session, &numerics) {
        hold.detach(session, Duration::from_millis(lease_ms.into()));
        return Err(status);
    }
    let opened = v1::Opened {
        epoch,
        held_len: session.committed.tokens().len() as u32,
        lease_ms,
    };
    replies.send(R::write(Said::Opened(opened))).await?;
    // The session is called as its request is. Of the highest level, so that lines of every level tell it.
    let request_id = request_id(id);
    let lines = tracing::error_span!("session", request_id);
    let answering = rounds(peer, &hold, &mut session, requests, replies, epoch);
    let ended = tokio::select! {
        ended = answering.instrument(lines.clone()) => ended,
        () = peer.health.last_call() => Err(Failure::Unavailable.status("the service is shutting down")),
        never = tell_draining(peer, replies) => match never {},
    };
    if let Err(status) = &ended {
        let (code, reason) = (status.code(), status.message());
        lines.in_scope(|| tracing::debug!(?code, reason, "stream ended with an error"));
    }
    if !matches!(ended, Ok(End::Closed)) {
        hold.detach(session, Duration::from_millis(lease_ms.into()));
    }
    ended.map(|_| ())
}

/// The session that was opened: `held` if it is the same, else a new one.
fn resumed<R: Role>(peer: &Peer<R>, spec: SessionSpec, held: Option<Session<R>>) -> Session<R> {
    if let Some(session) = held.filter(|session| *session.spec == spec) {
        return session;
    }
    let engines = peer.engines.iter();
    Session {
        slots: engines
            .map(|engine| engine.new_slot_of(&spec.tenant))
            .collect(),
        spec: Arc::new(spec),
        committed: Committed::default(),
        answers: ReplyCache::default(),
        memory: R::Memory::default(),
        history: HistoryHome::default(),
    }
}

/// Tells the client as soon as the service drains, also in the midst of a round. Another replica may
/// take the session when the round is over; if there is none, it goes on here.
async fn tell_draining<R: Role>(peer: &Peer<R>, replies: &Replies<R::Reply>) -> Infallible {
    peer.health.draining().await;
    // If the client is gone, its stream's end says so.
    let _ = replies
        .send(R::write(Said::Draining(v1::Draining {})))
        .await;
    std::future::pending().await
}

async fn rounds<R: Role>(
    peer: &Peer<R>,
    hold: &Attached<Session<R>>,
    session: &mut Session<R>,
    requests: &mut Streaming<R::Request>,
    replies: &Replies<R::Reply>,
    epoch: u32,
) -> Result<End, Status> {
    let mut inbox = Inbox::<R>::new(requests);
    loop {
        let request = match arrival(&mut inbox, hold).await? {
            ControlFlow::Continue(request) => request,
            ControlFlow::Break(end) => return Ok(end),
        };
        let (granting, granted) = grants();
        let answered = tokio::select! {
            biased;
            answered = answer(peer, session, request, granted, replies, epoch) => answered,
            () = hold.superseded() => return Err(superseded()),
            () = replies.0.closed() => return client_gone(&mut inbox, hold).await,
            never = inbox.pass_grants(&granting) => match never {},
        };
        match answered {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(end)) => return Ok(end),
            // A round that sends may notice before this loop does.
            Err(_) if replies.0.is_closed() => return client_gone(&mut inbox, hold).await,
            Err(status) => return Err(status),
        }
    }
}

/// Answers one request. It is dropped, at whatever it awaits, when the client is gone or another
/// stream takes the session.
async fn answer<R: Role>(
    peer: &Peer<R>,
    session: &mut Session<R>,
    request: Option<StreamRequest<R::Round>>,
    granted: Granted,
    replies: &Replies<R::Reply>,
    epoch: u32,
) -> Result<ControlFlow<End>, Status> {
    match request {
        Some(StreamRequest::Round(requested)) => {
            let answered = R::round(peer, session, requested, granted, epoch, replies).await;
            peer.metrics.round(&answered);
            answered.map(ControlFlow::Continue)
        }
        // The round that it was for has ended meanwhile.
        Some(StreamRequest::Grant(_)) => Ok(ControlFlow::Continue(())),
        Some(StreamRequest::Close) => {
            replies.send(R::write(Said::Closed(v1::Closed {}))).await?;
            Ok(ControlFlow::Break(End::Closed))
        }
        Some(StreamRequest::Open(_)) => Err(open::repeated().into()),
        None => Err(BadField::new("request", "missing, or of a later version").into()),
    }
}

/// How a stream ends that nobody reads any more: what the client's side of it says tells why.
async fn client_gone<R: Role>(
    inbox: &mut Inbox<'_, R>,
    hold: &Attached<Session<R>>,
) -> Result<End, Status> {
    let last = arrival(inbox, hold).await?;
    Ok(last.break_value().unwrap_or(End::Closed))
}

/// The next message, or how the stream ends without one.
async fn arrival<R: Role>(
    inbox: &mut Inbox<'_, R>,
    hold: &Attached<Session<R>>,
) -> Result<ControlFlow<End, Option<StreamRequest<R::Round>>>, Status> {
    tokio::select! {
        biased;
        () = hold.superseded() => Err(superseded()),
        message = tokio::time::timeout(IDLE_TIMEOUT, inbox.message()) => Ok(match message {
            Ok(Ok(Some(message))) => ControlFlow::Continue(message),
            // The client ended or reset the stream, and tonic and hyper report both as the end of its messages:
            // it does not want the session any more.
            Ok(Ok(None)) => ControlFlow::Break(End::Closed),
            // The connection broke, or nothing came for long.
            Ok(Err(_)) | Err(_) => ControlFlow::Break(End::Detached),
        }),
    }
}

fn superseded() -> Status {
    Failure::Superseded.status("a newer stream took the session")
}

/// A message; none if it is of a later version.
type Message<R> = Option<StreamRequest<<R as Role>::Round>>;

/// The messages of a stream.
struct Inbox<'a, R: Role> {
    requests: &'a mut Streaming<R::Request>,
    /// The first message after the current round's grants. Nothing is read beyond it.
    next: Option<Result<Option<Message<R>>, Status>>,
}

impl<'a, R: Role> Inbox<'a, R> {
    fn new(requests: &'a mut Streaming<R::Request>) -> Self {
        let next = None;
        Self { requests, next }
    }

    /// Returns the next message; none at the end of the stream.
    ///
    /// # Errors
    /// If the connection broke.
    async fn message(&mut self) -> Result<Option<Message<R>>, Status> {
        match self.next.take() {
            Some(next) => next,
            None => Ok(self.requests.message().await?.map(R::read)),
        }
    }

    /// Forwards grants to the current round for as long as it is polled. It is cancel safe.
    async fn pass_grants(&mut self, granting: &Granting) -> Infallible {
        while self.next.is_none() {
            let message = self.requests.message().await;
            match message.map(|message| message.map(R::read)) {
                Ok(Some(Some(StreamRequest::Grant(until)))) => granting.extend(until),
                other => self.next = Some(other),
            }
        }
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests;
