//! The tree of a drafter that drafts ahead.

mod proposing;

use super::acceptance::{Acceptance, Margin};
use crate::TokenId;
use crate::draft_tree::beneath;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Node {
    token: TokenId,
    parent: Option<u32>,
    /// Nodes before it on its path.
    depth: u32,
    survival: f32,
    /// Number of its row, once that is computed or about to be.
    row: Option<u32>,
}

/// What the draft model says of the token after a node, or after the output.
#[derive(Clone, Debug, Default, PartialEq)]
struct Row {
    margin: Margin,
    /// What it proposes, its own choice first; nothing before it was computed.
    tokens: Vec<TokenId>,
    /// The first so many of them are nodes.
    added: usize,
}

/// The rows that the next forward computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// None: the tree is as large as it may be.
    None,
    /// That of the last token before the tree, of which nothing is known yet.
    Root,
    /// Those of these nodes.
    Nodes(Vec<u32>),
}

/// How far a tree may grow.
#[derive(Clone, Copy, Debug)]
pub struct Growth<'a> {
    /// Most levels.
    pub levels: u32,
    /// Most nodes.
    pub nodes: usize,
    /// Least survival of a node.
    pub least: f32,
    /// Most rows of a forward.
    pub rows: usize,
    /// Time that one more row adds to a forward, as a share of one with a single row.
    pub row_cost: f32,
    /// Tokens that nothing follows.
    pub ends: &'a [TokenId],
}

/// What may follow the output, as far as a drafter has drafted: parents before children.
#[derive(Clone, Debug, Default)]
pub struct AheadTree {
    nodes: Vec<Node>,
    /// The rows of nodes, in the order in which they were computed, each with its node.
    rows: Vec<(u32, Row)>,
    /// That of the last token of the output, once it was computed.
    root: Option<Row>,
    /// The first so many nodes were proposed.
    told: usize,
}

impl AheadTree {
    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether nothing is drafted.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Appends the nodes whose rows were computed, or are to be, in that order, and their parents among them.
    pub fn sequence(&self, tokens: &mut Vec<TokenId>, parents: &mut Vec<Option<u32>>) {
        for &(at, _) in &self.rows {
            let node = &self.nodes[at as usize];
            tokens.push(node.token);
            let parent = node.parent.map(|parent| self.nodes[parent as usize].row);
            parents.push(parent.flatten());
        }
    }

    /// Returns the tokens on the way to `node` (none: the output), its own last.
    pub fn path(&self, node: Option<u32>) -> Vec<TokenId> {
        let up = |at: &u32| self.nodes[*at as usize].parent;
        let path = std::iter::successors(node, up);
        let mut tokens: Vec<_> = path.map(|at| self.nodes[at as usize].token).collect();
        tokens.reverse();
        tokens
    }

    /// Chooses the rows of the next forward, which are computed from now on: of the leaves of the largest survival as many as
    /// add more to the survival of what is drafted in a second than they cost.
    pub fn grow(&mut self, growth: Growth<'_>) -> Leaves {
        if self.nodes.len() >= growth.nodes {
            return Leaves::None;
        }
        if self.root.is_none() {
            return Leaves::Root;
        }
        let nodes = self.nodes.iter().zip(0_u32..);
        let mut leaves: Vec<_> = nodes
            .filter(|(node, _)| {
                let is_open = node.row.is_none() && node.depth + 1 < growth.levels;
                is_open && node.survival >= growth.least && !growth.ends.contains(&node.token)
            })
            .map(|(node, at)| (node.survival, at))
            .collect();
        leaves.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        let (mut gained, mut seconds) = (0.0, 1.0 - growth.row_cost);
        let pays = |&&(survival, _): &&(f32, u32)| {
            let pays = survival * seconds >= gained * growth.row_cost;
            gained += survival;
            seconds += growth.row_cost;
            pays
        };
        let chosen: Vec<u32> = (leaves.iter().take(growth.rows).take_while(pays))
            .map(|&(_, at)| at)
            .collect();
        if chosen.is_empty() {
            return Leaves::None;
        }
        for &at in &chosen {
            self.nodes[at as usize].row = Some(self.rows.len() as u32);
            self.rows.push((at, Row::default()));
        }
        Leaves::Nodes(chosen)
    }

    /// Takes note of what the row of `node` (none: that of the last token of the output) proposes, the draft model's choice
    /// first; [`fill`](Self::fill) makes nodes of it.
    pub fn computed(&mut self, node: Option<u32>, margin: Margin, tokens: Vec<TokenId>) {
        let row = Row {
            margin,
            tokens,
            added: 0,
        };
        match node.and_then(|at| self.nodes[at as usize].row) {
            Some(index) => self.rows[index as usize].1 = row,
            None => self.root = Some(row),
        }
    }

    /// Makes nodes of what rows propose, as far as it is worth it by `acceptance` and there is room.
    pub fn fill(&mut self, acceptance: &Acceptance, growth: Growth<'_>) {
        let nodes = &mut self.nodes;
        let root = self.root.iter_mut().map(|row| (None, row));
        let rows = self.rows.iter_mut().map(|(at, row)| (Some(*at), row));
        for (parent, row) in root.chain(rows) {
            let (survival, depth) = parent.map_or((1.0, 0), |at| {
                let node = &nodes[at as usize];
                (node.survival, node.depth + 1)
            });
            for &token in &row.tokens[row.added..] {
                let survival = survival * acceptance.of(row.margin, row.added);
                if survival < growth.least || nodes.len() >= growth.nodes {
                    break;
                }
                row.added += 1;
                nodes.push(Node {
                    token,
                    parent,
                    depth,
                    survival,
                    row: None,
                });
            }
        }
    }

    /// Follows the output, which grew by `token`: the branch below it is the tree from now on. `acceptance` learns which of
    /// a row's tokens it was.
    pub fn advance(&mut self, token: TokenId, acceptance: &mut Acceptance) {
        if let Some(row) = &self.root {
            let rank = row.tokens.iter().position(|&it| it == token);
            acceptance.observe(row.margin, rank);
        }
        let is_it = |node: &Node| node.parent.is_none() && node.token == token;
        let Some(chosen) = self.nodes.iter().position(is_it) else {
            *self = Self::default();
            return;
        };
        let taken = self.nodes[chosen];
        self.root = taken
            .row
            .map(|row| std::mem::take(&mut self.rows[row as usize].1));
        let moved = beneath(self.nodes.iter().map(|node| node.parent), chosen);
        let stays = self
            .nodes
            .iter()
            .zip(&moved)
            .filter(|(_, moved)| moved.is_some());
        let kept = stays.map(|(node, _)| Node {
            parent: node.parent.and_then(|parent| moved[parent as usize]),
            depth: node.depth - 1,
            survival: (node.survival / taken.survival).min(1.0),
            ..*node
        });
        let kept: Vec<Node> = kept.collect();
        let told = moved[..self.told].iter().filter(|moved| moved.is_some());
        self.told = told.count();
        self.nodes = kept;
        self.rows.retain_mut(|(at, _)| {
            let moved = moved[*at as usize];
            *at = moved.unwrap_or_default();
            moved.is_some()
        });
        for (row, (at, _)) in (0..).zip(&self.rows) {
            self.nodes[*at as usize].row = Some(row);
        }
    }
}

#[cfg(test)]
mod tests;
