//! Deciding one draft tree: coupled or token verification of the target model's own distribution.

use std::sync::Arc;

use peer::RoundError;
use speculation::chance::RoundChance;
use speculation::draft_tree::DraftTree;
use speculation::drafting::TreeShape;
use speculation::history::History;
use speculation::methods::Options;
use speculation::noise::InnerCall;
use speculation::pipeline::Pipeline;
use speculation::proposal::{BadProposal, Proposal, ProposalProbs};
use speculation::verification::tree::{self, NodeDistributions};
use speculation::verification::tree_rejection::{self, SiblingDistributions};
use speculation::verification::{Verdict, Verification};
use wire::open::SessionSpec;
use wire::status::BadField;

use crate::scoring::{Block, Judge};

/// Checks that a session's rounds may be trees.
///
/// # Errors
/// Names what they do not go with.
pub(crate) fn check(spec: &SessionSpec) -> Result<(), BadField> {
    let options = Options {
        target: spec.target,
        verification: spec.verification,
        // Which one, nodes and their parents say.
        tree: TreeShape::Alternates(1),
        accept_at_coordinator: spec.accept_at_coordinator,
        ..Options::default()
    };
    let conflict = options.check();
    conflict.map_err(|conflict| BadField::new("drafts.parents", conflict.problem))
}

/// A tree that is to be decided.
pub(crate) struct Tree {
    pub(crate) drafts: DraftTree,
    /// The draft distribution of each group of siblings, in the order of [`DraftTree::inner`]; only token verification has
    /// them.
    pub(crate) proposals: Vec<Proposal>,
    /// The nodes accepted, once that is decided.
    pub(crate) path: Vec<u32>,
}

impl Judge for Tree {
    type Verdict = Verdict;

    fn judge(
        &mut self,
        block: &mut Block,
        (rows, row_len): (&mut [f32], usize),
    ) -> Result<Verdict, RoundError> {
        let spec = &Arc::clone(&block.spec);
        let base_len = block.base_len as u32;
        let mut distributions = PathDistributions {
            pipeline: Pipeline::new(Arc::clone(&spec.sampling)),
            history: &mut block.history,
            position: base_len,
            drafts: &self.drafts,
            inner: self.drafts.inner(),
            proposals: &self.proposals,
            rows,
            row_len,
            vocab_size: spec.vocab_size as usize,
        };
        let (drafts, noise) = (&self.drafts, &spec.noise);
        let ends = &spec.sampling.end_tokens;
        let decided = if spec.verification == Verification::COUPLED {
            tree::verify(drafts, base_len, ends, noise, &mut distributions)?
        } else {
            let mut chance = RoundChance::new(*noise, base_len, InnerCall::default());
            tree_rejection::verify(drafts, ends, &mut chance, &mut distributions)?
        };
        self.path.clone_from(&decided.path);
        Ok(decided)
    }

    fn parents(&self) -> &[Option<u32>] {
        self.drafts.parents()
    }

    fn kept(&self) -> &[u32] {
        &self.path
    }
}

/// The distributions along the path that is walked, computed from the rows of one forward when they are read.
struct PathDistributions<'a> {
    pipeline: Pipeline,
    /// Of the path so far: penalties count the ancestors of a node, not its siblings.
    history: &'a mut History,
    position: u32,
    drafts: &'a DraftTree,
    /// The nodes with children, in the order of `proposals`.
    inner: Vec<Option<usize>>,
    proposals: &'a [Proposal],
    /// Logits (nodes + 1, `row_len`): after the output, then after each node.
    rows: &'a mut [f32],
    row_len: usize,
    vocab_size: usize,
}

impl NodeDistributions<f32> for PathDistributions<'_> {
    type Error = RoundError;

    fn after(&mut self, node: Option<usize>) -> Result<&[f32], RoundError> {
        let row = node.map_or(0, |node| node + 1);
        if let Some(node) = node {
            self.history.push(self.drafts.tokens()[node]);
            self.position += 1;
        }
        let probs = &mut self.rows[row * self.row_len..][..self.vocab_size];
        self.pipeline.probs(probs, self.history, self.position)?;
        Ok(probs)
    }
}

impl SiblingDistributions<f32> for PathDistributions<'_> {
    type Error = RoundError;

    fn target(&mut self, node: Option<usize>) -> Result<&[f32], RoundError> {
        self.after(node)
    }

    fn draft(&self, node: Option<usize>) -> Result<&ProposalProbs, RoundError> {
        let group = self.inner.iter().position(|inner| *inner == node);
        let told = group.and_then(|group| self.proposals.get(group));
        Ok(&told.ok_or(BadProposal::Missing)?.probs)
    }
}
