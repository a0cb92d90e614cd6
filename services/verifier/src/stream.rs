//! One `Verify` stream: open, rounds, close.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::engine::StepFigures;
use server::arrival::{self, Arrival};
use server::lease::Attached;
use tokio::sync::mpsc;
use tonic::{Status, Streaming};
use v1::verify_reply::Reply;
use v1::verify_request::Request;
use wire::digest::digest;
use wire::round::Round;
use wire::status::{BadField, overloaded};
use wire::{open, proposal, round, v1, verdict};

use crate::decode::DecodeTask;
use crate::error::RoundError;
use crate::score::ScoreTask;
use crate::service::Shared;
use crate::session::Session;
use crate::verify::VerifyTask;

/// How long a coordinator should wait when all sessions are taken: about a lease.
const SESSIONS_RETRY_AFTER: Duration = Duration::from_secs(5);

type Replies = mpsc::Sender<Result<v1::VerifyReply, Status>>;

/// Serves one stream to its end.
pub(crate) async fn serve(
    service: Arc<Shared>,
    mut requests: Streaming<v1::VerifyRequest>,
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
    requests: &mut Streaming<v1::VerifyRequest>,
    replies: &Replies,
) -> Result<(), Status> {
    let Some(v1::VerifyRequest {
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
    requests: &mut Streaming<v1::VerifyRequest>,
    replies: &Replies,
    epoch: u32,
) -> Result<End, Status> {
    loop {
        let request = match arrival::next(requests, hold).await? {
            Arrival::Message(message) => message.request,
            Arrival::Broken => return Ok(End::Detached),
            Arrival::Reset => return Ok(End::Closed),
        };
        let round = async {
            match request {
                Some(Request::Round(asked)) => {
                    verify(service, session, replies, asked, epoch).await?;
                    Ok(None)
                }
                Some(Request::Decode(asked)) => {
                    decode(service, session, replies, asked, epoch).await?;
                    Ok(None)
                }
                Some(Request::Close(_)) => {
                    reply(replies, Reply::Closed(v1::Closed {})).await?;
                    Ok(Some(End::Closed))
                }
                Some(Request::Append(_) | Request::Commit(_)) => {
                    Err(Status::unimplemented("append and commit are reserved"))
                }
                Some(Request::Open(_)) => {
                    Err(BadField::new("request", "the stream is open already").into())
                }
                None => Err(BadField::new("request", "missing, or of a later version").into()),
            }
        };
        tokio::select! {
            ended = round => if let Some(end) = ended? {
                return Ok(end);
            },
            () = hold.superseded() => {
                return Err(Status::aborted("a newer stream took the session"));
            }
            () = replies.closed() => return gone(requests, hold).await,
        }
    }
}

/// How a stream ended whose replies nobody reads any more.
async fn gone(
    requests: &mut Streaming<v1::VerifyRequest>,
    hold: &Attached<Session>,
) -> Result<End, Status> {
    Ok(match arrival::next(requests, hold).await? {
        Arrival::Broken => End::Detached,
        Arrival::Reset | Arrival::Message(_) => End::Closed,
    })
}

/// Answers one block: from the replies kept, or by scoring it.
async fn verify(
    service: &Shared,
    session: &mut Session,
    replies: &Replies,
    asked: v1::VerifyRound,
    epoch: u32,
) -> Result<(), Status> {
    let began = Instant::now();
    if !asked.layers.is_empty() {
        return Err(BadField::new("layers", "not carried out by this version").into());
    }
    let digest = digest(&asked);
    let vocab_size = session.spec.vocab_size;
    let limit = service
        .description
        .limits
        .unwrap_or_default()
        .max_draft_tokens as usize;
    let drafts = round::chain_from_wire(asked.drafts, limit, vocab_size)?;
    let proposals = proposal::from_wire(asked.proposals, drafts.len(), session.spec.proposal_form)?;
    let round = round::from_wire(asked.header, epoch, digest, vocab_size)?;
    if let Some(kept) = session.replies.find(&round.key) {
        for answer in kept.clone() {
            reply(replies, with_header(answer, round.reply_header(true))).await?;
        }
        return Ok(());
    }
    if !advance(session, replies, &round).await? {
        return Ok(());
    }
    check_room(service, session, drafts.len())?;

    let deciding = async {
        if session.spec.accept_at_coordinator {
            let wanted = asked.slices.unwrap_or_default();
            let (task, answer) = ScoreTask::new(session, &drafts, wanted);
            session.slot.try_submit(task)?;
            let (mut slices, figures) = answer.await.map_err(|_| RoundError::Dropped)??;
            if let Some(last) = slices.last_mut() {
                last.timing = Some(timing(figures, began));
            }
            Ok(slices.into_iter().map(Reply::Slice).collect())
        } else {
            let (task, answer) = VerifyTask::new(session, &drafts, proposals);
            session.slot.try_submit(task)?;
            let (decided, figures) = answer.await.map_err(|_| RoundError::Dropped)??;
            let timing = timing(figures, began);
            let header = round.reply_header(false);
            Ok(vec![Reply::Verdict(verdict::to_wire(
                decided, header, timing,
            ))])
        }
    };
    let answers: Vec<Reply> = match tokio::time::timeout(round.timeout, deciding).await {
        Ok(decided) => decided.map_err(|error: RoundError| Status::from(error))?,
        Err(_) => return Err(RoundError::Late(round.timeout).into()),
    };
    session.replies.keep(round.key, answers.clone());
    for answer in answers {
        reply(replies, with_header(answer, round.reply_header(false))).await?;
    }
    Ok(())
}

/// Decodes alone and streams the tokens as they come.
async fn decode(
    service: &Shared,
    session: &mut Session,
    replies: &Replies,
    asked: v1::DecodeRound,
    epoch: u32,
) -> Result<(), Status> {
    let digest = digest(&asked);
    if asked.max_tokens == 0 {
        return Err(BadField::new("max_tokens", "0 is out of range, expected at least 1").into());
    }
    let round = round::from_wire(asked.header, epoch, digest, session.spec.vocab_size)?;
    if !advance(session, replies, &round).await? {
        return Ok(());
    }
    // The last token is never forwarded, so it needs no place.
    check_room(service, session, asked.max_tokens as usize - 1)?;
    let (task, mut reports) = DecodeTask::new(session, asked.max_tokens);
    session.slot.try_submit(task).map_err(RoundError::from)?;
    for index in 0..asked.max_tokens {
        let began = Instant::now();
        let report = match tokio::time::timeout(round.timeout, reports.recv()).await {
            Ok(Some(report)) => report,
            Ok(None) => return Err(RoundError::Dropped.into()),
            Err(_) => return Err(RoundError::Late(round.timeout).into()),
        };
        let (token, figures) = report?;
        let ended = session.spec.sampling.end_tokens.contains(&token);
        let last = ended || index + 1 == asked.max_tokens;
        let mut header = round.reply_header(false);
        header.base_len += index;
        let decoded = v1::Decoded {
            header: Some(header),
            token_ids: vec![token],
            logprobs: Vec::new(),
            last,
            timing: Some(timing(figures, began)),
        };
        reply(replies, Reply::Decoded(decoded)).await?;
        if last {
            break;
        }
    }
    Ok(())
}

/// Brings the session's output to where the round stands; false if the coordinator was told that
/// too little is held.
async fn advance(session: &mut Session, replies: &Replies, round: &Round) -> Result<bool, Status> {
    match session
        .committed
        .replace_from(round.from_len, &round.committed)
    {
        Ok(()) => Ok(true),
        Err(need) => {
            let header = Some(round.reply_header(false));
            reply(
                replies,
                Reply::NeedFrom(v1::NeedFrom {
                    header,
                    from: need.from,
                }),
            )
            .await?;
            Ok(false)
        }
    }
}

fn check_room(service: &Shared, session: &Session, more: usize) -> Result<(), RoundError> {
    let len = session.spec.prompt.len() + session.committed.tokens().len() + more;
    let context_len = service.description.context_len as usize;
    if len > context_len {
        return Err(RoundError::ContextFull { len, context_len });
    }
    Ok(())
}

fn with_header(answer: Reply, header: v1::ReplyHeader) -> Reply {
    match answer {
        Reply::Verdict(verdict) => Reply::Verdict(v1::Verdict {
            header: Some(header),
            ..verdict
        }),
        Reply::Slice(slice) => Reply::Slice(v1::Slice {
            header: Some(header),
            ..slice
        }),
        other => other,
    }
}

fn timing(figures: StepFigures, began: Instant) -> v1::Timing {
    v1::Timing {
        queue_us: figures.queue.as_micros() as u32,
        forward_us: figures.forward.as_micros() as u32,
        total_us: began.elapsed().as_micros() as u32,
        batch: figures.batch_sequences as u32,
    }
}

async fn reply(replies: &Replies, reply: Reply) -> Result<(), Status> {
    let message = v1::VerifyReply { reply: Some(reply) };
    let gone = |_| Status::cancelled("the coordinator is gone");
    replies.send(Ok(message)).await.map_err(gone)
}
