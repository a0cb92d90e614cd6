//! The rounds of one `Verify` stream.

use std::time::{Duration, Instant};

use server::health::Health;
use server::lease::Leases;
use server::stream::{Next, Opening, Replies, SessionService};
use server::trace::{self, names};
use speculation::TokenId;
use speculation::draft_tree::DraftTree;
use tokio::sync::mpsc;
use tonic::Status;
use v1::verify_reply::Reply;
use v1::verify_request::Request;
use wire::open::{self, SessionSpec};
use wire::round::Round;
use wire::status::{BadField, overloaded};
use wire::verdict::PathVerdict;
use wire::{drafting, proposal, round, v1, verdict};

use crate::cost::Cost;
use crate::decode::{DecodeTask, Report};
use crate::error::RoundError;
use crate::score::ScoreTask;
use crate::service::Shared;
use crate::session::Session;
use crate::tree::{self, TreeTask};
use crate::verify::{Asked, VerifyTask};

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
                let answered = verify(self, session, replies, asked, epoch).await;
                self.metrics.round(&answered);
                answered.map(|()| Next::Request)
            }
            Some(Request::Decode(asked)) => {
                let answered = decode(self, session, replies, asked, epoch).await;
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

/// A block that is to be scored, and what is to come of it.
struct Block {
    drafts: DraftTree,
    asked: Asked,
    slices: Option<v1::SliceRequest>,
}

/// Answers one block: with the verdict kept, or by scoring it.
async fn verify(
    service: &Shared,
    session: &mut Session,
    replies: &Replies<v1::VerifyReply>,
    mut wire: v1::VerifyRound,
    epoch: u32,
) -> Result<(), Status> {
    let began = Instant::now();
    let (header, slices) = (wire.header.take(), wire.slices);
    let (drafts, asked) = asked(service, session, wire)?;
    let round = round::from_wire(header, epoch, session.spec.vocab_size)?;
    let mut span = service.traces.round(names::VERIFY, &round.trace_context);
    if let Some(kept) = session.replies.find(&round.key) {
        span.set(names::REPLAYED, true);
        let header = Some(round.reply_header(true));
        let again = v1::Verdict {
            header,
            ..kept.clone()
        };
        return replies.send(reply(Reply::Verdict(again))).await;
    }
    let scored = drafts.len() + 1;
    let block = Block {
        drafts,
        asked,
        slices,
    };
    let answering = answer(service, session, replies, &round, block, began);
    let answered = trace::within(span.context(), answering).await;
    match &answered {
        Ok(Some(cost)) => cost.trace(&mut span, scored, began),
        Ok(None) => {}
        Err(status) => span.fail(format!("{:?}", status.code())),
    }
    answered.map(|_| ())
}

/// Scores a block, and what that cost; none if the coordinator was told that too little is held.
async fn answer(
    service: &Shared,
    session: &mut Session,
    replies: &Replies<v1::VerifyReply>,
    round: &Round,
    block: Block,
    began: Instant,
) -> Result<Option<Cost>, Status> {
    let Block {
        drafts,
        asked,
        slices,
    } = block;
    // A node stands at its depth, so what a tree needs of the context is its longest path.
    let levels = drafts.levels() as usize;
    check_room(service, session, round.key.base_len, levels)?;
    if !advance(session, replies, round).await? {
        return Ok(None);
    }
    let late = |_| RoundError::Late(round.timeout);
    if session.spec.accept_at_coordinator {
        let wanted = slices.unwrap_or_default();
        let scoring = score(session, round, drafts.tokens(), wanted, began);
        let (slices, cost) = tokio::time::timeout(round.timeout, scoring)
            .await
            .map_err(late)??;
        cost.count(&service.metrics);
        // Not kept for a retry: rows are large, and scoring again gives the same.
        for slice in slices {
            replies.send(reply(Reply::Slice(slice))).await?;
        }
        return Ok(Some(cost));
    }
    let deciding = async {
        if drafts.is_chain() {
            decide(session, round, asked, began).await
        } else {
            decide_tree(session, round, drafts, began).await
        }
    };
    let (verdict, cost) = tokio::time::timeout(round.timeout, deciding)
        .await
        .map_err(late)??;
    cost.count(&service.metrics);
    session.replies.keep(round.key, verdict.clone());
    replies.send(reply(Reply::Verdict(verdict))).await?;
    Ok(Some(cost))
}

/// Checks what a round asks to be decided. Where the coordinator decides, and of a tree, only the draft
/// tokens.
fn asked(
    service: &Shared,
    session: &Session,
    wire: v1::VerifyRound,
) -> Result<(DraftTree, Asked), BadField> {
    let spec = &session.spec;
    let limits = service.description.limits.unwrap_or_default();
    let limit = limits.max_draft_tokens as usize;
    let drafts = drafting::tree_from_wire(wire.drafts, limit, spec.vocab_size)?;
    if !drafts.is_chain() {
        tree::check(spec)?;
        let told = [
            ("proposals", !wire.proposals.is_empty()),
            ("bonus_q", wire.bonus_q.is_some()),
            ("layers", !wire.layers.is_empty()),
            ("horizon", wire.horizon.is_some()),
        ];
        if let Some((field, _)) = told.into_iter().find(|(_, is_told)| *is_told) {
            return Err(BadField::new(field, "does not go with a tree"));
        }
    }
    if spec.accept_at_coordinator {
        return Ok((drafts, Asked::default()));
    }
    if wire.slices.is_some() {
        let problem = "come only where the coordinator decides";
        return Err(BadField::new("slices", problem));
    }
    if !drafts.is_chain() {
        return Ok((drafts, Asked::default()));
    }
    let (form, telling) = (spec.proposal_form, spec.telling);
    let bonus = wire
        .bonus_q
        .map(|bonus| proposal::one_from_wire(bonus, form, telling));
    let asked = Asked {
        proposals: proposal::from_wire(wire.proposals, drafts.len(), form, telling)?,
        bonus: bonus.transpose()?,
        horizon: horizon(wire.horizon, drafts.len(), limit)?,
        layers: verdict::layers_from_wire(&wire.layers)?,
        drafts: drafts.tokens().to_vec(),
    };
    Ok((drafts, asked))
}

/// Draft tokens there would be if no end token had cut the block.
fn horizon(asked: Option<u32>, drafts: usize, limit: usize) -> Result<u32, BadField> {
    match asked {
        None => Ok(drafts as u32),
        Some(horizon) if (drafts..=limit).contains(&(horizon as usize)) => Ok(horizon),
        Some(horizon) => {
            let problem = format!("{horizon} is out of range, expected {drafts} to {limit}");
            Err(BadField::new("horizon", problem))
        }
    }
}

async fn decide(
    session: &Session,
    round: &Round,
    asked: Asked,
    began: Instant,
) -> Result<(v1::Verdict, Cost), RoundError> {
    let (task, answer) = VerifyTask::new(session, asked);
    session.slot.try_submit(task)?;
    let decided = answer.await.map_err(|_| RoundError::Dropped)??;
    let verdict = verdict::to_wire(
        PathVerdict::of_chain(decided.verdict),
        decided.deferral,
        round.reply_header(false),
        decided.cost.timing(began),
    );
    Ok((verdict, decided.cost))
}

async fn decide_tree(
    session: &Session,
    round: &Round,
    drafts: DraftTree,
    began: Instant,
) -> Result<(v1::Verdict, Cost), RoundError> {
    let (task, answer) = TreeTask::new(session, drafts);
    session.slot.try_submit(task)?;
    let (verdict, cost) = answer.await.map_err(|_| RoundError::Dropped)??;
    let (header, timing) = (round.reply_header(false), cost.timing(began));
    let verdict = verdict::to_wire(verdict, Vec::new(), header, timing);
    Ok((verdict, cost))
}

async fn score(
    session: &Session,
    round: &Round,
    drafts: &[TokenId],
    wanted: v1::SliceRequest,
    began: Instant,
) -> Result<(Vec<v1::Slice>, Cost), RoundError> {
    let (task, answer) = ScoreTask::new(session, drafts, wanted);
    session.slot.try_submit(task)?;
    let (mut slices, cost) = answer.await.map_err(|_| RoundError::Dropped)??;
    for slice in &mut slices {
        slice.header = Some(round.reply_header(false));
    }
    if let Some(last) = slices.last_mut() {
        last.timing = Some(cost.timing(began));
    }
    Ok((slices, cost))
}

/// Decodes alone and streams the tokens as they come.
async fn decode(
    service: &Shared,
    session: &mut Session,
    replies: &Replies<v1::VerifyReply>,
    asked: v1::DecodeRound,
    epoch: u32,
) -> Result<(), Status> {
    if asked.max_tokens == 0 {
        return Err(BadField::new("max_tokens", "0 is out of range, expected at least 1").into());
    }
    let began = Instant::now();
    let round = round::from_wire(asked.header, epoch, session.spec.vocab_size)?;
    let mut span = service.traces.round(names::DECODE, &round.trace_context);
    let mut total = Cost::default();
    let mut decoded = 0;
    let decoding = async {
        // The last token is never forwarded, so it needs no place.
        let more = asked.max_tokens as usize - 1;
        check_room(service, session, round.key.base_len, more)?;
        if !advance(session, replies, &round).await? {
            return Ok(());
        }
        let (task, mut reports) = DecodeTask::new(session, asked.max_tokens);
        session.slot.try_submit(task).map_err(RoundError::from)?;
        while decoded < asked.max_tokens {
            let (message, cost) = next_decoded(session, &round, &mut reports, decoded).await?;
            decoded += 1;
            if decoded == 1 {
                cost.count(&service.metrics);
            } else {
                cost.count_forward(&service.metrics);
            }
            total.add(&cost);
            let last = message.last || decoded == asked.max_tokens;
            let message = v1::Decoded { last, ..message };
            replies.send(reply(Reply::Decoded(message))).await?;
            if last {
                break;
            }
        }
        Ok(())
    };
    let ended = trace::within(span.context(), decoding).await;
    total.trace(&mut span, decoded as usize + 1, began);
    span.set(names::DECODED_TOKENS, i64::from(decoded));
    if let Err(status) = &ended {
        let status: &Status = status;
        span.fail(format!("{:?}", status.code()));
    }
    ended
}

/// The next token decoded, `index` of them after the first; the last one if it ends the output.
async fn next_decoded(
    session: &Session,
    round: &Round,
    reports: &mut mpsc::Receiver<Report>,
    index: u32,
) -> Result<(v1::Decoded, Cost), RoundError> {
    let began = Instant::now();
    let report = tokio::time::timeout(round.timeout, reports.recv()).await;
    let report = report.map_err(|_| RoundError::Late(round.timeout))?;
    let (token, cost) = report.ok_or(RoundError::Dropped)??;
    let mut header = round.reply_header(false);
    header.base_len += index;
    let decoded = v1::Decoded {
        header: Some(header),
        token_ids: vec![token],
        logprobs: Vec::new(),
        last: session.spec.sampling.end_tokens.contains(&token),
        timing: Some(cost.timing(began)),
    };
    Ok((decoded, cost))
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
