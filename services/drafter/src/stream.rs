//! One `Draft` stream: open, rounds, close.

use std::sync::Arc;
use std::time::{Duration, Instant};

use server::arrival::{self, Arrival};
use server::lease::Attached;
use tokio::sync::mpsc;
use tonic::{Status, Streaming};
use v1::draft_reply::Reply;
use v1::draft_request::Request;
use wire::digest::digest;
use wire::status::{BadField, overloaded};
use wire::{open, round, v1};

use crate::block::Draft;
use crate::error::RoundError;
use crate::service::Shared;
use crate::session::Session;
use crate::task::{DraftTask, Drafted};

/// How long a coordinator should wait when all sessions are taken: about a lease.
const SESSIONS_RETRY_AFTER: Duration = Duration::from_secs(5);

type Replies = mpsc::Sender<Result<v1::DraftReply, Status>>;

/// Serves one stream to its end.
pub(crate) async fn serve(
    service: Arc<Shared>,
    mut requests: Streaming<v1::DraftRequest>,
    replies: Replies,
) {
    if let Err(status) = session(&service, &mut requests, &replies).await {
        // The coordinator may be gone; then nobody is left to tell.
        let _ = replies.send(Err(status)).await;
    }
}

/// How a stream ended.
enum End {
    Closed,
    Detached,
}

async fn session(
    service: &Shared,
    requests: &mut Streaming<v1::DraftRequest>,
    replies: &Replies,
) -> Result<(), Status> {
    let Some(v1::DraftRequest {
        request: Some(Request::Open(opening)),
    }) = requests.message().await?
    else {
        return Err(
            BadField::new("request", "the first message of a stream must be an open").into(),
        );
    };
    let epoch = opening.epoch;
    let card = &service.description;
    let spec = open::from_wire(opening, &card.model, card.logits_size as usize)?;
    let lease = Duration::from_millis(spec.lease_ms.into());
    let (hold, held) = service
        .sessions
        .attach(spec.id)
        .map_err(|full| overloaded(full.to_string(), SESSIONS_RETRY_AFTER))?;
    let mut session = match held {
        Some(session) if *session.spec == spec => session,
        _ => Session::new(spec, service.engine.new_slot()),
    };
    let opened = v1::Opened {
        epoch,
        held_len: session.committed.tokens().len() as u32,
        lease_ms: session.spec.lease_ms,
    };
    reply(replies, Reply::Opened(opened)).await?;
    match rounds(service, &hold, &mut session, requests, replies, epoch).await {
        Ok(End::Closed) => Ok(()),
        Ok(End::Detached) => {
            hold.detach(session, lease);
            Ok(())
        }
        Err(status) => {
            hold.detach(session, lease);
            Err(status)
        }
    }
}

async fn rounds(
    service: &Shared,
    hold: &Attached<Session>,
    session: &mut Session,
    requests: &mut Streaming<v1::DraftRequest>,
    replies: &Replies,
    epoch: u32,
) -> Result<End, Status> {
    loop {
        let request = match arrival::next(requests, hold).await? {
            Arrival::Message(message) => message.request,
            Arrival::Broken => return Ok(End::Detached),
            Arrival::Reset => return Ok(End::Closed),
        };
        match request {
            Some(Request::Round(asked)) => {
                tokio::select! {
                    drafted = draft(service, session, replies, asked, epoch) => drafted?,
                    () = hold.superseded() => {
                        return Err(Status::aborted("a newer stream took the session"));
                    }
                    () = replies.closed() => return gone(requests, hold).await,
                }
            }
            Some(Request::Close(_)) => {
                reply(replies, Reply::Closed(v1::Closed {})).await?;
                return Ok(End::Closed);
            }
            Some(Request::Append(_) | Request::Commit(_)) => {
                return Err(Status::unimplemented("append and commit are reserved"));
            }
            Some(Request::Open(_)) => {
                return Err(BadField::new("request", "the stream is open already").into());
            }
            None => return Err(BadField::new("request", "missing, or of a later version").into()),
        }
    }
}

/// How a stream ended whose replies nobody reads any more.
async fn gone(
    requests: &mut Streaming<v1::DraftRequest>,
    hold: &Attached<Session>,
) -> Result<End, Status> {
    Ok(match arrival::next(requests, hold).await? {
        Arrival::Broken => End::Detached,
        Arrival::Reset | Arrival::Message(_) => End::Closed,
    })
}

/// Answers one round: from the replies kept, or by drafting.
async fn draft(
    service: &Shared,
    session: &mut Session,
    replies: &Replies,
    asked: v1::DraftRound,
    epoch: u32,
) -> Result<(), Status> {
    let began = Instant::now();
    refuse_what_is_reserved(&asked)?;
    let digest = digest(&asked);
    let limit = service
        .description
        .limits
        .unwrap_or_default()
        .max_draft_tokens;
    if asked.max_tokens == 0 || asked.max_tokens > limit {
        let problem = format!(
            "{} is out of range, expected 1 to {limit}",
            asked.max_tokens
        );
        return Err(BadField::new("max_tokens", problem).into());
    }
    let round = round::from_wire(asked.header, epoch, digest, session.spec.vocab_size)?;
    if let Some(blocks) = session.replies.find(&round.key) {
        for block in blocks.clone() {
            let header = Some(round.reply_header(true));
            reply(replies, Reply::Block(v1::DraftBlock { header, ..block })).await?;
        }
        return Ok(());
    }
    if let Err(need) = session
        .committed
        .replace_from(round.from_len, &round.committed)
    {
        let header = Some(round.reply_header(false));
        return reply(
            replies,
            Reply::NeedFrom(v1::NeedFrom {
                header,
                from: need.from,
            }),
        )
        .await;
    }
    let max_tokens = room(service, session, asked.max_tokens)?;
    let (task, mut reports) = DraftTask::new(&session.spec, session.committed.tokens(), max_tokens);
    session.slot.try_submit(task).map_err(RoundError::from)?;

    let mut draft = Draft::new(&round, asked.tokens_per_block, began);
    let end_tokens = &session.spec.sampling.end_tokens;
    let cut_by_context = max_tokens < asked.max_tokens;
    let drafting = async {
        while let Some(report) = reports.recv().await {
            match report {
                Drafted::Failed(error) => return Err(Status::from(error)),
                Drafted::Token(token, figures) => {
                    let ended = end_tokens.contains(&token.id);
                    draft.add(token.id, token.proposal, figures);
                    let cause = match () {
                        () if ended => Some(v1::StopCause::EndToken),
                        () if draft.len() < max_tokens => None,
                        () if cut_by_context => Some(v1::StopCause::Context),
                        () => Some(v1::StopCause::Length),
                    };
                    if let Some(block) = draft.take_block(cause) {
                        reply(replies, Reply::Block(block)).await?;
                    }
                    if cause.is_some() {
                        return Ok(());
                    }
                }
            }
        }
        Err(RoundError::Dropped.into())
    };
    match tokio::time::timeout(round.timeout, drafting).await {
        Ok(drafted) => drafted?,
        Err(_) => return Err(RoundError::Late(round.timeout).into()),
    }
    session.replies.keep(round.key, draft.into_blocks());
    Ok(())
}

fn refuse_what_is_reserved(asked: &v1::DraftRound) -> Result<(), BadField> {
    use v1::draft_length::Policy;
    let refused = |field| Err(BadField::new(field, "not carried out by this version"));
    let drafts_alone = [v1::Drafting::Unspecified, v1::Drafting::Model].map(i32::from);
    if !drafts_alone.contains(&asked.drafting) {
        return refused("drafting");
    }
    if asked.bonus_q {
        return refused("bonus_q");
    }
    if asked.tree.is_some() {
        return refused("tree");
    }
    match asked.draft_length.and_then(|length| length.policy) {
        None | Some(Policy::Fixed(_)) => Ok(()),
        Some(_) => refused("draft_length"),
    }
}

/// How many of `wanted` draft tokens the draft model's context has room for.
fn room(service: &Shared, session: &Session, wanted: u32) -> Result<u32, RoundError> {
    let len = session.spec.prompt.len() + session.committed.tokens().len();
    let context_len = service.description.context_len as usize;
    // The last draft token is never forwarded, so it needs no place.
    match (context_len + 1).saturating_sub(len) {
        0 => Err(RoundError::ContextFull { len, context_len }),
        room => Ok(wanted.min(room as u32)),
    }
}

async fn reply(replies: &Replies, reply: Reply) -> Result<(), Status> {
    let message = v1::DraftReply { reply: Some(reply) };
    let gone = |_| Status::cancelled("the coordinator is gone");
    replies.send(Ok(message)).await.map_err(gone)
}
