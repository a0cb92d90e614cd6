//! The target model's distributions along a chain, made from the rows of one forward as they are needed.

use std::sync::Arc;

use peer::RoundError;
use speculation::TokenId;
use speculation::history::History;
use speculation::pipeline::{Pipeline, Want};
use speculation::round::TargetRows;
use speculation::target::TargetProbs;

use crate::scoring::Block;

/// The rows of a forward on the way to being distributions.
pub(crate) struct LogitRows<'a> {
    pipeline: Pipeline,
    history: &'a mut History,
    base_len: u32,
    drafts: &'a [TokenId],
    vocab_size: usize,
    /// Logits (drafts + 1, `row_len`); a row that was requested has been turned into a distribution.
    rows: &'a mut [f32],
    row_len: usize,
    want: Want,
    unscaled: &'a mut Vec<f32>,
}

impl<'a> LogitRows<'a> {
    /// The distributions after the output and each prefix of the drafts of `block`, of the logits `rows`
    /// (drafts + 1, `row_len`); `unscaled` is scratch.
    pub(crate) fn new(
        block: &'a mut Block,
        want: Want,
        (rows, row_len): (&'a mut [f32], usize),
        unscaled: &'a mut Vec<f32>,
    ) -> Self {
        let spec = Arc::clone(&block.spec);
        let base_len = block.base_len as u32;
        let (drafts, history) = block.drafts();
        Self {
            pipeline: Pipeline::new(Arc::clone(&spec.sampling)),
            history,
            base_len,
            drafts,
            vocab_size: spec.vocab_size as usize,
            rows,
            row_len,
            want,
            unscaled,
        }
    }
}

impl TargetRows<f32> for LogitRows<'_> {
    type Error = RoundError;

    fn distributions(&mut self, offset: usize) -> Result<TargetProbs<'_, f32>, RoundError> {
        let before = offset.checked_sub(1);
        if let Some(&draft) = before.and_then(|before| self.drafts.get(before)) {
            self.history.push(draft);
        }
        let probs = &mut self.rows[offset * self.row_len..][..self.vocab_size];
        let position = self.base_len + offset as u32;
        let observed =
            self.pipeline
                .distributions(probs, self.unscaled, self.want, self.history, position)?;
        Ok(TargetProbs {
            probs,
            unscaled: observed.unscaled.then_some(&self.unscaled[..]),
            confidence: observed.confidence.unwrap_or_default(),
        })
    }

    fn row(&self, offset: usize) -> &[f32] {
        &self.rows[offset * self.row_len..][..self.vocab_size]
    }
}
