//! The rounds of one `Draft` stream.

use std::sync::Arc;

use grammar::Grammars;
use net::MAX_MESSAGE_BYTES;
use ops::trace::Span;
use peer::progress::{self, Reporter};
use peer::{PeerServer, Role, RoundContext, RoundError};
use speculation::drafting::Drafting;
use speculation::max_gram::Bigram;
use speculation::proposal::{BadProposal, ProposalForm};
use tokio::sync::mpsc;
use tonic::Status;
use tonic::service::Routes;
use wire::failure::Failure;
use wire::open::SessionSpec;
use wire::status::BadField;
use wire::v1;
use wire::v1::drafter_server::DrafterServer;
use wire::v1::round_answer::Part;
use wire::v1::round_request::Round;

use crate::block::{BlockWriter, DraftStep};
use crate::config::ROLE;
use crate::draft_params::DraftParams;
use crate::proposers::{DraftMemory, DraftSession, Drafter, Proposers};
use crate::service::DrafterService;
use crate::task::DraftTask;
use crate::{ahead, cascade, grams, proposers, translated};

impl Role for Proposers {
    const NAME: &'static str = ROLE;
    const SERVICE: &'static str = "outrider.v1.Drafter";
    const MODEL: &'static str = "draft model";
    const ANSWER: &'static str = "draft";

    type Memory = DraftMemory;

    fn grammars(&self, session: &SessionSpec) -> Option<&Arc<Grammars>> {
        let own = self.translations.as_ref();
        let is_other = own.is_some_and(|own| own.find(&session.vocab_fingerprint).is_some());
        self.grammars.as_ref().filter(|_| !is_other)
    }

    fn described(drafter: &Drafter, vocab_fingerprint: &[u8]) -> Option<Arc<v1::PeerDescription>> {
        let known = drafter
            .role
            .translations
            .as_ref()?
            .find(vocab_fingerprint)?;
        Some(Arc::clone(&known.description))
    }

    async fn round(
        drafter: &Drafter,
        session: &mut DraftSession,
        round: Round,
        context: RoundContext<'_>,
        span: &mut Span,
    ) -> Result<(), RoundError> {
        let wire = match round {
            Round::Draft(wire) => wire,
            Round::Ahead(wire) => {
                return match proposers::translator(drafter, &session.spec)? {
                    Some(translator) => {
                        translated::ahead(drafter, session, &translator, wire, &context).await
                    }
                    None => ahead::draft(drafter, session, wire, &context).await,
                };
            }
            Round::Verify(_) | Round::Decode(_) | Round::Score(_) => {
                return Err(BadField::new("round", "a drafter only drafts").into());
            }
        };
        let wanted = DraftParams::from_wire(drafter, &session.spec, &wire)?;
        let (key, form) = (context.round.key, session.spec.proposal_form);
        let requested = wanted.within_context(drafter, session, key.base_len)?;
        if !session.advance(&context).await? {
            return Ok(());
        }
        let (tree, sessions) = (requested.tree, drafter.sessions().attached);
        let mut draft =
            BlockWriter::new(context.began, sessions, form, tree, wire.tokens_per_block);
        let (reporter, mut progressing) = progress::channel();
        // Boxed, for a cascade's state is large and would be moved from future to future.
        let drafting = Box::pin(propose(
            drafter, session, requested, &mut draft, &context, reporter,
        ));
        let drafted = context.wait(&mut progressing, drafting).await;
        span.add_breakdown(&draft.share(key.round == 1), context.began, None);
        drafted??;
        // Max-Gram has no engine to wait for.
        if draft.cost.step.batch_sequences > 0 {
            draft.cost.count(&drafter.metrics);
        }
        // Whole rows are large; a repetition drafts the same tokens again.
        if !matches!(form, ProposalForm::Dense { .. }) {
            session.answers.keep(key, draft.into_parts());
        }
        Ok(())
    }

    /// It was made by another model of the cascade.
    fn bad_proposal(bad: &BadProposal) -> Status {
        Failure::Internal.status(format!("cascade: {bad}"))
    }

    fn routes(peer: Arc<PeerServer<Self>>) -> Routes {
        let service = DrafterServer::new(DrafterService(peer));
        Routes::new(
            service
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES),
        )
    }
}

/// Drafts a block, and sends it as it comes.
async fn propose(
    drafter: &Drafter,
    session: &mut DraftSession,
    requested: DraftParams,
    draft: &mut BlockWriter,
    context: &RoundContext<'_>,
    reporter: Reporter,
) -> Result<(), RoundError> {
    let proposers = &drafter.role;
    let translator = proposers::translator(drafter, &session.spec)?;
    match (requested.drafting, translator) {
        (Drafting::Model, Some(translator)) => {
            translated::block(drafter, session, &translator, &requested, reporter, draft).await?;
            if let Some(block) = draft.take_block() {
                context.answer(Part::Block(block)).await?;
            }
        }
        (Drafting::MaxGram, Some(_)) => {
            // The table is of the draft model's vocabulary.
            for report in grams::draft(session, &Bigram::default(), &requested).await {
                pass_on(draft, report, context).await?;
            }
        }
        (Drafting::Model, None) => {
            let mut reports = draft_alone(proposers, session, requested, reporter)?;
            while let Some(report) = reports.recv().await {
                if pass_on(draft, report?, context).await? {
                    return Ok(());
                }
            }
            return Err(RoundError::Dropped);
        }
        (Drafting::MaxGram, None) => {
            for report in grams::draft(session, &proposers.bigram, &requested).await {
                pass_on(draft, report, context).await?;
            }
        }
        (Drafting::Cascade, Some(_)) => {
            let problem = "a cascade reads the target's vocabulary alone";
            return Err(BadField::new("drafting", problem).into());
        }
        (Drafting::Cascade, None) => {
            for report in cascade::draft(proposers, session, &requested, reporter).await? {
                pass_on(draft, report, context).await?;
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
) -> Result<mpsc::Receiver<Result<DraftStep, RoundError>>, RoundError> {
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
    draft: &mut BlockWriter,
    step: DraftStep,
    context: &RoundContext<'_>,
) -> Result<bool, Status> {
    draft.add(step);
    if let Some(block) = draft.take_block() {
        context.answer(Part::Block(block)).await?;
    }
    Ok(draft.has_ended())
}
