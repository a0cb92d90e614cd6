//! The rounds of one `Draft` stream.

use std::time::{Duration, Instant};

use server::lease::Leases;
use server::stream::{Next, Opening, Replies, SessionService};
use speculation::drafting::StopRule;
use speculation::proposal::ProposalForm;
use speculation::verification::Verification;
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
use crate::task::{Asked, DraftTask, Drafted};

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
    wire: v1::DraftRound,
    epoch: u32,
) -> Result<(), Status> {
    let began = Instant::now();
    let wanted = asked(service, session, &wire)?;
    let round = round::from_wire(wire.header, epoch, session.spec.vocab_size)?;
    if let Some(blocks) = session.replies.find(&round.key) {
        for block in blocks.clone() {
            let header = Some(round.reply_header(true));
            replies
                .send(reply(Reply::Block(v1::DraftBlock { header, ..block })))
                .await?;
        }
        return Ok(());
    }
    let asked = Asked {
        max_tokens: room(service, session, round.key.base_len, wanted)?,
        ..wanted
    };
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
    let (task, mut reports) = DraftTask::new(&session.spec, session.committed.tokens(), asked);
    session.slot.try_submit(task).map_err(RoundError::from)?;

    let mut draft = Draft::new(
        &round,
        session.spec.proposal_form,
        wire.tokens_per_block,
        began,
    );
    let end_tokens = &session.spec.sampling.end_tokens;
    let full = if asked.max_tokens < wanted.max_tokens {
        v1::StopCause::Context
    } else {
        v1::StopCause::Length
    };
    let drafting = async {
        while let Some(report) = reports.recv().await {
            let cause = match report {
                Drafted::Failed(error) => return Err(Status::from(error)),
                Drafted::Token(token, figures) => {
                    let ended = end_tokens.contains(&token.id);
                    draft.add(token.id, token.proposal, figures);
                    let is_full = draft.len() == asked.max_tokens && !asked.bonus_q;
                    match () {
                        () if ended => Some(v1::StopCause::EndToken),
                        () if is_full => Some(full),
                        () => None,
                    }
                }
                Drafted::Ended {
                    bonus,
                    by_rule,
                    figures,
                } => {
                    draft.end(bonus, figures);
                    Some(if by_rule { v1::StopCause::Policy } else { full })
                }
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
    // Whole rows are large; a repetition drafts the same tokens again.
    if !matches!(session.spec.proposal_form, ProposalForm::Dense { .. }) {
        session.replies.keep(round.key, draft.into_blocks());
    }
    Ok(())
}

/// What is asked for, if nothing is that this version does not carry out.
fn asked(service: &Shared, session: &Session, wire: &v1::DraftRound) -> Result<Asked, BadField> {
    let refused = |field| Err(BadField::new(field, "not carried out by this version"));
    let drafts_alone = [v1::Drafting::Unspecified, v1::Drafting::Model].map(i32::from);
    if !drafts_alone.contains(&wire.drafting) {
        return refused("drafting");
    }
    if wire.tree.is_some() {
        return refused("tree");
    }
    let limits = service.description.limits.unwrap_or_default();
    let (least, limit) = (u32::from(!wire.bonus_q), limits.max_draft_tokens);
    if !(least..=limit).contains(&wire.max_tokens) {
        let asked = wire.max_tokens;
        let problem = format!("{asked} is out of range, expected {least} to {limit}");
        return Err(BadField::new("max_tokens", problem));
    }
    let policy = wire.draft_length.and_then(|length| length.policy);
    let max_tokens = match policy {
        Some(Policy::Fixed(0)) => {
            let problem = "0 is out of range, expected at least 1";
            return Err(BadField::new("draft_length.fixed", problem));
        }
        Some(Policy::Fixed(tokens)) => tokens.min(wire.max_tokens),
        _ => wire.max_tokens,
    };
    let stop_rule = match policy {
        None | Some(Policy::Fixed(_)) => StopRule::Never,
        Some(Policy::Confidence(least)) if (0.0..=1.0).contains(&least) => {
            StopRule::MaxBelow(least)
        }
        Some(Policy::Confidence(least)) => {
            let problem = format!("{least} is out of range, expected 0 to 1");
            return Err(BadField::new("draft_length.confidence", problem));
        }
        Some(Policy::Entropy(most)) if most >= 0.0 => StopRule::EntropyAbove(most),
        Some(Policy::Entropy(most)) => {
            let problem = format!("{most} is out of range, expected at least 0");
            return Err(BadField::new("draft_length.entropy", problem));
        }
        Some(Policy::Learned(_) | Policy::Goodput(_)) => return refused("draft_length"),
    };
    if stop_rule != StopRule::Never && session.spec.verification == Verification::BlockGreedy {
        let problem = "greedy block verification needs a length that does not depend on what is \
                       drafted; leave the policy out, or choose block verification";
        return Err(BadField::new("draft_length", problem));
    }
    Ok(Asked {
        max_tokens,
        bonus_q: wire.bonus_q,
        stop_rule,
    })
}

/// How many of the draft tokens asked for the draft model's context has room for after `base_len`
/// output tokens.
fn room(
    service: &Shared,
    session: &Session,
    base_len: u32,
    asked: Asked,
) -> Result<u32, RoundError> {
    let len = session.spec.prompt.len() + base_len as usize;
    let context_len = service.description.context_len as usize;
    // The last draft token is not forwarded, and needs no place, unless the law after it is wanted.
    let last = usize::from(!asked.bonus_q);
    match (context_len + 1).saturating_sub(len) {
        0 => Err(RoundError::ContextFull { len, context_len }),
        free => Ok(asked.max_tokens.min((free + last - 1) as u32)),
    }
}
