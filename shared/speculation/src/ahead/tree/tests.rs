//! A tree that grows, is cut to what was chosen, and is told as proposals.

use super::*;
use crate::pending::{Bounds, PathDigest, PendingTree, ProposedTree};

const END: TokenId = 99;

fn growth() -> Growth<'static> {
    Growth {
        levels: 8,
        nodes: 64,
        least: 0.01,
        rows: 4,
        row_cost: 0.1,
        ends: &[END],
    }
}

/// A draft model's proposals after `path`: of each depth others.
fn proposed(path: &[TokenId]) -> Vec<TokenId> {
    let last = path.last().copied().unwrap_or_default();
    (0..3)
        .map(|rank| (last * 3 + rank + path.len() as u32) % 97)
        .collect()
}

/// A drafter, and what it knows of the output.
#[derive(Default)]
struct Drafter {
    tree: AheadTree,
    acceptance: Acceptance,
    output: Vec<TokenId>,
}

impl Drafter {
    /// A forward: computes the rows of some leaves. Returns what is proposed, if anything is new.
    fn forward(&mut self, growth: Growth<'_>) -> Option<ProposedTree> {
        let leaves = match self.tree.grow(growth) {
            Leaves::None => return None,
            Leaves::Root => vec![None],
            Leaves::Nodes(nodes) => nodes.into_iter().map(Some).collect(),
        };
        for node in leaves {
            let path = [&self.output[..], &self.tree.path(node)].concat();
            self.tree.computed(node, Margin::default(), proposed(&path));
        }
        self.tree.fill(&self.acceptance, growth);
        self.tree.propose(self.output.len() as u32)
    }

    fn commit(&mut self, tokens: &[TokenId]) {
        for &token in tokens {
            self.tree.advance(token, &mut self.acceptance);
            self.output.push(token);
        }
    }

    /// The tokens whose rows were computed, and their parents.
    fn sequence(&self) -> (Vec<TokenId>, Vec<Option<u32>>) {
        let (mut tokens, mut parents) = (Vec::new(), Vec::new());
        self.tree.sequence(&mut tokens, &mut parents);
        (tokens, parents)
    }

    /// Every path of the tree.
    fn paths(&self) -> Vec<Vec<TokenId>> {
        let nodes = 0..self.tree.len() as u32;
        nodes.map(|at| self.tree.path(Some(at))).collect()
    }
}

#[test]
fn the_first_row_is_that_of_the_text_and_then_the_best_leaves_grow() {
    let mut drafter = Drafter::default();
    let first = drafter.forward(growth()).expect("proposals");
    let tokens: Vec<TokenId> = first.nodes.iter().map(|node| node.token).collect();
    assert_eq!(tokens, proposed(&[]));
    assert_eq!(
        (first.after, &first.roots[..]),
        (0, &[PathDigest::EMPTY][..])
    );
    // What pays: a row costs a tenth of a forward.
    let Leaves::Nodes(leaves) = drafter.tree.grow(growth()) else {
        panic!("leaves");
    };
    assert_eq!(leaves[0], 0);
    assert!(leaves.len() > 1, "{leaves:?}");
    // Where it costs as much as a forward, the best alone does.
    let mut drafter = Drafter::default();
    drafter.forward(growth());
    let dear = Growth {
        row_cost: 1.0,
        ..growth()
    };
    assert_eq!(drafter.tree.grow(dear), Leaves::Nodes(vec![0]));
}

#[test]
fn a_tree_stays_within_its_bounds() {
    let mut drafter = Drafter::default();
    let bounds = Growth {
        nodes: 40,
        levels: 3,
        ..growth()
    };
    for _ in 0..50 {
        drafter.forward(bounds);
    }
    assert!(drafter.tree.len() <= 40, "{}", drafter.tree.len());
    assert!(drafter.paths().iter().all(|path| path.len() <= 3));
    assert_eq!(drafter.tree.grow(bounds), Leaves::None);
    // A drafter that is to rest does not even read the text on.
    let none = Growth {
        nodes: 0,
        ..growth()
    };
    assert_eq!(AheadTree::default().grow(none), Leaves::None);
    // Nothing is drafted after an end, or that is worth too little.
    let mut drafter = Drafter::default();
    drafter.tree.computed(None, Margin::default(), vec![END, 5]);
    let none = Growth {
        least: 0.4,
        ..growth()
    };
    drafter.tree.fill(&drafter.acceptance, none);
    assert_eq!(drafter.tree.len(), 1);
    assert_eq!(drafter.tree.grow(none), Leaves::None);
}

#[test]
fn what_was_chosen_makes_the_branch_below_it_the_tree() {
    let mut drafter = Drafter::default();
    for _ in 0..6 {
        drafter.forward(growth());
    }
    let before = drafter.paths();
    let (tokens, parents) = drafter.sequence();
    let chosen = proposed(&[])[0];
    drafter.commit(&[chosen]);
    let expected = before
        .iter()
        .filter(|path| path.len() > 1 && path[0] == chosen);
    let expected: Vec<_> = expected.map(|path| path[1..].to_vec()).collect();
    assert_eq!(drafter.paths(), expected);
    // Rows that were computed stay, in their order.
    let path_of = |tokens: &[TokenId], parents: &[Option<u32>], at: usize| {
        let up = |at: &u32| parents[*at as usize];
        let path = std::iter::successors(Some(at as u32), up);
        let mut path: Vec<_> = path.map(|at| tokens[at as usize]).collect();
        path.reverse();
        path
    };
    let rows = (0..tokens.len()).map(|at| path_of(&tokens, &parents, at));
    let rows = rows.filter(|path| path.len() > 1 && path[0] == chosen);
    let (tokens, parents) = drafter.sequence();
    let left = (0..tokens.len()).map(|at| path_of(&tokens, &parents, at));
    assert!(left.eq(rows.map(|path| path[1..].to_vec())));
    // Of what none proposed nothing is left, and the text's own row is next.
    drafter.commit(&[98]);
    assert!(drafter.tree.is_empty());
    assert_eq!(drafter.tree.grow(growth()), Leaves::Root);
}

/// Where survival rises since what was unlikely was chosen, what was not worth it becomes so without a forward.
#[test]
fn rows_propose_more_once_it_is_worth_it() {
    let mut drafter = Drafter::default();
    drafter.tree.computed(None, Margin::default(), vec![1, 2]);
    let picky = Growth {
        least: 0.2,
        ..growth()
    };
    drafter.tree.fill(&drafter.acceptance, picky);
    assert_eq!(drafter.tree.len(), 2);
    assert_eq!(drafter.tree.grow(picky), Leaves::Nodes(vec![0, 1]));
    drafter
        .tree
        .computed(Some(1), Margin::default(), vec![7, 8, 9]);
    drafter.tree.fill(&drafter.acceptance, picky);
    assert_eq!(drafter.paths(), [vec![1], vec![2]]);
    drafter.commit(&[2]);
    assert!(drafter.tree.is_empty());
    drafter.tree.fill(&drafter.acceptance, picky);
    assert_eq!(drafter.paths(), [[7], [8]]);
}

#[test]
fn which_of_a_rows_tokens_was_chosen_is_learnt() {
    let mut drafter = Drafter::default();
    let of = |drafter: &Drafter, rank| drafter.acceptance.of(Margin::default(), rank);
    let before = [0, 1].map(|rank| of(&drafter, rank));
    for _ in 0..50 {
        drafter.forward(growth());
        let token = proposed(&drafter.output)[1];
        drafter.commit(&[token]);
    }
    assert!(of(&drafter, 0) < before[0] / 2.0);
    assert!(of(&drafter, 1) > before[1] * 2.0);
    // A text whose row was not computed says nothing.
    let before = [0, 1].map(|rank| of(&drafter, rank));
    drafter.tree = AheadTree::default();
    drafter.commit(&[5, 6, 7]);
    assert_eq!([0, 1].map(|rank| of(&drafter, rank)), before);
}

/// Proposals that all arrive make the same tree elsewhere, whatever was chosen in between.
#[test]
fn what_is_told_is_what_was_drafted() {
    let mut drafter = Drafter::default();
    let mut pending = PendingTree::default();
    let bounds = Bounds {
        levels: 100,
        vocab_size: 100,
        ends: &[END],
    };
    for turn in 0..200_usize {
        if let Some(proposed) = drafter.forward(growth()) {
            let received = pending.receive(&proposed, &drafter.output, bounds);
            assert_eq!((received.stale, received.malformed), (0, 0), "{proposed:?}");
        }
        if turn % 3 == 2 {
            let token = proposed(&drafter.output)[turn % 2];
            drafter.commit(&[token]);
            pending.advance(token);
        }
        assert_eq!(pending.len(), drafter.tree.len());
        let paths = drafter.paths();
        assert!(paths.iter().all(|path| pending.shared(path) == path.len()));
    }
    assert!(pending.levels() > 3);
}
