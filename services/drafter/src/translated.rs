//! Drafting for a target of another vocabulary: the draft model reads the target's text in tokens of its own, and what it
//! writes is proposed in the target's, one branch, without probabilities.

mod task;

use std::sync::Arc;

use peer::progress::Reporter;
use peer::{Commits, Lent, LentSlot, RoundContext, RoundError};
use speculation::TokenId;
use speculation::drafting::StopRule;
use speculation::proposal::{ProposalForm, ProposalProbs};
use text::Translator;
use wire::open::ProposalFields;
use wire::status::BadField;
use wire::v1;
use wire::v1::StopCause;

use crate::ahead::{self, Sender};
use crate::block::{BlockEnd, BlockWriter, DraftStep};
use crate::draft_params::DraftParams;
use crate::proposers::{DraftSession, Drafter};
use crate::translations::TranslatedDrafts;
use task::{Drafted, Limits, Report, Reports, TranslatedTask};

/// Tokens of a prompt that are translated while other work on the thread waits.
const AT_ONCE: usize = 1 << 10;

/// Returns what is drafted past the output so far, to be lent to a task.
async fn drafts_of(
    session: &mut DraftSession,
    translator: &Arc<Translator>,
) -> Lent<Option<TranslatedDrafts>> {
    let slot = Arc::clone(&session.memory.translated);
    let held = slot.lock().take().flatten();
    let output = session.committed.tokens();
    // An output that was taken back is rare, and begins anew.
    let held = held.filter(|held| held.output_len() <= output.len());
    let mut drafts = match held {
        Some(held) => held,
        None => begun(Arc::clone(translator), session.spec.lead().to_vec()).await,
    };
    let followed = drafts.output_len();
    drafts.follow(&output[followed..]);
    Lent::new(Some(drafts), &slot)
}

async fn begun(translator: Arc<Translator>, lead: Vec<TokenId>) -> TranslatedDrafts {
    if lead.len() <= AT_ONCE {
        return TranslatedDrafts::after(translator, &lead);
    }
    let begins = {
        let translator = Arc::clone(&translator);
        tokio::task::spawn_blocking(move || TranslatedDrafts::after(translator, &lead))
    };
    // It panics on nothing that is known; then the text is unknown, and guesses are bad.
    let begun = begins.await;
    begun.unwrap_or_else(|_| TranslatedDrafts::after(translator, &[]))
}

/// Drafts a block.
pub(crate) async fn block(
    drafter: &Drafter,
    session: &mut DraftSession,
    translator: &Arc<Translator>,
    requested: &DraftParams,
    reporter: Reporter,
    draft: &mut BlockWriter,
) -> Result<(), RoundError> {
    let spec = Arc::clone(&session.spec);
    if spec.proposal_form.sends_distributions() || spec.proposal_fields != ProposalFields::default()
    {
        let problem = "the draft model reads another vocabulary than the target's";
        return Err(BadField::new("proposal_form", problem).into());
    }
    let drafts = drafts_of(session, translator).await;
    let most = requested.max_tokens as usize;
    let limits = Limits {
        // What follows it tells whether a word has ended.
        tokens: most + 1,
        stop_rule: requested.stop_rule,
        longest: longest(drafter),
    };
    let commits = Commits::default();
    let mut done = Drafted::default();
    if let Some(mut reports) = submit(drafter, session, drafts, commits, limits, Some(reporter))? {
        while let Some(report) = reports.recv().await {
            if let Report::Done(drafted) = report? {
                done = drafted;
            }
        }
    }
    let tokens = with_drafts(&session.memory.translated, |drafts| {
        drafts.in_target().to_vec()
    });
    let mut tokens = tokens.unwrap_or_default();
    let ends = &spec.sampling.end_tokens;
    let ended = tokens[..most.min(tokens.len())]
        .iter()
        .position(|token| ends.contains(token));
    tokens.truncate(ended.map_or(most, |at| at + 1));
    let cause = match () {
        () if ended.is_some() => StopCause::EndToken,
        () if tokens.len() < most => StopCause::Policy,
        () => requested.cause(),
    };
    let probs = if spec.proposal_form == ProposalForm::Point {
        ProposalProbs::Point
    } else {
        ProposalProbs::None
    };
    for token in tokens {
        draft.add(DraftStep::to(token, probs.clone(), Vec::new()));
    }
    draft.add(DraftStep {
        drawn: None,
        ending: Some(BlockEnd {
            cause,
            bonus: None,
            forwards: vec![done.forwards],
        }),
        cost: done.cost,
    });
    Ok(())
}

/// Drafts ahead, and sends what is drafted, until the session is closed.
pub(crate) async fn ahead(
    drafter: &Drafter,
    session: &mut DraftSession,
    translator: &Arc<Translator>,
    wire: v1::AheadRound,
    context: &RoundContext<'_>,
) -> Result<(), RoundError> {
    let levels = ahead::levels(wire)?;
    ahead::check_method(&session.spec)?;
    if !session.advance(context).await? {
        return Ok(());
    }
    let mut drafts = drafts_of(session, translator).await;
    let slot = Arc::clone(&session.memory.translated);
    let limits = Limits {
        tokens: levels as usize,
        stop_rule: StopRule::default(),
        longest: longest(drafter),
    };
    let mut sender = Sender::new(context);
    loop {
        let commits = context.commits.clone();
        if let Some(mut reports) = submit(drafter, session, drafts, commits, limits, None)? {
            while let Some(report) = reports.recv().await {
                if let Report::Proposed(proposed) = report? {
                    sender.send(proposed).await?;
                }
            }
        }
        // What found no place while the task ran.
        let left = with_drafts(&slot, |drafts| drafts.propose(limits.tokens));
        if let Some(proposed) = left.flatten() {
            sender.send(proposed).await?;
        }
        context.commits.came().await;
        drafts = Lent::new(slot.lock().take().flatten(), &slot);
    }
}

/// Returns what `read` returns of the drafts in `slot`; none while a task has them.
fn with_drafts<T>(
    slot: &LentSlot<Option<TranslatedDrafts>>,
    read: impl FnOnce(&mut TranslatedDrafts) -> T,
) -> Option<T> {
    slot.lock().as_mut()?.as_mut().map(read)
}

/// Submits a task that goes on with `drafts`; what it reports, if there is anything to draft.
fn submit(
    drafter: &Drafter,
    session: &DraftSession,
    drafts: Lent<Option<TranslatedDrafts>>,
    commits: Commits,
    limits: Limits,
    progress: Option<Reporter>,
) -> Result<Option<Reports>, RoundError> {
    let Some(draft) = &drafter.role.translations else {
        return Ok(None);
    };
    let beside = (commits, progress);
    let metrics = &drafter.metrics;
    let task = TranslatedTask::new(&session.spec, drafts, beside, limits, draft, metrics)?;
    let Some((task, reports)) = task else {
        return Ok(None);
    };
    session.submit(task)?;
    Ok(Some(reports))
}

fn longest(drafter: &Drafter) -> usize {
    let engine = drafter.engines.first();
    engine.map_or(0, model::engine::EngineHandle::longest_sequence)
}
