//! Drafting one block on the engine thread: one token a forward.

use std::sync::Arc;

use model::engine::{EngineError, Progress, StepFigures, StepRows, Task};
use speculation::TokenId;
use speculation::chance::RoundChance;
use speculation::drafting::{self, DraftToken, StopRule};
use speculation::history::History;
use speculation::noise::InnerCall;
use speculation::pipeline::{LawError, Pipeline, Want};
use speculation::proposal::{Proposal, ProposalForm};
use speculation::real::Real;
use tokio::sync::mpsc;
use wire::open::SessionSpec;

use crate::error::RoundError;

/// What a task reports while it drafts.
#[derive(Debug)]
pub(crate) enum Drafted {
    /// The next token of the block.
    Token(DraftToken, StepFigures),
    /// The block ends before the position whose law is told here, if it was asked for.
    Ended {
        /// What is told of the position after the block.
        bonus: Option<Proposal>,
        /// Whether the stop rule ended the block.
        by_rule: bool,
        /// Where the time went.
        figures: StepFigures,
    },
    /// The block could not be drafted to its end.
    Failed(RoundError),
}

/// What is asked of a drafter in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Asked {
    /// Most tokens.
    pub(crate) max_tokens: u32,
    /// Whether the law at the position after the block is wanted.
    pub(crate) bonus_q: bool,
    /// When to stop before `max_tokens`.
    pub(crate) stop_rule: StopRule,
}

/// Drafts one block.
pub(crate) struct DraftTask {
    spec: Arc<SessionSpec>,
    asked: Asked,
    pipeline: Pipeline,
    history: History,
    chance: RoundChance,
    want: Want,
    unscaled: Vec<f32>,
    /// Prompt, output and the tokens drafted so far.
    tokens: Vec<TokenId>,
    base_len: u32,
    drafted: u32,
    /// Has room for the whole block, so that sending never waits.
    reports: mpsc::Sender<Drafted>,
}

impl DraftTask {
    /// A task that drafts what is asked after `output`, with the channel on which it reports; the
    /// channel closes when the block is done.
    pub(crate) fn new(
        spec: &Arc<SessionSpec>,
        output: &[TokenId],
        asked: Asked,
    ) -> (Self, mpsc::Receiver<Drafted>) {
        let (reports, receiver) = mpsc::channel(asked.max_tokens as usize + 1);
        let base_len = output.len() as u32;
        let len = spec.prompt.len() + output.len() + asked.max_tokens as usize;
        let mut tokens = Vec::with_capacity(len);
        tokens.extend_from_slice(&spec.prompt);
        tokens.extend_from_slice(output);
        let task = Self {
            pipeline: Pipeline::new(Arc::clone(&spec.sampling)),
            history: History::new(&spec.sampling, &spec.prompt, output),
            chance: RoundChance::new(spec.noise, base_len, InnerCall::default()),
            want: want(spec, asked.stop_rule),
            unscaled: Vec::new(),
            spec: Arc::clone(spec),
            asked,
            tokens,
            base_len,
            drafted: 0,
            reports,
        };
        (task, receiver)
    }

    /// Draws the next token from the logits `row`, or ends the block before it.
    fn draft(&mut self, row: &mut [f32], figures: StepFigures) -> Result<Drafted, LawError> {
        let spec = Arc::clone(&self.spec);
        let law = &mut row[..spec.vocab_size as usize];
        let position = self.base_len + self.drafted;
        let observed =
            self.pipeline
                .laws(law, &mut self.unscaled, self.want, &self.history, position)?;
        let unscaled = observed.unscaled.then_some(&self.unscaled[..]);
        let confidence = observed.confidence.unwrap_or_default();
        let telling = drafting::Telling {
            form: spec.proposal_form,
            confidence: spec.telling.confidences,
            unscaled: spec.telling.unscaled,
        };
        let by_rule =
            self.drafted < self.asked.max_tokens && self.asked.stop_rule.stops(confidence);
        if by_rule || self.drafted == self.asked.max_tokens {
            let propose = || drafting::propose(law, unscaled, confidence, telling);
            return Ok(Drafted::Ended {
                bonus: self.asked.bonus_q.then(propose),
                by_rule,
                figures,
            });
        }
        // The law is cut in place, so an unscaled law that is the law itself is kept beside it.
        let is_cut = !matches!(spec.proposal_form, ProposalForm::None | ProposalForm::Point);
        let keep = spec.telling.logprobs && is_cut && unscaled.is_none();
        let kept = keep.then(|| law.to_vec());
        let mut proposal = drafting::propose(law, unscaled, confidence, telling);
        let at = (self.base_len, self.drafted);
        let id = drafting::draw(law, spec.verification, &spec.noise, at, &mut self.chance);
        if spec.telling.logprobs {
            let unscaled = unscaled.or(kept.as_deref()).unwrap_or(law);
            proposal.logprob = Some(unscaled[id as usize].ln_portable());
        }
        self.tokens.push(id);
        self.history.push(id);
        self.drafted += 1;
        Ok(Drafted::Token(DraftToken { id, proposal }, figures))
    }

    /// Whether another forward is needed after `drafted`.
    fn goes_on(&self, drafted: &Drafted) -> bool {
        match drafted {
            Drafted::Token(token, _) => {
                let ended = self.spec.sampling.end_tokens.contains(&token.id);
                !ended && (self.drafted < self.asked.max_tokens || self.asked.bonus_q)
            }
            Drafted::Ended { .. } | Drafted::Failed(_) => false,
        }
    }

    fn report(&self, drafted: Drafted) {
        // The receiver is gone if nobody waits any more; the task is then cancelled.
        let _ = self.reports.try_send(drafted);
    }
}

/// What must be known of each law beside itself.
fn want(spec: &SessionSpec, stop_rule: StopRule) -> Want {
    let telling = spec.telling;
    Want {
        max: telling.confidences || matches!(stop_rule, StopRule::MaxBelow(_)),
        entropy: telling.entropies || matches!(stop_rule, StopRule::EntropyAbove(_)),
        unscaled: telling.unscaled || telling.logprobs,
    }
}

impl Task for DraftTask {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn scored_from(&self) -> usize {
        self.tokens.len() - 1
    }

    fn step(&mut self, mut rows: StepRows<'_>) -> Progress {
        let figures = rows.figures();
        let drafted = self
            .draft(rows.row_mut(0), figures)
            .unwrap_or_else(|error| Drafted::Failed(error.into()));
        let goes_on = self.goes_on(&drafted);
        self.report(drafted);
        if goes_on {
            Progress::Continue
        } else {
            Progress::Done
        }
    }

    fn is_cancelled(&self) -> bool {
        self.reports.is_closed()
    }

    fn fail(self: Box<Self>, error: EngineError) {
        self.report(Drafted::Failed(error.into()));
    }
}
