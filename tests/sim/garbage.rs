//! Proposals that are late, of another session, false or malformed.

use speculation::TokenId;
use speculation::draft_tree::DraftTree;
use speculation::pending::{Claim, MOST_PROPOSED, ProposedTree};

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
    pub(crate) fn proposed(self, after: u32, path: Vec<TokenId>, source: u8) -> ProposedTree {
        let nodes = self.0.iter();
        let tokens = nodes.clone().map(|&(token, ..)| token).collect();
        let parents = nodes.clone().map(|&(_, parent, _)| parent).collect();
        let claims = nodes.map(|&(.., survival)| Claim { source, survival });
        ProposedTree {
            after,
            path,
            tree: DraftTree::new(tokens, parents).expect("siblings that differ"),
            claims: claims.collect(),
        }
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
    Nodes::chain(&tokens, 0.9).proposed(after as u32, output[after..from].to_vec(), 1)
}

/// A proposal on top of `other`, the output of another session, and sometimes said to be on top of `output`.
pub(crate) fn of_another(dice: &mut Dice, output: &[TokenId], other: &[TokenId]) -> ProposedTree {
    let at = (output.len() as u32).min(other.len() as u32 - 1) as usize;
    let (after, path) = if dice.happens(500) {
        let after = dice.below(at as u32 + 1) as usize;
        (after, other[after..at].to_vec())
    } else {
        (output.len(), Vec::new())
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
    nodes.proposed(output.len() as u32, Vec::new(), 3)
}

/// A proposal that no source of ours makes.
pub(crate) fn malformed(dice: &mut Dice, output: &[TokenId]) -> ProposedTree {
    let len = 1 + dice.below(6);
    let tokens: Vec<TokenId> = (0..len).map(|_| dice.below(VOCAB_SIZE)).collect();
    let mut proposed = Nodes::chain(&tokens, 1.0).proposed(output.len() as u32, Vec::new(), 4);
    let node = dice.below(len) as usize;
    match dice.below(9) {
        0 => {
            let mut tokens = tokens;
            tokens[node] = dice.pick(&[VOCAB_SIZE, u32::MAX]);
            proposed.tree = tokens.into();
        }
        1 => {
            let survival = dice.pick(&[f32::NAN, f32::INFINITY, -1.0, 0.0, 1.5]);
            proposed.claims[node].survival = survival;
        }
        2 => {
            let claims = proposed.claims.iter_mut().zip(1_u8..);
            claims.for_each(|(claim, at)| claim.survival = f32::from(at) / 8.0);
        }
        3 => proposed.claims.truncate(node),
        4 => {
            let claims = proposed.claims.iter_mut();
            claims.for_each(|claim| claim.source = u8::MAX);
        }
        5 => proposed.after = dice.pick(&[proposed.after + 1, proposed.after + 1_000, u32::MAX]),
        6 => proposed.path = vec![VOCAB_SIZE; dice.below(MOST_PROPOSED as u32) as usize],
        7 => {
            proposed.tree = DraftTree::default();
            proposed.claims.clear();
        }
        _ => {
            let mut tokens = tokens;
            tokens[node] = END_TOKEN;
            proposed.tree = tokens.into();
        }
    }
    proposed
}
