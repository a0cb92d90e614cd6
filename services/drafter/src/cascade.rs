//! Drafting with a cascade of draft models: each forward is a task on its model's engine.
//!
//! All that a block needs moves into the task and back, and from engine to engine, so that distributions are
//! read where they were computed.

mod review;

use std::sync::Arc;

use model::engine::StepRows;
use peer::progress::Reporter;
use peer::{Cost, CountedHistory, RoundError};
use speculation::TokenId;
use speculation::cascade::{
    BlockLimits, CallNoise, Cascade, CascadeStep, DraftDistributions, DraftRows, Grams, Reviewing,
};
use speculation::drafting::{self, TreeShape};
use speculation::history::History;
use speculation::max_gram::{Bigram, MaxGram};
use speculation::pipeline::{Pipeline, Want};
use speculation::verification::Draws;
use tokio::sync::oneshot;
use wire::failure::Failure;
use wire::open::SessionSpec;
use wire::v1::StopCause;

use crate::block::{BlockEnd, DraftStep};
use crate::draft_params::DraftParams;
use crate::grams;
use crate::proposers::{DraftSession, Proposers};
use review::ReviewTask;

/// Drafts a block; how far it is goes to `progress`.
///
/// # Errors
/// If an engine takes no task, or a model fails.
pub(crate) async fn draft(
    proposers: &Proposers,
    session: &mut DraftSession,
    requested: &DraftParams,
    progress: Reporter,
) -> Result<Vec<DraftStep>, RoundError> {
    let mut grams = None;
    if let Some(bigram) = proposers.cascade_bigram() {
        grams = Some((grams::take_index(session).await, Arc::clone(bigram)));
    }
    let mut block = Box::new(CascadeBlock::new(session, requested, grams, progress)?);
    while let CascadeStep::Score { level, from, .. } = block.next() {
        let (done, scored) = oneshot::channel();
        let task = ReviewTask {
            block: Some(block),
            level,
            from,
            done: Some(done),
        };
        session.slots[level - 1].try_submit(task)?;
        block = scored.await.map_err(|_| RoundError::Dropped)??;
    }
    let (drafted, index) = block.finish(session.slots.len());
    session.memory.max_gram = index.or(session.memory.max_gram.take());
    Ok(drafted)
}

/// A draft block in the making.
struct CascadeBlock {
    cascade: Cascade<f32, CallNoise>,
    grams: Option<(MaxGram, Arc<Bigram>)>,
    spec: Arc<SessionSpec>,
    requested: DraftParams,
    pipeline: Pipeline,
    /// What the penalties count, before the block.
    history: CountedHistory,
    want: Want,
    unscaled: Vec<f32>,
    /// Prompt (or start token), output, and the draft tokens that the next forward needs.
    tokens: Vec<TokenId>,
    /// Length of what stands before them.
    context_len: usize,
    base_len: u32,
    /// Tokens that may stand beside each draft token that the largest model reviewed, the best first.
    ranked: Vec<Vec<TokenId>>,
    cost: Cost,
    progress: Reporter,
}

impl CascadeBlock {
    fn new(
        session: &DraftSession,
        requested: &DraftParams,
        grams: Option<(MaxGram, Arc<Bigram>)>,
        progress: Reporter,
    ) -> Result<Self, RoundError> {
        let spec = Arc::clone(&session.spec);
        let output = session.committed.tokens();
        let base_len = output.len() as u32;
        let config = requested.cascade.as_ref().ok_or(RoundError::Dropped)?;
        let reviewing = match spec.verification.draws {
            _ if spec.sampling.temperature == 0.0 => Reviewing::Greedy,
            Draws::Shared => Reviewing::Coupled { noise: spec.noise },
            Draws::Own => Reviewing::Sampling {
                chance: CallNoise::new(spec.noise, base_len),
                form: spec.proposal_form,
            },
        };
        let is_lenient = config.lenience() > 1.0 && matches!(reviewing, Reviewing::Greedy);
        let block = BlockLimits {
            base_len,
            max_tokens: requested.max_tokens as usize,
            ends: spec.sampling.end_tokens.clone(),
        };
        let tokens = session.sequence(&[]);
        Ok(Self {
            cascade: Cascade::new(Arc::clone(config), reviewing, block)
                .map_err(|bad| Failure::Internal.status(bad.to_string()))?,
            grams,
            requested: requested.clone(),
            pipeline: Pipeline::new(Arc::clone(&spec.sampling)),
            history: session.history(),
            want: Want {
                unscaled: is_lenient || requested.tree != TreeShape::Chain,
                ..Want::default()
            },
            unscaled: Vec::new(),
            context_len: tokens.len(),
            tokens,
            base_len,
            ranked: Vec::new(),
            cost: Cost::default(),
            progress,
            spec,
        })
    }

    /// Returns what the cascade wants next; `tokens` is then what that forward needs.
    fn next(&mut self) -> CascadeStep {
        let grams = self.grams.as_mut();
        let grams = grams.map(|(index, bigram)| Grams { index, bigram });
        let next = self.cascade.next(grams);
        if let CascadeStep::Score { from, rows, .. } = next {
            self.tokens.truncate(self.context_len);
            // The row of the last draft token is not wanted where nothing can follow it.
            let needed = from + rows - 1;
            self.tokens
                .extend_from_slice(&self.cascade.tokens()[..needed]);
        }
        next
    }

    /// Lets the model whose rows are here review.
    fn review(&mut self, from: usize, rows: StepRows<'_>) -> Result<(), RoundError> {
        let timing = rows.timing;
        self.progress.step(timing.forwarded_tokens);
        self.cost.add(&Cost::of(timing));
        // What an earlier review counted of drafts is taken back.
        let output = self.spec.lead().len()..self.context_len;
        self.history.follow(&self.tokens[output]);
        let mut distributions = CascadeRows {
            rows,
            from,
            vocab_size: self.spec.vocab_size as usize,
            base_len: self.base_len,
            pipeline: &mut self.pipeline,
            history: &mut self.history,
            drafts: &self.tokens[self.context_len..],
            counted: 0,
            want: self.want,
            unscaled: &mut self.unscaled,
        };
        let (tree, noise, base_len) = (self.requested.tree, &self.spec.noise, self.base_len);
        let ranked = &mut self.ranked;
        self.cascade
            .supply(&mut distributions, |index, distributions| {
                let Some(tree) = with_one_more(tree) else {
                    return;
                };
                let unscaled = distributions.unscaled.unwrap_or(distributions.probs);
                let position = base_len + index as u32;
                // The largest model has its turn first, so its tokens are the first of the block.
                debug_assert_eq!(ranked.len(), index);
                // The token itself is not known yet; it is left out later.
                let all = drafting::siblings(
                    tree,
                    distributions.probs,
                    unscaled,
                    TokenId::MAX,
                    noise,
                    position,
                );
                ranked.push(all);
            })
    }

    /// Returns the block, and Max-Gram's index.
    fn finish(mut self, models: usize) -> (Vec<DraftStep>, Option<MaxGram>) {
        let forwards = self.cascade.calls()[..models].to_vec();
        let wanted = self.requested.tree.width() as usize - 1;
        let form = self.spec.proposal_form;
        let tokens = self.cascade.finish();
        let is_full = tokens.len() == self.requested.max_tokens as usize;
        let mut cause = if is_full {
            self.requested.cause()
        } else {
            StopCause::Policy
        };
        self.ranked.resize(tokens.len(), Vec::new());
        let mut drafted: Vec<DraftStep> = Vec::with_capacity(tokens.len());
        for (token, mut siblings) in tokens.into_iter().zip(self.ranked) {
            siblings.retain(|&sibling| sibling != token.id);
            siblings.truncate(wanted);
            if self.spec.sampling.end_tokens.contains(&token.id) {
                cause = StopCause::EndToken;
            }
            let probs = token.probs.proposal(form);
            drafted.push(DraftStep::to(token.id, probs, siblings));
        }
        if let Some(last) = drafted.last_mut() {
            last.cost = self.cost;
            last.ending = Some(BlockEnd {
                cause,
                bonus: None,
                forwards,
            });
        }
        (drafted, self.grams.map(|(index, _)| index))
    }
}

/// Returns the shape with one more node at each depth; none for a chain.
fn with_one_more(tree: TreeShape) -> Option<TreeShape> {
    match tree {
        TreeShape::Chain => None,
        TreeShape::Comb(siblings) => Some(TreeShape::Comb(siblings + 1)),
        TreeShape::Alternates(alternates) => Some(TreeShape::Alternates(alternates + 1)),
    }
}

/// The distributions of one forward, computed when the review reads them.
struct CascadeRows<'a> {
    rows: StepRows<'a>,
    /// Draft tokens before the first row.
    from: usize,
    vocab_size: usize,
    base_len: u32,
    pipeline: &'a mut Pipeline,
    history: &'a mut History,
    /// The draft tokens that were forwarded.
    drafts: &'a [TokenId],
    /// Draft tokens that `history` counts.
    counted: usize,
    want: Want,
    unscaled: &'a mut Vec<f32>,
}

impl DraftRows<f32> for CascadeRows<'_> {
    type Error = RoundError;

    fn distributions(&mut self, offset: usize) -> Result<DraftDistributions<'_, f32>, RoundError> {
        for &token in &self.drafts[self.counted..offset] {
            self.history.push(token);
        }
        self.counted = offset;
        let probs = &mut self.rows.row_mut(offset - self.from)[..self.vocab_size];
        let position = self.base_len + offset as u32;
        let seen =
            self.pipeline
                .distributions(probs, self.unscaled, self.want, self.history, position)?;
        Ok(DraftDistributions {
            probs,
            unscaled: seen.unscaled.then_some(&self.unscaled[..]),
        })
    }
}
