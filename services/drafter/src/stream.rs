//! The rounds of one `Draft` stream.

use std::time::{Duration, Instant};

use server::health::Health;
use server::lease::Leases;
use server::progress::{self, Progress, Reporter};
use server::stream::{Next, Opening, Replies, SessionService};
use server::trace::{self, names};
use speculation::drafting::{AcceptanceLabel, Drafting, StopRule};
use speculation::proposal::ProposalForm;
use tokio::sync::mpsc;
use tonic::Status;
use v1::draft_reply::Reply;
use v1::draft_request::Request;
use wire::open::{self, SessionSpec};
use wire::status::{BadField, overloaded};
use wire::{round, v1};

use crate::asked::Asked;
use crate::block::Draft;
use crate::error::RoundError;
use crate::report::Drafted;
use crate::session::Session;
use crate::shared::Shared;
use crate::task::DraftTask;
use crate::{cascade, grams};

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
            _ => {
                let slots = self.proposers.new_slots(&spec.tenant);
                Session::new(spec, slots)
            }
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
                let answered = draft(self, session, replies, asked, epoch).await;
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

    fn draining(&self) -> v1::DraftReply {
        reply(Reply::Draining(v1::Draining {}))
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
    let wanted = Asked::from_wire(service, &session.spec, &wire)?;
    let round = round::from_wire(wire.header, epoch, session.spec.vocab_size)?;
    let mut span = service
        .traces
        .round(names::DRAFT, &round.trace_context, began);
    if let Some(blocks) = session.replies.find(&round.key) {
        span.set(names::REPLAYED, true);
        for block in blocks.clone() {
            let header = Some(round.reply_header(true));
            replies
                .send(reply(Reply::Block(v1::DraftBlock { header, ..block })))
                .await?;
        }
        return Ok(());
    }
    let asked = match wanted.within_context(service, session, round.key.base_len) {
        Ok(asked) => asked,
        Err(error) => {
            let status = Status::from(error);
            span.fail(format!("{:?}", status.code()));
            return Err(status);
        }
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
    let mut draft = Draft::new(
        &round,
        session.spec.proposal_form,
        asked.tree,
        wire.tokens_per_block,
        began,
    );
    let (reporter, mut progressing) = progress::channel();
    // Boxed, for a cascade's state is large and would be moved from future to future.
    let drafting = Box::pin(propose(
        service, session, asked, &mut draft, replies, reporter,
    ));
    let offer = |Progress { done, total }| {
        replies.offer(reply(Reply::Progress(round.progress(done, total))));
    };
    let drafting = async {
        let drafted = progressing.wait(round.timeout, drafting, offer).await;
        drafted.map_err(RoundError::from)?
    };
    let drafted = trace::within(span.context(), drafting).await;
    span.add_share(&draft.share(round.key.round == 1), began, None);
    if let Err(status) = drafted {
        span.fail(format!("{:?}", status.code()));
        return Err(status);
    }
    count(service, &draft.timing());
    // Whole rows are large; a repetition drafts the same tokens again.
    if !matches!(session.spec.proposal_form, ProposalForm::Dense { .. }) {
        session.replies.keep(round.key, draft.into_blocks());
    }
    Ok(())
}

/// Drafts a block, and sends it as it comes.
async fn propose(
    service: &Shared,
    session: &mut Session,
    asked: Asked,
    draft: &mut Draft,
    replies: &Replies<v1::DraftReply>,
    reporter: Reporter,
) -> Result<(), Status> {
    match asked.drafting {
        Drafting::Model => {
            let mut reports = draft_alone(service, session, asked, reporter)?;
            while let Some(report) = reports.recv().await {
                if pass_on(draft, report?, replies).await? {
                    return Ok(());
                }
            }
            return Err(RoundError::Dropped.into());
        }
        Drafting::MaxGram => {
            let bigram = service.proposers.bigram().ok_or(RoundError::Dropped)?;
            let models = service.proposers.models();
            for report in grams::draft(session, bigram, &asked, models).await {
                pass_on(draft, report, replies).await?;
            }
        }
        Drafting::Cascade => {
            for report in cascade::draft(&service.proposers, session, &asked, reporter).await? {
                pass_on(draft, report, replies).await?;
            }
        }
    }
    Ok(())
}

/// Counts what a block cost. Max-Gram has no engine to wait for.
fn count(service: &Shared, timing: &v1::Timing) {
    if timing.batch == 0 {
        return;
    }
    let micros = |us: u32| Duration::from_micros(us.into());
    let (queue, forward) = (micros(timing.queue_us), micros(timing.forward_us));
    let sequences = timing.batch as usize;
    service.metrics.computed(queue, forward, sequences);
}

/// Submits a block to the draft model's engine; what it reports.
fn draft_alone(
    service: &Shared,
    session: &Session,
    asked: Asked,
    reporter: Reporter,
) -> Result<mpsc::Receiver<Result<Drafted, RoundError>>, RoundError> {
    let head = match asked.stop_rule {
        StopRule::Learned { .. } => {
            let label = AcceptanceLabel::of(session.spec.verification);
            label.and_then(|label| service.proposers.head(label))
        }
        _ => None,
    };
    let output = session.committed.tokens();
    let models = service.proposers.models();
    let (task, reports) = DraftTask::new(
        &session.spec,
        output,
        asked,
        head.cloned(),
        models,
        reporter,
    );
    session.slots[0].try_submit(task)?;
    Ok(reports)
}

/// Adds what was reported to the block, and sends a message if one is full or the last. Whether the block
/// has ended.
async fn pass_on(
    draft: &mut Draft,
    drafted: Drafted,
    replies: &Replies<v1::DraftReply>,
) -> Result<bool, Status> {
    draft.count(drafted.figures);
    if let Some(drawn) = drafted.drawn {
        draft.add(drawn);
    }
    let cause = drafted.ending.as_ref().map(|ending| ending.cause);
    if let Some(ending) = drafted.ending {
        draft.end(ending);
    }
    if let Some(block) = draft.take_block(cause) {
        replies.send(reply(Reply::Block(block))).await?;
    }
    Ok(cause.is_some())
}
