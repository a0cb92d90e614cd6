//! Token verification of a draft tree: the children of a node are tested in turn.
//!
//! Multi-round rejection (Miao et al., "SpecInfer: Accelerating Large Language Model Serving with Tree-based
//! Speculative Inference and Verification", 2024, Algorithm 2), with siblings drawn without replacement. At a node
//! with target distribution π, `r_1 = π`; child k, drawn from `e_k`, is accepted with probability
//! `min(1, r_k(x)/e_k(x))`, and a refusal leaves
//!
//! ```text
//! r_(k+1) = norm((r_k - e_k)_+)
//! ```
//!
//! of which the token is drawn that is emitted once all are refused. Each test emits `r_k`, whatever came before it:
//! `min(e_k, r_k) + rej_k · r_(k+1) = r_k`. So by induction from the last child the node emits π. What is below an
//! accepted child was drafted without regard to the tests above it, so the walk begins anew there. `e_1 = q`, and
//! `e_(k+1)` is `e_k` without its own token, normalised; a child that was not drawn, such as Max-Gram's, is a point:
//! `e_k` is one-hot. On a chain it is [`super::token`].

use super::residual::{ResidualWeights, excess, residual_over_target};
use super::{LastToken, Verdict, token::acceptance_ratio};
use crate::TokenId;
use crate::chance::Chance;
use crate::draft_tree::DraftTree;
use crate::noise::Purpose;
use crate::proposal::{BadProposal, ProposalProbs};
use crate::real::Real;

/// The distributions at the nodes of a draft tree.
pub trait SiblingDistributions<F> {
    /// Why there are none.
    type Error: From<BadProposal>;

    /// The target distribution (vocab) at the position after `node`; none is the root, the output before the block.
    /// Asked for along the walked path only, root first, each once.
    ///
    /// # Errors
    /// If a model's row gives no distribution.
    fn target(&mut self, node: Option<usize>) -> Result<&[F], Self::Error>;

    /// The proposal of the children of `node`: the draft distribution of the first child, or a point for each.
    ///
    /// # Errors
    /// If the drafter sent no proposal for them.
    fn draft(&self, node: Option<usize>) -> Result<&ProposalProbs, Self::Error>;
}

/// Decides `drafts`; one of `ends` ends the output. Without drafts it gives one token of the target distribution at the
/// root. What the target adds is a bonus after a leaf, recovered after any other node.
///
/// The accept test of a node is keyed by its index, the last draw by its depth.
///
/// # Errors
/// Whatever `distributions` fails with, and [`BadProposal`] where a draft distribution is missing, malformed, or gives
/// its own token no mass.
pub fn verify<F: Real, L: SiblingDistributions<F>>(
    drafts: &DraftTree,
    ends: &[TokenId],
    chance: &mut impl Chance<F>,
    distributions: &mut L,
) -> Result<Verdict, L::Error> {
    let mut verdict = Verdict::new(Vec::new(), Vec::new(), LastToken::AcceptedEnd);
    let mut siblings = Siblings::default();
    let mut node = None;
    loop {
        siblings.begin(distributions.target(node)?);
        let mut children = drafts.children(node).peekable();
        let is_leaf = children.peek().is_none();
        if !is_leaf {
            siblings.drawn_from(distributions.draft(node)?)?;
        }
        let mut accepted = None;
        for child in children {
            let token = drafts.tokens()[child];
            let ratio = siblings.ratio(token)?;
            if chance.accepts(child as u32, ratio) {
                accepted = Some((child, token));
                break;
            }
            siblings.refuse(token);
        }
        let depth = verdict.emitted.len() as u32;
        let Some((child, token)) = accepted else {
            let (last, purpose) = if is_leaf {
                (LastToken::Bonus, Purpose::Bonus)
            } else {
                (LastToken::Recovered, Purpose::Residual)
            };
            verdict.last = last;
            let added = chance.token(purpose, depth, &siblings.left);
            verdict.emitted.push(added);
            return Ok(verdict);
        };
        verdict.emitted.push(token);
        verdict.path.push(child as u32);
        node = Some(child);
        if ends.contains(&token) {
            return Ok(verdict);
        }
    }
}

/// The siblings at one node, while they are tested.
#[derive(Debug, Default)]
struct Siblings<F> {
    /// What the refusals so far left of the target distribution (vocab).
    left: Vec<F>,
    /// The distribution of the next sibling (vocab), as far as it is not a point.
    draft: Vec<F>,
    are_points: bool,
}

impl<F: Real> Siblings<F> {
    /// Begins at a node with this target distribution.
    fn begin(&mut self, target: &[F]) {
        self.left.clear();
        self.left.extend_from_slice(target);
    }

    /// Stores the proposal of the children.
    fn drawn_from(&mut self, proposal: &ProposalProbs) -> Result<(), BadProposal> {
        self.draft.clear();
        self.draft.resize(self.left.len(), F::zero());
        self.are_points = matches!(proposal, ProposalProbs::Point);
        if self.are_points {
            return Ok(());
        }
        proposal.write(&mut self.draft)
    }

    /// `r_k(x)/e_k(x)` of the sibling `token`.
    fn ratio(&mut self, token: TokenId) -> Result<F, BadProposal> {
        let at = token as usize;
        if self.are_points {
            self.draft[at] = F::one();
        }
        if self.draft[at] <= F::zero() {
            return Err(BadProposal::TokenWithoutMass(token));
        }
        Ok(acceptance_ratio(self.left[at], self.draft[at]))
    }

    /// The sibling `token` is refused: the residual is left, and the distribution without it draws the next.
    fn refuse(&mut self, token: TokenId) {
        let weights = ResidualWeights::of(0.0);
        let mass = excess(weights, &self.left, &self.draft);
        if mass > 0.0 {
            residual_over_target(weights, mass, &mut self.left, &self.draft);
        } else {
            // Rounding left nothing: it was refused with next to no probability.
            without(&mut self.left, token);
        }
        if self.are_points {
            self.draft[token as usize] = F::zero();
        } else {
            without(&mut self.draft, token);
        }
    }
}

/// `probs` without `token`, normalised; as it is if there is no other token.
fn without<F: Real>(probs: &mut [F], token: TokenId) {
    let mass: f64 = (probs.iter().zip(0..))
        .filter(|&(_, id)| id != token)
        .map(|(mass, _)| mass.as_f64())
        .sum();
    if mass > 0.0 {
        probs[token as usize] = F::zero();
        for probability in probs {
            *probability = F::from_f64(probability.as_f64() / mass);
        }
    }
}
