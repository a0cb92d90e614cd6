//! Deciding one draft tree: coupled or token verification of the target model's own distribution.

use std::sync::Arc;

use peer::RoundError;
use speculation::chance::RoundChance;
use speculation::noise::InnerCall;
use speculation::pipeline::Pipeline;
use speculation::proposal::{BadProposal, ProposalProbs};
use speculation::round::BlockInput;
use speculation::verification::tree::{self, NodeDistributions};
use speculation::verification::tree_rejection::{self, SiblingDistributions};
use speculation::verification::{Verdict, Verification};

use super::ScoringInput;

/// Decides `block` by its rows of logits (nodes + 1, their length): one path of the tree stands.
///
/// # Errors
/// If a row gives no distribution, or a draft distribution that token verification needs is missing.
pub(super) fn verify(
    block: &BlockInput,
    input: &mut ScoringInput,
    (rows, row_len): (&mut [f32], usize),
) -> Result<Verdict, RoundError> {
    let spec = &Arc::clone(&input.spec);
    let base_len = input.base_len as u32;
    let drafts = &block.drafts;
    let mut distributions = PathDistributions {
        pipeline: Pipeline::new(Arc::clone(&spec.sampling)),
        position: base_len,
        inner: drafts.inner(),
        block,
        input,
        rows,
        row_len,
    };
    let (ends, noise) = (&spec.sampling.end_tokens, &spec.noise);
    if spec.verification == Verification::COUPLED {
        return tree::verify(drafts, base_len, ends, noise, &mut distributions);
    }
    let mut chance = RoundChance::new(*noise, base_len, InnerCall::default());
    tree_rejection::verify(drafts, ends, &mut chance, &mut distributions)
}

/// The distributions along the path that is walked, computed from the rows of one forward when they are read.
struct PathDistributions<'a> {
    pipeline: Pipeline,
    position: u32,
    /// The nodes with children, in the order of the block's proposals.
    inner: Vec<Option<usize>>,
    block: &'a BlockInput,
    /// Its history is that of the path so far: penalties count the ancestors of a node, not its siblings.
    input: &'a mut ScoringInput,
    /// Logits (nodes + 1, `row_len`): after the output, then after each node.
    rows: &'a mut [f32],
    row_len: usize,
}

impl NodeDistributions<f32> for PathDistributions<'_> {
    type Error = RoundError;

    fn after(&mut self, node: Option<usize>) -> Result<&[f32], RoundError> {
        let row = node.map_or(0, |node| node + 1);
        if let Some(node) = node {
            let token = self.block.drafts.tokens()[node];
            self.input.history.push(token);
            self.position += 1;
        }
        let probs = &mut self.rows[row * self.row_len..][..self.input.spec.vocab_size as usize];
        (self.pipeline).probs(probs, &self.input.history, self.position)?;
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
        let told = group.and_then(|group| self.block.proposals.get(group));
        Ok(&told.ok_or(BadProposal::Missing)?.probs)
    }
}
