//! The rounds of one `Verify` stream.

mod block;
mod decode;

use std::time::Duration;

use server::health::Health;
use server::lease::Leases;
use server::progress::Progress;
use server::stream::{Next, Opening, Replies, SessionService};
use tonic::Status;
use v1::verify_reply::Reply;
use v1::verify_request::Request;
use wire::open::{self, SessionSpec};
use wire::round::Round;
use wire::status::{BadField, overloaded};
use wire::v1;

use crate::error::RoundError;
use crate::session::Session;
use crate::shared::Shared;

impl SessionService for Shared {
    type Request = v1::VerifyRequest;
    type Reply = v1::VerifyReply;
    type Spec = SessionSpec;
    type Session = Session;

    fn sessions(&self) -> &Leases<Session> {
        &self.sessions
    }

    fn open(&self, first: v1::VerifyRequest) -> Result<Opening<SessionSpec>, Status> {
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
            _ => {
                let slot = self.engine.new_slot_of(&spec.tenant);
                Session::new(spec, slot)
            }
        }
    }

    fn opened(&self, session: &Session, epoch: u32) -> v1::VerifyReply {
        reply(Reply::Opened(v1::Opened {
            epoch,
            held_len: session.committed.tokens().len() as u32,
            lease_ms: session.spec.lease_ms,
        }))
    }

    async fn round(
        &self,
        session: &mut Session,
        request: v1::VerifyRequest,
        epoch: u32,
        replies: &Replies<v1::VerifyReply>,
    ) -> Result<Next, Status> {
        match request.request {
            Some(Request::Round(asked)) => {
                let answered = block::verify(self, session, replies, asked, epoch).await;
                self.metrics.round(&answered);
                answered.map(|()| Next::Request)
            }
            Some(Request::Decode(asked)) => {
                let answered = decode::decode(self, session, replies, asked, epoch).await;
                self.metrics.round(&answered);
                answered.map(|()| Next::Request)
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

    fn health(&self) -> &Health {
        &self.health
    }

    fn draining(&self) -> v1::VerifyReply {
        reply(Reply::Draining(v1::Draining {}))
    }

    fn overloaded(&self, what: String, retry_after: Duration) -> Status {
        overloaded(what, retry_after)
    }
}

fn reply(reply: Reply) -> v1::VerifyReply {
    v1::VerifyReply { reply: Some(reply) }
}

/// Tells the coordinator how far `round` is, as far as it reads.
fn offer(round: &Round, replies: &Replies<v1::VerifyReply>) -> impl Fn(Progress) {
    move |Progress { done, total }| {
        replies.offer(reply(Reply::Progress(round.progress(done, total))));
    }
}

/// Brings the session's output to where the round stands; false if the coordinator was told that
/// too little is held.
async fn advance(
    session: &mut Session,
    replies: &Replies<v1::VerifyReply>,
    round: &Round,
) -> Result<bool, Status> {
    let Err(need) = session
        .committed
        .replace_from(round.from_len, &round.committed)
    else {
        return Ok(true);
    };
    let header = Some(round.reply_header(false));
    let need = v1::NeedFrom {
        header,
        from: need.from,
    };
    replies.send(reply(Reply::NeedFrom(need))).await?;
    Ok(false)
}

/// Checks that the context has room for `more` tokens after `base_len` output tokens, before any of
/// them is stored.
fn check_room(
    service: &Shared,
    session: &Session,
    base_len: u32,
    more: usize,
) -> Result<(), RoundError> {
    let len = session.spec.lead().len() + base_len as usize + more;
    let context_len = service.description.context_len as usize;
    if len > context_len {
        return Err(RoundError::ContextFull { len, context_len });
    }
    Ok(())
}
