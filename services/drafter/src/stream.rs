//! The rounds of one `Draft` stream.

use std::time::{Duration, Instant};

use server::lease::Leases;
use server::stream::{Next, Opening, Replies, SessionService};
use tonic::Status;
use v1::draft_length::Policy;
use v1::draft_reply::Reply;
use v1::draft_request::Request;
use wire::open::{self, SessionSpec};
use wire::status::{BadField, overloaded};
use wire::{round, v1};

use crate::block::Draft;
use crate::error::RoundError;
use crate::service::Shared;
use crate::session::Session;
use crate::task::{DraftTask, Drafted};

impl SessionService for Shared {
    type Request = v1::DraftRequest;
    type Reply = v1::DraftReply;
    type Spec = SessionSpec;
    type Session = Session;

    fn sessions(&self) -> &Leases<Session> {
        &self.sessions
    }

    fn open(&self, first: v1::DraftRequest) -> Result<Opening<SessionSpec>, Status> {
        let Some(Request::Open(opening)) = first.request else {
            return Err(open::missing().into());
        };
        let epoch = opening.epoch;
        let spec = open::from_wire(opening, &self.description)?;
        let lease = Duration::from_millis(spec.lease_ms.into());
        Ok(Opening {
            id: spec.id,
            epoch,
            lease,
            spec,
        })
    }

    fn resume(&self, spec: SessionSpec, held: Option<Session>) -> Session {
        match held {
            Some(session) if *session.spec == spec => session,
            _ => Session::new(spec, self.engine.new_slot()),
        }
    }

    fn opened(&self, session: &Session, epoch: u32) -> v1::DraftReply {
        reply(Reply::Opened(v1::Opened {
            epoch,
            held_len: session.committed.tokens().len() as u32,
            lease_ms: session.spec.lease_ms,
        }))
    }

    async fn round(
        &self,
        session: &mut Session,
        request: v1::DraftRequest,
        epoch: u32,
        replies: &Replies<v1::DraftReply>,
    ) -> Result<Next, Status> {
        match request.request {
            Some(Request::Round(asked)) => {
                draft(self, session, replies, asked, epoch).await?;
                Ok(Next::Request)
            }
            Some(Request::Close(_)) => {
                replies.send(reply(Reply::Closed(v1::Closed {}))).await?;
                Ok(Next::Closed)
            }
            Some(Request::Append(_) | Request::Commit(_)) => {
                Err(Status::unimplemented("append and commit are reserved"))
            }
            Some(Request::Open(_)) => Err(open::repeated().into()),
            None => Err(BadField::new("request", "missing, or of a later version").into()),
        }
    }

    fn overloaded(&self, what: String, retry_after: Duration) -> Status {
        overloaded(what, retry_after)
    }
}

fn reply(reply: Reply) -> v1::DraftReply {
    v1::DraftReply { reply: Some(reply) }
}

/// Answers one round: from the replies kept, or by drafting.
async fn draft(
    service: &Shared,
    session: &mut Session,
    replies: &Replies<v1::DraftReply>,
    asked: v1::DraftRound,
    epoch: u32,
) -> Result<(), Status> {
    let began = Instant::now();
    let wanted = wanted(service, &asked)?;
    let round = round::from_wire(asked.header, epoch, session.spec.vocab_size)?;
    if let Some(blocks) = session.replies.find(&round.key) {
        for block in blocks.clone() {
            let header = Some(round.reply_header(true));
            replies
                .send(reply(Reply::Block(v1::DraftBlock { header, ..block })))
                .await?;
        }
        return Ok(());
    }
    let max_tokens = room(service, session, round.key.base_len, wanted)?;
    if let Err(need) = session
        .committed
        .replace_from(round.from_len, &round.committed)
    {
        let header = Some(round.reply_header(false));
        let need = v1::NeedFrom {
            header,
            from: need.from,
        };
        return replies.send(reply(Reply::NeedFrom(need))).await;
    }
    let (task, mut reports) = DraftTask::new(&session.spec, session.committed.tokens(), max_tokens);
    session.slot.try_submit(task).map_err(RoundError::from)?;

    let mut draft = Draft::new(&round, asked.tokens_per_block, began);
    let end_tokens = &session.spec.sampling.end_tokens;
    let drafting = async {
        while let Some(report) = reports.recv().await {
            let (token, figures) = match report {
                Drafted::Failed(error) => return Err(Status::from(error)),
                Drafted::Token(token, figures) => (token, figures),
            };
            let ended = end_tokens.contains(&token.id);
            draft.add(token.id, token.proposal, figures);
            let cause = match () {
                () if ended => Some(v1::StopCause::EndToken),
                () if draft.len() < max_tokens => None,
                () if max_tokens < wanted => Some(v1::StopCause::Context),
                () => Some(v1::StopCause::Length),
            };
            if let Some(block) = draft.take_block(cause) {
                replies.send(reply(Reply::Block(block))).await?;
            }
            if cause.is_some() {
                return Ok(());
            }
        }
        Err(RoundError::Dropped.into())
    };
    let late = |_| RoundError::Late(round.timeout);
    tokio::time::timeout(round.timeout, drafting)
        .await
        .map_err(late)??;
    session.replies.keep(round.key, draft.into_blocks());
    Ok(())
}

/// How many draft tokens are wanted, if nothing is that this version does not carry out.
fn wanted(service: &Shared, asked: &v1::DraftRound) -> Result<u32, BadField> {
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
        return Err(BadField::new("max_tokens", problem));
    }
    match asked.draft_length.and_then(|length| length.policy) {
        None => Ok(asked.max_tokens),
        Some(Policy::Fixed(0)) => Err(BadField::new(
            "draft_length.fixed",
            "0 is out of range, expected at least 1",
        )),
        Some(Policy::Fixed(tokens)) => Ok(tokens.min(asked.max_tokens)),
        Some(_) => refused("draft_length"),
    }
}

/// How many of `wanted` draft tokens the draft model's context has room for after `base_len` output
/// tokens.
fn room(
    service: &Shared,
    session: &Session,
    base_len: u32,
    wanted: u32,
) -> Result<u32, RoundError> {
    let len = session.spec.prompt.len() + base_len as usize;
    let context_len = service.description.context_len as usize;
    // The last draft token is never forwarded, so it needs no place.
    match (context_len + 1).saturating_sub(len) {
        0 => Err(RoundError::ContextFull { len, context_len }),
        room => Ok(wanted.min(room as u32)),
    }
}
