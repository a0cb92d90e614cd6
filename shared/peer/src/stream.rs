//! The life of a session's stream: open, rounds, and what becomes of the session at its end.

mod inbox;

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::lease::{AttachError, Attached};
use ops::trace::{self, names};
use tokio::sync::mpsc;
use tonic::{Status, Streaming};
use tracing::Instrument;
use v1::round_request::Round;
use v1::session_reply::Reply;
use v1::session_request::Request;
use wire::failure::Failure;
use wire::round::request_id;
use wire::status::overloaded;
use wire::{open, round, v1};

use crate::commits::{Commits, commits};
use crate::context::{READ_TIMEOUT, REPLY_BUFFER, ReplySender, RoundContext};
use crate::granted::{Granted, grants};
use crate::proposals::{Proposals, proposals};
use crate::role::{HeldSession, PeerServer, Role};
use inbox::{Inbox, Message, unknown};

/// How long a stream may take to say which session it is.
pub const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a session may keep its stream without a round; then it is detached. Longer than any
/// round of another peer that the client may be waiting for.
pub const IDLE_TIMEOUT: Duration = Duration::from_mins(3);

/// How long a client should wait when all sessions are taken: about half a lease.
const SESSIONS_RETRY_AFTER: Duration = Duration::from_secs(5);

/// What a stream answers with, as tonic takes it.
pub type ReplyStream = tokio_stream::wrappers::ReceiverStream<Result<v1::SessionReply, Status>>;

/// What may come for a round while it is answered.
struct Beside {
    granted: Granted,
    proposals: Proposals,
    commits: Commits,
}

/// How a stream ended.
enum End {
    /// The session is not wanted any more.
    Closed,
    /// The client may come back within the lease.
    Detached,
}

/// Serves one stream in a task of its own.
pub fn spawn<R: Role>(
    peer: Arc<PeerServer<R>>,
    mut requests: Streaming<v1::SessionRequest>,
) -> ReplyStream {
    let (sender, receiver) = mpsc::channel(REPLY_BUFFER);
    tokio::spawn(async move {
        let replies = ReplySender(sender);
        if let Err(status) = serve(&*peer, &mut requests, &replies).await {
            // The client may be gone, or not reading; then nobody is left to tell.
            let _ = tokio::time::timeout(READ_TIMEOUT, replies.0.send(Err(status))).await;
        }
    });
    ReplyStream::new(receiver)
}

async fn serve<R: Role>(
    peer: &PeerServer<R>,
    requests: &mut Streaming<v1::SessionRequest>,
    replies: &ReplySender,
) -> Result<(), Status> {
    let first = tokio::time::timeout(OPEN_TIMEOUT, requests.message()).await;
    let late = |_| Failure::Late.status("no open within 10 s of the stream's begin");
    let Some(first) = first.map_err(late)?? else {
        return Ok(());
    };
    let Some(Request::Open(opening)) = first.request else {
        return Err(open::missing().into());
    };
    let (epoch, numerics) = (opening.epoch, opening.numerics.clone());
    let learnt = R::described(peer, &opening.vocab_fingerprint);
    let description = learnt.as_deref().unwrap_or(&peer.description);
    let spec = open::from_wire(opening, description)?;
    let (id, lease_ms) = (spec.id, spec.lease_ms);
    let (hold, held) = peer
        .sessions
        .attach(id, epoch)
        .map_err(|error| match error {
            AttachError::Full { .. } => overloaded(error.to_string(), SESSIONS_RETRY_AFTER),
            AttachError::Stale { .. } => Failure::Superseded.status(error.to_string()),
        })?;
    let mut session = HeldSession::resumed(peer, spec, held);
    let compiled = session.compile_grammar(peer).await;
    if let Err(status) = compiled.and_then(|()| R::opened(peer, &mut session, &numerics)) {
        hold.detach(session, Duration::from_millis(lease_ms.into()));
        return Err(status);
    }
    let opened = v1::Opened {
        epoch,
        held_len: session.committed.tokens().len() as u32,
        lease_ms,
    };
    replies.send(Reply::Opened(opened)).await?;
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

/// Tells the client as soon as the service drains, also in the midst of a round. Another replica may
/// take the session when the round is over; if there is none, it goes on here.
async fn tell_draining<R: Role>(peer: &PeerServer<R>, replies: &ReplySender) -> Infallible {
    peer.health.draining().await;
    // If the client is gone, its stream's end says so.
    let _ = replies.send(Reply::Draining(v1::Draining {})).await;
    std::future::pending().await
}

async fn rounds<R: Role>(
    peer: &PeerServer<R>,
    hold: &Attached<HeldSession<R>>,
    session: &mut HeldSession<R>,
    requests: &mut Streaming<v1::SessionRequest>,
    replies: &ReplySender,
    epoch: u32,
) -> Result<End, Status> {
    let mut inbox = Inbox::new(requests);
    loop {
        let request = match arrival(&mut inbox, hold).await? {
            ControlFlow::Continue(request) => request,
            ControlFlow::Break(end) => return Ok(end),
        };
        let round = match request {
            Some(Request::Round(round)) => round,
            // The round that it was for has ended meanwhile.
            Some(Request::Grant(_) | Request::Append(_) | Request::Commit(_)) => continue,
            Some(Request::Close(_)) => return Ok(close(replies).await),
            Some(Request::Open(_)) => return Err(open::repeated().into()),
            None => return Err(unknown("request").into()),
        };
        let (granting, granted) = grants();
        let (proposing, proposals) = proposals(peer.engines.first());
        let (committing, commits) = commits();
        let beside = Beside {
            granted,
            proposals,
            commits,
        };
        let answered = tokio::select! {
            biased;
            answered = answer(peer, session, round, beside, replies, epoch) => answered,
            () = hold.superseded() => return Err(superseded()),
            () = replies.0.closed() => return client_gone(&mut inbox, hold).await,
            closing = inbox.beside(granting, &proposing, &committing) => match closing {
                Ok(()) => return Ok(close(replies).await),
                Err(wrong) => return Err(wrong.into()),
            },
        };
        peer.metrics.round(&answered);
        match answered {
            Ok(()) => {}
            // A round that sends may notice before this loop does.
            Err(_) if replies.0.is_closed() => return client_gone(&mut inbox, hold).await,
            Err(status) => return Err(status),
        }
    }
}

/// Answers one round: as it was answered before, if this is a copy. It is dropped, at whatever it awaits, when the
/// client is gone or closes the session, or another stream takes it.
async fn answer<R: Role>(
    peer: &PeerServer<R>,
    session: &mut HeldSession<R>,
    request: v1::RoundRequest,
    beside: Beside,
    replies: &ReplySender,
    epoch: u32,
) -> Result<(), Status> {
    let began = Instant::now();
    let requested = request.round.ok_or_else(|| unknown("round"))?;
    let name = match &requested {
        Round::Draft(_) => names::DRAFT,
        Round::Verify(_) => names::VERIFY,
        Round::Decode(_) => names::DECODE,
        Round::Score(_) => names::SCORE,
        Round::Ahead(_) => names::AHEAD,
    };
    let round = round::from_wire(request.header, epoch, session.spec.vocab_size)?;
    R::admit(peer, session, round.key.base_len > 0)?;
    let mut span = peer.traces.round(name, &round.trace_context, began);
    if let Some(parts) = session.answers.find(&round.key) {
        span.set(names::REPLAYED, true);
        for part in parts {
            let header = round.reply_header(true);
            replies.answer(header, part.clone()).await?;
        }
        return Ok(());
    }
    let context = RoundContext {
        round,
        began,
        granted: beside.granted,
        proposals: beside.proposals,
        commits: beside.commits,
        replies,
    };
    let (lines, answering) = (
        span.context(),
        R::round(peer, session, requested, context, &mut span),
    );
    let answered = trace::within(lines, answering).await;
    answered.map_err(|error| {
        let status = error.status(R::MODEL, R::ANSWER, R::bad_proposal);
        span.fail(format!("{:?}", status.code()));
        status
    })
}

/// Ends the stream of a session that is not wanted any more.
async fn close(replies: &ReplySender) -> End {
    // The client may be gone by now; its session goes all the same.
    let _ = replies.send(Reply::Closed(v1::Closed {})).await;
    End::Closed
}

/// Returns how a stream ends that nobody reads any more: what the client's side of it says tells why.
async fn client_gone<S>(inbox: &mut Inbox<'_>, hold: &Attached<S>) -> Result<End, Status> {
    let last = arrival(inbox, hold).await?;
    Ok(last.break_value().unwrap_or(End::Closed))
}

/// Returns the next message, or how the stream ends without one.
async fn arrival<S>(
    inbox: &mut Inbox<'_>,
    hold: &Attached<S>,
) -> Result<ControlFlow<End, Message>, Status> {
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

#[cfg(test)]
mod tests;
