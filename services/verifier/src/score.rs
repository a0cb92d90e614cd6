//! Scoring one draft block without deciding it: the coordinator decides, from slices of the law.

use std::sync::Arc;

use model::engine::{EngineError, Progress, StepFigures, StepRows, Task};
use speculation::TokenId;
use tokio::sync::oneshot;
use v1::slice::Law;
use wire::open::SessionSpec;
use wire::{proposal, v1};

use crate::error::RoundError;
use crate::session::Session;
use crate::verify::Laws;

/// What a task answers: one slice a position, headers still to be set.
pub(crate) type Scored = Result<(Vec<v1::Slice>, StepFigures), RoundError>;

/// Scores a block.
pub(crate) struct ScoreTask {
    spec: Arc<SessionSpec>,
    /// Prompt, output and drafts.
    tokens: Vec<TokenId>,
    base_len: usize,
    wanted: v1::SliceRequest,
    answer: Option<oneshot::Sender<Scored>>,
}

impl ScoreTask {
    /// A task that scores `drafts` on top of the session's output, with the channel it answers on.
    pub(crate) fn new(
        session: &Session,
        drafts: &[TokenId],
        wanted: v1::SliceRequest,
    ) -> (Self, oneshot::Receiver<Scored>) {
        let (answer, receiver) = oneshot::channel();
        let task = Self {
            spec: Arc::clone(&session.spec),
            tokens: session.sequence(drafts),
            base_len: session.committed.tokens().len(),
            wanted,
            answer: Some(answer),
        };
        (task, receiver)
    }

    fn score(&self, logits: &mut [f32], row_len: usize) -> Result<Vec<v1::Slice>, RoundError> {
        let (context, drafts) = self.tokens.split_at(self.spec.prompt.len() + self.base_len);
        let output = &context[self.spec.prompt.len()..];
        let mut laws = Laws::new(&self.spec, output, drafts, logits, row_len);
        (0..=drafts.len())
            .map(|offset| {
                let (law, unscaled) = laws.next_with_unscaled(offset)?;
                Ok(slice(
                    offset,
                    law,
                    &unscaled,
                    self.wanted,
                    offset == drafts.len(),
                ))
            })
            .collect()
    }

    fn answer(&mut self, scored: Scored) {
        if let Some(answer) = self.answer.take() {
            // The receiver is gone if nobody waits any more.
            let _ = answer.send(scored);
        }
    }
}

impl Task for ScoreTask {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn scored_from(&self) -> usize {
        self.spec.prompt.len() + self.base_len - 1
    }

    fn step(&mut self, mut rows: StepRows<'_>) -> Progress {
        let figures = rows.figures();
        let row_len = rows.vocab_size();
        let slices = self.score(rows.logits_mut(), row_len);
        self.answer(slices.map(|slices| (slices, figures)));
        Progress::Done
    }

    fn is_cancelled(&self) -> bool {
        self.answer.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    fn fail(mut self: Box<Self>, error: EngineError) {
        self.answer(Err(error.into()));
    }
}

/// The slice of one position. The law is sent on its support where that is within what was asked
/// for, or smaller than the whole row; a slice never cuts the support.
fn slice(
    offset: usize,
    law: &[f32],
    unscaled: &[f32],
    wanted: v1::SliceRequest,
    last: bool,
) -> v1::Slice {
    let support = law.iter().filter(|&&mass| mass > 0.0).count();
    let limit = match wanted.top {
        0 => law.len() / 2,
        top => top as usize,
    };
    let law = if support <= limit {
        let in_support = || law.iter().enumerate().filter(|&(_, &mass)| mass > 0.0);
        Law::Support(v1::SupportLaw {
            token_ids: in_support().map(|(token, _)| token as u32).collect(),
            probabilities: in_support().map(|(_, &mass)| mass).collect(),
        })
    } else {
        Law::Dense(proposal::dense_row(law))
    };
    v1::Slice {
        header: None,
        node: offset as i32 - 1,
        law: Some(law),
        max_probability: unscaled.iter().copied().fold(0.0, f32::max),
        entropy: entropy(unscaled),
        unscaled: wanted.unscaled.then(|| proposal::dense_row(unscaled)),
        last,
        timing: None,
    }
}

/// Entropy in nats, with 0 ln 0 = 0.
fn entropy(law: &[f32]) -> f32 {
    let nats: f64 = law
        .iter()
        .filter(|&&mass| mass > 0.0)
        .map(|&mass| -f64::from(mass) * f64::from(mass).ln())
        .sum();
    nats as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_never_cuts_the_support() {
        let law = [0.5, 0.0, 0.25, 0.25, 0.0, 0.0];
        let top = |top| v1::SliceRequest {
            top,
            unscaled: false,
        };
        let all = slice(1, &law, &law, top(0), false);
        assert!(matches!(all.law, Some(Law::Support(ref s)) if s.token_ids == [0, 2, 3]));
        assert_eq!((all.node, all.max_probability), (0, 0.5));
        assert!((all.entropy - 1.5 * std::f32::consts::LN_2).abs() < 1e-6);
        assert!(matches!(
            slice(0, &law, &law, top(3), true).law,
            Some(Law::Support(_))
        ));
        assert!(matches!(
            slice(0, &law, &law, top(2), true).law,
            Some(Law::Dense(_))
        ));
    }
}
