//! Token trees: every node has the bits of its path forwarded alone, in any company, also after
//! paths of earlier trees were kept.

use std::iter::zip;

use model::{Model, SequenceCache};
use speculation::{
    TokenId,
    ports::{KvCache, LanguageModel, Rows, Segment},
    tree_paths::TreePaths,
};

use super::{for_each, fresh};

/// Drafts of four levels: a chain, each of whose nodes has three siblings.
const COMB: [Option<u32>; 16] = {
    const fn level(lead: Option<u32>) -> [Option<u32>; 4] {
        [lead; 4]
    }
    let levels = [level(None), level(Some(0)), level(Some(4)), level(Some(8))];
    let mut comb = [None; 16];
    let mut node = 0;
    while node < 16 {
        comb[node] = levels[node / 4][node % 4];
        node += 1;
    }
    comb
};

/// SplitMix64, for the shapes.
struct Shapes(u64);

impl Shapes {
    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    /// None, a comb, a comb in another topological order, or any tree of up to 16 nodes.
    fn parents(&mut self) -> Vec<Option<u32>> {
        match self.below(5) {
            0 => Vec::new(),
            1 => COMB.to_vec(),
            2 => self.reorder(&COMB),
            _ => (0..=self.below(16))
                .map(|node| self.below(node + 1).checked_sub(1).map(|node| node as u32))
                .collect(),
        }
    }

    /// The same tree with its nodes in another order, parents before children.
    fn reorder(&mut self, parents: &[Option<u32>]) -> Vec<Option<u32>> {
        let mut places: Vec<Option<u32>> = vec![None; parents.len()];
        let mut reordered = Vec::new();
        while reordered.len() < parents.len() {
            let node = self.below(parents.len());
            let parent = parents[node].map(|parent| places[parent as usize]);
            if places[node].is_none() && parent != Some(None) {
                places[node] = Some(reordered.len() as u32);
                reordered.push(parent.flatten());
            }
        }
        reordered
    }
}

/// A sequence that grows by chains and by paths of trees.
struct Growing {
    cache: SequenceCache,
    /// What the cache holds.
    tokens: Vec<TokenId>,
    /// What comes next.
    next: Vec<TokenId>,
    parents: Vec<Option<u32>>,
    scored_from: usize,
}

impl Growing {
    fn draw(&mut self, shapes: &mut Shapes) {
        self.parents = shapes.parents();
        // A tree may begin right after what the cache holds, or after a few tokens.
        let trunk = shapes.below(4).max(usize::from(self.parents.is_empty()));
        let len = trunk + self.parents.len();
        self.next = (0..len).map(|_| shapes.below(384) as TokenId).collect();
        self.scored_from = shapes.below(len + 1);
    }

    fn trunk(&self) -> usize {
        self.next.len() - self.parents.len()
    }

    fn paths(&self) -> TreePaths {
        let mut paths = TreePaths::default();
        paths.read(&self.parents, self.next.len()).unwrap();
        paths
    }

    /// Everything that the token at `index` of the next ones sees, itself the last.
    fn context(&self, index: usize) -> Vec<TokenId> {
        let mut context = self.tokens.clone();
        context.extend(&self.next[..self.trunk().min(index + 1)]);
        if let Some(node) = index.checked_sub(self.trunk()) {
            let paths = self.paths();
            let path = paths.path(node).iter();
            context.extend(path.map(|&node| self.next[self.trunk() + node as usize]));
        }
        context
    }

    /// Keeps the path to a node, or none.
    fn keep(&mut self, shapes: &mut Shapes) {
        let from = self.tokens.len() + self.trunk();
        let kept = shapes.below(self.parents.len() + 1).checked_sub(1);
        let last = kept.map_or(self.trunk(), |node| self.trunk() + node + 1);
        self.tokens = match last.checked_sub(1) {
            Some(last) => self.context(last),
            None => std::mem::take(&mut self.tokens),
        };
        if !self.parents.is_empty() {
            let paths = self.paths();
            let path = kept.map_or(&[][..], |node| paths.path(node));
            self.cache.keep(from, path, &[]);
        }
        assert_eq!(self.cache.len(), self.tokens.len());
    }
}

/// The last row of each scored position's context, forwarded alone.
fn alone(model: &mut Model, sequences: &[Growing]) -> (Vec<f32>, Vec<f32>) {
    let shape = model.shape();
    let (mut logits, mut hidden) = (Vec::new(), Vec::new());
    for sequence in sequences {
        for index in sequence.scored_from..sequence.next.len() {
            let row = fresh(model, &sequence.context(index));
            logits.extend_from_slice(&row.0[row.0.len() - shape.vocab_size..]);
            hidden.extend_from_slice(&row.1[row.1.len() - shape.hidden_size..]);
        }
    }
    (logits, hidden)
}

#[test]
fn a_node_is_the_end_of_its_path() {
    let mut scored_nodes = 0;
    for_each(|what, model, input| {
        let mut shapes = Shapes(scored_nodes as u64);
        let mut sequences: Vec<_> = [1, 7, 15, 30]
            .map(|held| {
                let mut cache = model.new_cache();
                super::extend(model, &mut cache, &input[..held]);
                Growing {
                    cache,
                    tokens: input[..held].to_vec(),
                    next: Vec::new(),
                    parents: Vec::new(),
                    scored_from: 0,
                }
            })
            .into();
        for round in 0..5 {
            for sequence in &mut sequences {
                sequence.draw(&mut shapes);
            }
            let expected = alone(model, &sequences);
            let mut rows = Rows {
                want_hidden: true,
                ..Rows::default()
            };
            let mut batch: Vec<_> = (sequences.iter_mut())
                .map(|sequence| Segment {
                    cache: &mut sequence.cache,
                    tokens: &sequence.next,
                    parents: &sequence.parents,
                    scored_from: sequence.scored_from,
                })
                .collect();
            model.forward(&mut batch, &mut rows).unwrap();
            assert!(rows.logits == expected.0, "{what}, logits of round {round}");
            assert!(
                rows.hidden == expected.1,
                "{what}, hidden states of round {round}"
            );
            for sequence in &mut sequences {
                scored_nodes += sequence.next.len() - sequence.scored_from.max(sequence.trunk());
                sequence.keep(&mut shapes);
            }
        }
    });
    // The draws were no accident of chains.
    assert!(scored_nodes > 500, "{scored_nodes} nodes");
}

#[test]
fn another_topological_order_is_the_same_tree() {
    for_each(|what, model, input| {
        let tokens = &input[..16];
        let width = model.shape().vocab_size;
        let mut tree = |parents: &[Option<u32>], tokens: &[TokenId]| {
            let mut cache = model.new_cache();
            super::extend(model, &mut cache, &input[16..]);
            let mut rows = Rows::default();
            let segment = Segment {
                cache: &mut cache,
                tokens,
                parents,
                scored_from: 0,
            };
            model.forward(&mut [segment], &mut rows).unwrap();
            rows.logits
        };
        let plain = tree(&COMB, tokens);
        // Level by level, the leading node of each level last.
        let order = [1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12];
        let parents: Vec<_> = (0..16_u32)
            .map(|node| (node / 4).checked_sub(1).map(|level| 4 * level + 3))
            .collect();
        let other = tree(&parents, &order.map(|node: usize| tokens[node]));
        for (row, node) in zip(other.chunks(width), order) {
            assert!(
                row == &plain[node * width..][..width],
                "{what}, node {node}"
            );
        }
    });
}
