//! Coupled verification of a draft tree: the verifier's own choices lead through it.
//!
//! At a node the verifier's choice for the next output position is taken from the distribution after that node.
//! A child that holds it is accepted, and the walk goes on there; without one the choice is emitted and
//! the round ends. So the emitted tokens are the target distribution's seeded sample, whatever was
//! drafted: exact for any distribution that is a function of the prefix. Noise is keyed by output position, which
//! for a node is its depth, not its index. On a chain it is [`super::coupled`].

use super::{LastToken, Verdict};
use crate::TokenId;
use crate::coupled::choice;
use crate::draft_tree::DraftTree;
use crate::noise::Noise;
use crate::real::Real;

/// The distributions after the nodes of a draft tree.
pub trait NodeDistributions<F> {
    /// Why there are none.
    type Error;

    /// The target distribution (vocab) at the position after `node`; none is the root, the output
    /// before the block. Asked for along the walked path only, root first, each once.
    ///
    /// # Errors
    /// If a model's row gives no distribution.
    fn after(&mut self, node: Option<usize>) -> Result<&[F], Self::Error>;
}

/// Decides `drafts`, which follow `base_len` output tokens; one of `ends` ends the output. Without
/// drafts it gives one token of the distribution at the root. What the target adds is a bonus after a leaf,
/// recovered after any other node.
///
/// # Errors
/// Whatever `distributions` fails with.
pub fn verify<F: Real, L: NodeDistributions<F>>(
    drafts: &DraftTree,
    base_len: u32,
    ends: &[TokenId],
    noise: &Noise,
    distributions: &mut L,
) -> Result<Verdict, L::Error> {
    let (mut emitted, mut path) = (Vec::new(), Vec::new());
    let mut node = None;
    loop {
        let position = base_len + emitted.len() as u32;
        let chosen = choice(distributions.after(node)?, noise, position);
        emitted.push(chosen);
        let last = match drafts.child(node, chosen) {
            Some(child) => {
                path.push(child as u32);
                node = Some(child);
                if !ends.contains(&chosen) {
                    continue;
                }
                LastToken::AcceptedEnd
            }
            None if node.map_or(drafts.is_empty(), |node| drafts.is_leaf(node)) => LastToken::Bonus,
            None => LastToken::Recovered,
        };
        return Ok(Verdict::new(emitted, path, last));
    }
}
