//! The part of a block that one model of the cascade makes: a task on its engine.

use model::engine::{StepRows, Task, TaskError, TaskProgress};
use peer::RoundError;
use speculation::TokenId;
use speculation::cascade::CascadeStep;
use tokio::sync::oneshot;

use super::CascadeBlock;

/// The forwards that one model makes for a block before another has its turn.
pub(super) struct ReviewTask {
    /// Given back through `done` at the end.
    pub(super) block: Option<Box<CascadeBlock>>,
    /// The model, 1 for the largest.
    pub(super) level: usize,
    /// Draft tokens before the first position whose row is wanted.
    pub(super) from: usize,
    pub(super) done: Option<oneshot::Sender<Result<Box<CascadeBlock>, RoundError>>>,
}

impl ReviewTask {
    /// Returns the block after its review: here again for another forward of the same model, or none once it was given
    /// back.
    fn advance(&mut self, rows: StepRows<'_>) -> Option<Box<CascadeBlock>> {
        let mut block = self.block.take()?;
        if let Err(error) = block.review(self.from, rows) {
            self.give_back(Err(error));
            return None;
        }
        // Most forwards of a model follow one another, with Max-Gram between them.
        match block.next() {
            CascadeStep::Score { level, from, .. } if level == self.level => {
                self.from = from;
                Some(block)
            }
            CascadeStep::Score { .. } | CascadeStep::Done => {
                self.give_back(Ok(block));
                None
            }
        }
    }

    fn give_back(&mut self, block: Result<Box<CascadeBlock>, RoundError>) {
        if let Some(done) = self.done.take() {
            // The receiver is gone if nobody waits any more.
            let _ = done.send(block);
        }
    }
}

impl Task for ReviewTask {
    fn tokens(&self) -> &[TokenId] {
        self.block.as_ref().map_or(&[], |block| &block.tokens)
    }

    fn source(&self) -> &[TokenId] {
        let block = self.block.as_ref();
        block.map_or(&[], |block| block.spec.source())
    }

    fn scored_from(&self) -> usize {
        let context_len = self.block.as_ref().map_or(1, |block| block.context_len);
        context_len - 1 + self.from
    }

    fn step(&mut self, rows: StepRows<'_>) -> TaskProgress {
        self.block = self.advance(rows);
        match self.block {
            Some(_) => TaskProgress::Continue,
            None => TaskProgress::Done,
        }
    }

    fn prefilled(&mut self, done: usize, total: usize) {
        if let Some(block) = &self.block {
            block.progress.part(done, total);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.done.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    fn fail(mut self: Box<Self>, error: TaskError) {
        self.give_back(Err(error.into()));
    }
}
