//! Drafting one block on the engine thread: one token a forward.

use std::sync::Arc;

use model::engine::{EngineError, Progress, StepFigures, StepRows, Task};
use speculation::TokenId;
use speculation::chance::RoundChance;
use speculation::drafting::{DraftToken, draft_token};
use speculation::history::History;
use speculation::noise::InnerCall;
use speculation::pipeline::{LawError, Pipeline};
use tokio::sync::mpsc;
use wire::open::SessionSpec;

use crate::error::RoundError;

/// What a task reports while it drafts.
#[derive(Debug)]
pub(crate) enum Drafted {
    /// The next token of the block.
    Token(DraftToken, StepFigures),
    /// The block could not be drafted to its end.
    Failed(RoundError),
}

/// Drafts one block.
pub(crate) struct DraftTask {
    spec: Arc<SessionSpec>,
    pipeline: Pipeline,
    history: History,
    chance: RoundChance,
    /// Prompt, output and the tokens drafted so far.
    tokens: Vec<TokenId>,
    base_len: u32,
    drafted: u32,
    max_tokens: u32,
    /// Has room for the whole block, so that sending never waits.
    reports: mpsc::Sender<Drafted>,
}

impl DraftTask {
    /// A task that drafts at most `max_tokens` tokens after `output`, with the channel on which it
    /// reports them; the channel closes when the block is done.
    pub(crate) fn new(
        spec: &Arc<SessionSpec>,
        output: &[TokenId],
        max_tokens: u32,
    ) -> (Self, mpsc::Receiver<Drafted>) {
        let (reports, receiver) = mpsc::channel(max_tokens as usize + 1);
        let base_len = output.len() as u32;
        let mut tokens = Vec::with_capacity(spec.prompt.len() + output.len() + max_tokens as usize);
        tokens.extend_from_slice(&spec.prompt);
        tokens.extend_from_slice(output);
        let task = Self {
            pipeline: Pipeline::new(Arc::clone(&spec.sampling)),
            history: History::new(&spec.sampling, &spec.prompt, output),
            chance: RoundChance::new(spec.noise, base_len, InnerCall::default()),
            spec: Arc::clone(spec),
            tokens,
            base_len,
            drafted: 0,
            max_tokens,
            reports,
        };
        (task, receiver)
    }

    fn draft(&mut self, row: &mut [f32]) -> Result<DraftToken, LawError> {
        let spec = &self.spec;
        let law = &mut row[..spec.vocab_size as usize];
        self.pipeline
            .law(law, &self.history, self.base_len + self.drafted)?;
        let at = (self.base_len, self.drafted);
        let chance = &mut self.chance;
        Ok(draft_token(
            law,
            spec.verification,
            spec.proposal_form,
            &spec.noise,
            at,
            chance,
        ))
    }

    fn report(&self, drafted: Drafted) {
        // The receiver is gone if nobody waits any more; the task is then cancelled.
        let _ = self.reports.try_send(drafted);
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
        let token = match self.draft(rows.row_mut(0)) {
            Ok(token) => token,
            Err(error) => {
                self.report(Drafted::Failed(error.into()));
                return Progress::Done;
            }
        };
        let id = token.id;
        self.tokens.push(id);
        self.history.push(id);
        self.drafted += 1;
        self.report(Drafted::Token(token, figures));
        let ended = self.spec.sampling.end_tokens.contains(&id);
        if ended || self.drafted == self.max_tokens {
            Progress::Done
        } else {
            Progress::Continue
        }
    }

    fn is_cancelled(&self) -> bool {
        self.reports.is_closed()
    }

    fn fail(self: Box<Self>, error: EngineError) {
        self.report(Drafted::Failed(error.into()));
    }
}
