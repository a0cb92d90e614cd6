//! The rounds of one `Draft` stream.

use std::sync::Arc;
use std::time::Instant;

use net::MAX_MESSAGE_BYTES;
use ops::trace::names;
use peer::progress::{self, Reporter};
use peer::{
    Granted, Peer, Replies, Role, RoundError, Said, StreamRequest as Request, Turn, traced,
};
use speculation::drafting::Drafting;
use speculation::max_gram::MaxGram;
use speculation::proposal::{BadProposal, ProposalForm};
use tokio::sync::mpsc;
use tonic::Status;
use tonic::service::Routes;
use v1::draft_reply::Reply;
use v1::draft_request;
use wire::failure::Failure;
use wire::v1::drafter_server::DrafterServer;
use wire::{round, v1};

use crate::block::{Draft, Drafted};
use crate::config::ROLE;
use crate::draft_params::DraftParams;
use crate::proposers::{DraftSession, Drafter, Proposers};
use crate::service::Service;
use crate::task::DraftTask;
use crate::{cascade, grams};

impl Role for Proposers {
    const NAME: &'static str = ROLE;
    const SERVICE: &'static str = "outrider.v1.Drafter";
    const MODEL: &'static str = "draft model";
    const ANSWER: &'static str = "draft";

    type Request = v1::DraftRequest;
    type Reply = v1::DraftReply;
    type Round = v1::DraftRound;
    type Answer = Vec<v1::DraftBlock>;
    /// Max-Gram's index of prompt and output; none before it is first used.
    type Memory = Option<MaxGram>;

    fn read(request: v1::DraftRequest) -> Option<Request<v1::DraftRound>> {
        use draft_request::Request as Wire;
        Some(match request.request? {
            Wire::Open(open) => Request::Open(open.into()),
            Wire::Round(round) => Request::Round(round),
            Wire::Close(_) => Request::Close,
        })
    }

    fn write(said: Said) -> v1::DraftReply {
        reply(match said {
            Said::Opened(opened) => Reply::Opened(opened),
            Said::NeedFrom(need) => Reply::NeedFrom(need),
            Said::Progress(progress) => Reply::Progress(progress),
            Said::Closed(closed) => Reply::Closed(closed),
            Said::Draining(draining) => Reply::Draining(draining),
        })
    }

    /// Answers one round: from the blocks kept, or by drafting.
    async fn round(
        drafter: &Drafter,
        session: &mut DraftSession,
        wire: v1::DraftRound,
        _granted: Granted,
        epoch: u32,
        replies: &Replies<v1::DraftReply>,
    ) -> Result<(), Status> {
        let began = Instant::now();
        let wanted = DraftParams::from_wire(drafter, &session.spec, &wire)?;
        let round = round::from_wire(wire.header, epoch, session.spec.vocab_size)?;
        let trace_context = &round.trace_context;
        let mut span = drafter.traces.round(names::DRAFT, trace_context, began);
        if let Some(blocks) = session.answers.find(&round.key) {
            span.set(names::REPLAYED, true);
            for block in blocks.clone() {
                let header = Some(round.reply_header(true));
                replies
                    .send(reply(Reply::Block(v1::DraftBlock { header, ..block })))
                    .await?;
            }
            return Ok(());
        }
        let turn = Turn {
            round,
            began,
            replies,
        };
        let (key, form) = (turn.round.key, session.spec.proposal_form);
        let requested = async { wanted.within_context(drafter, session, key.base_len) };
        let requested = traced::<Proposers, _>(&mut span, requested).await?;
        if !turn.advance(session).await? {
            return Ok(());
        }
        let (tree, sessions) = (requested.tree, drafter.sessions().attached);
        let mut draft = Draft::new(&turn, sessions, form, tree, wire.tokens_per_block);
        let (reporter, mut progressing) = progress::channel();
        // Boxed, for a cascade's state is large and would be moved from future to future.
        let drafting = Box::pin(propose(
            drafter, session, requested, &mut draft, replies, reporter,
        ));
        let drafting = async { turn.wait(&mut progressing, drafting).await? };
        let drafted = traced::<Proposers, _>(&mut span, drafting).await;
        span.add_breakdown(&draft.share(key.round == 1), began, None);
        drafted?;
        // Max-Gram has no engine to wait for.
        if draft.cost.step.batch_sequences > 0 {
            draft.cost.count(&drafter.metrics);
        }
        // Whole rows are large; a repetition drafts the same tokens again.
        if !matches!(form, ProposalForm::Dense { .. }) {
            session.answers.keep(key, draft.into_blocks());
        }
        Ok(())
    }

    /// It was made by another model of the cascade.
    fn bad_proposal(bad: &BadProposal) -> Status {
        Failure::Internal.status(format!("cascade: {bad}"))
    }

    fn routes(peer: Arc<Peer<Self>>) -> Routes {
        let service = DrafterServer::new(Service(peer));
        Routes::new(
            service
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES),
        )
    }
}

fn reply(reply: Reply) -> v1::DraftReply {
    v1::DraftReply { reply: Some(reply) }
}

/// Drafts a block, and sends it as it comes.
async fn propose(
    drafter: &Drafter,
    session: &mut DraftSession,
    requested: DraftParams,
    draft: &mut Draft,
    replies: &Replies<v1::DraftReply>,
    reporter: Reporter,
) -> Result<(), RoundError> {
    let proposers = &drafter.role;
    match requested.drafting {
        Drafting::Model => {
            let mut reports = draft_alone(proposers, session, requested, reporter)?;
            while let Some(report) = reports.recv().await {
                if pass_on(draft, report?, replies).await? {
                    return Ok(());
                }
            }
            return Err(RoundError::Dropped);
        }
        Drafting::MaxGram => {
            for report in grams::draft(session, &proposers.bigram, &requested).await {
                pass_on(draft, report, replies).await?;
            }
        }
        Drafting::Cascade => {
            for report in cascade::draft(proposers, session, &requested, reporter).await? {
                pass_on(draft, report, replies).await?;
            }
        }
    }
    Ok(())
}

/// Submits a block to the draft model's engine; what it reports.
fn draft_alone(
    proposers: &Proposers,
    session: &DraftSession,
    requested: DraftParams,
    reporter: Reporter,
) -> Result<mpsc::Receiver<Result<Drafted, RoundError>>, RoundError> {
    let label = session.spec.verification.label;
    let label = label.filter(|_| requested.stop_rule.needs_head());
    let head = label.and_then(|label| proposers.head(label));
    let (task, reports) = DraftTask::new(session, requested, head.cloned(), reporter);
    session.submit(task)?;
    Ok(reports)
}

/// Adds what was reported to the block, and sends a message if one is full or the last. Whether the block
/// has ended.
async fn pass_on(
    draft: &mut Draft,
    drafted: Drafted,
    replies: &Replies<v1::DraftReply>,
) -> Result<bool, Status> {
    draft.cost.add(&drafted.cost);
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
