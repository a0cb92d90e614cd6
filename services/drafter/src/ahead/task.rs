//! Drafting ahead with the draft model, on the engine thread: the rows of a few leaves a forward.

use std::sync::Arc;

use model::engine::{StepRows, Task, TaskError, TaskProgress};
use ops::metrics::PeerMetrics;
use peer::{Commits, Cost, CountedHistory, Lent, RoundError};
use speculation::TokenId;
use speculation::ahead::{CHILDREN, Growth, Leaves, margin};
use speculation::coupled::choice;
use speculation::drafting::{TreeShape, siblings};
use speculation::pending::ProposedTree;
use speculation::pipeline::{DistributionError, Pipeline, Want};
use tokio::sync::mpsc;
use wire::open::SessionSpec;

use super::drafts::AheadDrafts;
use crate::proposers::DraftSession;

/// Least survival of a draft token, whatever the verifier's price is. With 0.005 a drafter a tenth of a second away sends ten
/// times the bytes, and what is right waits behind what is not.
const LEAST: f32 = 0.02;

/// Most rows of a forward.
const ROWS: usize = 16;

/// Proposals on their way out of the engine; what finds no place is told with the next, when more of it is stale.
const WAITING: usize = 2;

/// How far is drafted ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) levels: u32,
    pub(super) nodes: usize,
    /// Longest sequence that the engine holds.
    pub(super) longest: usize,
    /// Whether the engine appends below the nodes of a tree that it holds; otherwise chains are forwarded.
    pub(super) grows_trees: bool,
}

/// Drafts until nothing more is worth it.
pub(super) struct AheadTask {
    spec: Arc<SessionSpec>,
    drafts: Lent<AheadDrafts>,
    commits: Commits,
    limits: Limits,
    pipeline: Pipeline,
    history: CountedHistory,
    unscaled: Vec<f32>,
    /// The nodes whose rows the next forward computes; none is that of the last token of the output.
    leaves: Vec<Option<u32>>,
    tokens: Vec<TokenId>,
    parents: Vec<Option<u32>>,
    proposals: mpsc::Sender<Result<ProposedTree, RoundError>>,
    metrics: PeerMetrics,
    /// Whether a forward was made.
    is_running: bool,
}

/// What a task proposes.
type Proposed = mpsc::Receiver<Result<ProposedTree, RoundError>>;

impl AheadTask {
    /// Returns a task that goes on with `drafts`, and the channel of its proposals, which closes when nothing more is worth
    /// drafting; none if nothing is.
    ///
    /// # Errors
    /// If a commit is malformed, or the draft model's context is full.
    pub(super) fn new(
        session: &DraftSession,
        drafts: Lent<AheadDrafts>,
        commits: Commits,
        limits: Limits,
        metrics: &PeerMetrics,
    ) -> Result<Option<(Self, Proposed)>, RoundError> {
        let spec = Arc::clone(&session.spec);
        let (proposals, receiver) = mpsc::channel(WAITING);
        let mut task = Self {
            pipeline: Pipeline::new(Arc::clone(&spec.sampling)),
            history: session.history(),
            unscaled: Vec::new(),
            leaves: Vec::new(),
            tokens: Vec::new(),
            parents: Vec::new(),
            spec,
            drafts,
            commits,
            limits,
            proposals,
            metrics: metrics.clone(),
            is_running: false,
        };
        Ok(task.plan()?.then_some((task, receiver)))
    }

    /// Decides what the next forward computes, after what the target chose meanwhile, and tells what is new. Returns whether
    /// there is anything to compute.
    fn plan(&mut self) -> Result<bool, RoundError> {
        let (spec, drafts) = (&self.spec, &mut *self.drafts);
        drafts.follow(&self.commits, spec.vocab_size)?;
        let trunk = spec.lead().len() + drafts.output.len();
        let Some(left) = self.limits.longest.checked_sub(trunk) else {
            return Err(RoundError::ContextFull {
                len: trunk,
                context_len: self.limits.longest,
            });
        };
        let growth = Growth {
            levels: self.limits.levels.min(left as u32),
            nodes: drafts.nodes(self.limits.nodes).min(left),
            least: LEAST.max(drafts.price),
            rows: if self.limits.grows_trees { ROWS } else { 1 },
            row_cost: drafts.row_cost,
            ends: &spec.sampling.end_tokens,
        };
        drafts.tree.fill(&drafts.acceptance, growth);
        if drafts.are_due()
            && let Ok(place) = self.proposals.try_reserve()
            && let Some(proposed) = drafts.propose()
        {
            place.send(Ok(proposed));
        }
        self.leaves = match drafts.tree.grow(growth) {
            Leaves::None => return Ok(false),
            Leaves::Root => vec![None],
            Leaves::Nodes(nodes) => nodes.into_iter().map(Some).collect(),
        };
        self.tokens.clear();
        self.tokens.extend_from_slice(spec.lead());
        self.tokens.extend_from_slice(&drafts.output);
        self.parents.clear();
        if self.limits.grows_trees {
            (drafts.tree).sequence(&mut self.tokens, &mut self.parents);
        } else {
            let leaf = self.leaves.first().copied().flatten();
            self.tokens.extend(drafts.tree.path(leaf));
        }
        Ok(true)
    }

    /// Reads what the row of a leaf, its logits, proposes.
    fn read(&mut self, leaf: Option<u32>, row: &mut [f32]) -> Result<(), DistributionError> {
        let drafts = &mut *self.drafts;
        let path = drafts.tree.path(leaf);
        let len = drafts.output.len();
        drafts.output.extend_from_slice(&path);
        self.history.follow(&drafts.output);
        let position = drafts.output.len() as u32;
        drafts.output.truncate(len);
        let probs = &mut row[..self.spec.vocab_size as usize];
        let want = Want {
            unscaled: true,
            ..Want::default()
        };
        let observed = self.pipeline.distributions(
            probs,
            &mut self.unscaled,
            want,
            &self.history,
            position,
        )?;
        let unscaled = if observed.unscaled {
            &self.unscaled[..]
        } else {
            &*probs
        };
        let noise = &self.spec.noise;
        let first = choice(probs, noise, position);
        let shape = TreeShape::Alternates(CHILDREN as u32 - 1);
        let others = siblings(shape, probs, unscaled, first, noise, position);
        let second = others.first().copied();
        let margin = margin(probs, unscaled, (noise, position), first, second);
        let tokens = std::iter::once(first).chain(others).collect();
        drafts.tree.computed(leaf, margin, tokens);
        Ok(())
    }

    /// Takes the rows of the leaves; returns whether another forward is to be made.
    fn advance(&mut self, rows: &mut StepRows<'_>) -> Result<bool, RoundError> {
        let leaves = std::mem::take(&mut self.leaves);
        let timing = rows.timing;
        if std::mem::replace(&mut self.is_running, true) {
            (self.metrics).forwarded(timing.forward, timing.batch_sequences);
        } else {
            Cost::of(timing).count(&self.metrics);
        }
        if timing.forwarded_tokens == leaves.len() {
            let row = timing.row.as_secs_f32();
            let one = timing.forward.as_secs_f32() - (timing.batch_tokens - 1) as f32 * row;
            if one > 0.0 {
                self.drafts.row_cost = (row / one).min(1.0);
            }
        }
        for (row, leaf) in leaves.into_iter().enumerate() {
            self.read(leaf, rows.row_mut(row))?;
        }
        self.plan()
    }
}

impl Task for AheadTask {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn source(&self) -> &[TokenId] {
        self.spec.source()
    }

    fn scored_from(&self) -> usize {
        self.tokens.len() - self.leaves.len()
    }

    fn parents(&self) -> &[Option<u32>] {
        &self.parents
    }

    fn step(&mut self, mut rows: StepRows<'_>) -> TaskProgress {
        match self.advance(&mut rows) {
            Ok(true) => TaskProgress::Continue,
            Ok(false) => TaskProgress::Done,
            Err(error) => {
                let _nobody = self.proposals.try_send(Err(error));
                TaskProgress::Done
            }
        }
    }

    fn is_cancelled(&self) -> bool {
        self.proposals.is_closed()
    }

    fn fail(self: Box<Self>, error: TaskError) {
        let _nobody = self.proposals.try_send(Err(error.into()));
    }
}
