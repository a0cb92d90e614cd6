//! Deciding one draft tree: coupled or token verification of the target model's own distribution.

use std::sync::Arc;

use peer::RoundError;
use speculation::TokenId;
use speculation::chance::RoundChance;
use speculation::history::History;
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
    let (spec, base_len) = (Arc::clone(&input.spec), input.base_len as u32);
    let drafts = &block.drafts;
    let mut path = PathRows {
        pipeline: &mut Pipeline::new(Arc::clone(&spec.sampling)),
        history: &mut input.history,
        nodes: drafts.tokens(),
        position: base_len,
        vocab_size: spec.vocab_size as usize,
        rows,
        row_len,
        read: None,
    };
    let (ends, noise) = (&spec.sampling.end_tokens, &spec.noise);
    if spec.verification == Verification::COUPLED {
        return tree::verify(drafts, base_len, ends, noise, &mut path);
    }
    let mut chance = RoundChance::new(*noise, base_len, InnerCall::default());
    let inner = drafts.inner();
    let mut distributions = PathDistributions { path, inner, block };
    tree_rejection::verify(drafts, ends, &mut chance, &mut distributions)
}

/// The distributions along the path that is walked, computed from the rows of one forward when they are read.
pub(super) struct PathRows<'a> {
    pub(super) pipeline: &'a mut Pipeline,
    /// That of the path so far: penalties count the ancestors of a node, not its siblings.
    pub(super) history: &'a mut History,
    /// The token of each node.
    pub(super) nodes: &'a [TokenId],
    /// Output position of the next token.
    pub(super) position: u32,
    pub(super) vocab_size: usize,
    /// Logits (nodes + 1, `row_len`): after the output, then after each node.
    pub(super) rows: &'a mut [f32],
    pub(super) row_len: usize,
    /// Where the logits go that are read, if they are wanted.
    pub(super) read: Option<&'a mut Vec<f32>>,
}

impl NodeDistributions<f32> for PathRows<'_> {
    type Error = RoundError;

    fn after(&mut self, node: Option<usize>) -> Result<&[f32], RoundError> {
        if let Some(node) = node {
            self.history.push(self.nodes[node]);
            self.position += 1;
        }
        let row = node.map_or(0, |node| node + 1);
        let probs = &mut self.rows[row * self.row_len..][..self.vocab_size];
        if let Some(read) = &mut self.read {
            read.extend_from_slice(probs);
        }
        (self.pipeline).probs(probs, self.history, self.position)?;
        Ok(probs)
    }
}

/// The target's distributions along a path, with the draft model's beside them.
struct PathDistributions<'a> {
    path: PathRows<'a>,
    /// The nodes with children, in the order of the block's proposals.
    inner: Vec<Option<usize>>,
    block: &'a BlockInput,
}

impl NodeDistributions<f32> for PathDistributions<'_> {
    type Error = RoundError;

    fn after(&mut self, node: Option<usize>) -> Result<&[f32], RoundError> {
        self.path.after(node)
    }
}

impl SiblingDistributions<f32> for PathDistributions<'_> {
    type Error = RoundError;

    fn target(&mut self, node: Option<usize>) -> Result<&[f32], RoundError> {
        self.path.after(node)
    }

    fn draft(&self, node: Option<usize>) -> Result<&ProposalProbs, RoundError> {
        let group = self.inner.iter().position(|inner| *inner == node);
        let told = group.and_then(|group| self.block.proposals.get(group));
        Ok(&told.ok_or(BadProposal::Missing)?.probs)
    }
}
