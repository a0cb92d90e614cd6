//! Proposals that are late, of another session, false or malformed.

use speculation::TokenId;
use speculation::pending::{Claim, MOST_PROPOSED, Parent, PathDigest, ProposedTree};

use crate::case::{END_TOKEN, VOCAB_SIZE};
use crate::dice::Dice;

/// Nodes of a tree that grows.
#[derive(Default)]
pub(crate) struct Nodes(Vec<(TokenId, Option<u32>, f32)>);

impl Nodes {
    /// Adds `token` after `parent`. Returns its number.
    pub(crate) fn push(&mut self, token: TokenId, parent: Option<u32>, survival: f32) -> u32 {
        self.0.push((token, parent, survival));
        self.0.len() as u32 - 1
    }

    /// Returns them as a proposal of `source`.
    pub(crate) fn proposed(self, after: u32, path: &[TokenId], source: u8) -> ProposedTree {
        let nodes = self.0.into_iter();
        let nodes =
            nodes.map(|(token, parent, survival)| (token, parent, Claim { source, survival }));
        ProposedTree::new(after, path, nodes)
    }

    fn chain(tokens: &[TokenId], survival: f32) -> Self {
        let mut nodes = Self::default();
        for (&token, at) in tokens.iter().zip(0_u32..) {
            nodes.push(token, at.checked_sub(1), survival);
        }
        nodes
    }
}

/// A proposal on top of an earlier end of `output`, which has come to hold some of it, or something else; then follow
/// `drafts`.
pub(crate) fn late(dice: &mut Dice, output: &[TokenId], drafts: &[TokenId]) -> ProposedTree {
    let after = dice.below(output.len() as u32 + 1) as usize;
    let from = after + dice.below((output.len() - after) as u32 + 1) as usize;
    let mut tokens = [&output[from..], drafts].concat();
    if !tokens.is_empty() && dice.happens(300) {
        let wrong = dice.below(tokens.len() as u32) as usize;
        tokens[wrong] = dice.below(VOCAB_SIZE);
    }
    tokens.truncate(MOST_PROPOSED);
    Nodes::chain(&tokens, 0.9).proposed(after as u32, &output[after..from], 1)
}

/// A proposal on top of `other`, the output of another session, and sometimes said to be on top of `output`.
pub(crate) fn of_another(dice: &mut Dice, output: &[TokenId], other: &[TokenId]) -> ProposedTree {
    let at = (output.len() as u32).min(other.len() as u32 - 1) as usize;
    let (after, path) = if dice.happens(500) {
        let after = dice.below(at as u32 + 1) as usize;
        (after, &other[after..at])
    } else {
        (output.len(), &[][..])
    };
    Nodes::chain(&other[at..], 0.7).proposed(after as u32, path, 2)
}

/// As many drafts as a proposal holds, at random, each said to be certain.
pub(crate) fn noise(dice: &mut Dice, output: &[TokenId]) -> ProposedTree {
    let mut nodes = Nodes::default();
    for at in 0..MOST_PROPOSED as u32 {
        let parent = dice.below(at + 1).checked_sub(1);
        let token = dice.below(VOCAB_SIZE);
        let mut held = nodes.0.iter().map(|&(token, parent, _)| (token, parent));
        // A sibling with the same token would make it no tree.
        if !held.any(|it| it == (token, parent)) && parent < Some(nodes.0.len() as u32) {
            nodes.push(token, parent, 1.0);
        }
    }
    nodes.proposed(output.len() as u32, &[], 3)
}

/// A proposal that no source of ours makes.
pub(crate) fn malformed(dice: &mut Dice, output: &[TokenId]) -> ProposedTree {
    let len = 1 + dice.below(6);
    let tokens: Vec<TokenId> = (0..len).map(|_| dice.below(VOCAB_SIZE)).collect();
    let mut proposed = Nodes::chain(&tokens, 1.0).proposed(output.len() as u32, &[], 4);
    let at = dice.below(len) as usize;
    let node = &mut proposed.nodes[at];
    match dice.below(10) {
        0 => node.token = dice.pick(&[VOCAB_SIZE, u32::MAX]),
        1 => node.claim.survival = dice.pick(&[f32::NAN, f32::INFINITY, -1.0, 0.0, 1.5]),
        2 => {
            let nodes = proposed.nodes.iter_mut().zip(1_u8..);
            nodes.for_each(|(node, at)| node.claim.survival = f32::from(at) / 8.0);
        }
        3 => node.parent = Parent::Node(dice.pick(&[at as u32, at as u32 + 1, u32::MAX])),
        4 => {
            let nodes = proposed.nodes.iter_mut();
            nodes.for_each(|node| node.claim.source = u8::MAX);
        }
        5 => proposed.after = dice.pick(&[proposed.after + 1, proposed.after + 1_000, u32::MAX]),
        6 => proposed.roots = vec![PathDigest(dice.below(u32::MAX)); MOST_PROPOSED],
        7 => proposed.nodes.clear(),
        8 => node.parent = Parent::Root(dice.pick(&[1, u32::MAX])),
        _ => node.token = END_TOKEN,
    }
    proposed
}
