//! A ragged batch, as tokens of sequences.

use llama_cpp::{BadEntry, BatchToken, Context, DecodeError, SequenceId};
use speculation::{
    ports::{ModelShape, Rows, Segment},
    tree_paths::TreePaths,
};

use super::{
    SharedContext,
    cache::{HeldTree, LlamaCache},
};
use crate::forward_error::{ForwardError, check_segment};

/// Reads the trees, and refuses what cannot be forwarded.
pub(super) fn check(
    batch: &[Segment<'_, LlamaCache>],
    shape: ModelShape,
) -> Result<Vec<TreePaths>, ForwardError> {
    let read = |segment: &Segment<'_, LlamaCache>| {
        if segment.cache.tree.is_some() {
            let from = segment.cache.trunk;
            return Err(ForwardError::TreeInCache { from });
        }
        let mut tree = TreePaths::default();
        check_segment(segment, None, shape, &mut tree)?;
        Ok(tree)
    };
    batch.iter().map(read).collect()
}

/// Appends every segment, and writes the scored rows to `rows`.
pub(super) fn forward(
    shared: &SharedContext,
    batch: &mut [Segment<'_, LlamaCache>],
    trees: Vec<TreePaths>,
    rows: &mut Rows,
) -> Result<(), ForwardError> {
    let context = &mut *shared.lock();
    let mut forwarded = Forwarded::default();
    let done = forwarded.all(context, batch, trees, rows);
    if done.is_err() {
        forwarded.take_back(context, batch);
    }
    done
}

/// What is done of a forward, and what is about to be.
#[derive(Default)]
struct Forwarded {
    /// Tokens that each cache held before; of those reached so far.
    before: Vec<usize>,
    /// Tokens to be computed together: each with its part of `sequences`.
    tokens: Vec<(u32, std::ops::Range<usize>, bool)>,
    sequences: Vec<SequenceId>,
}

impl Forwarded {
    fn all(
        &mut self,
        context: &mut Context,
        batch: &mut [Segment<'_, LlamaCache>],
        trees: Vec<TreePaths>,
        rows: &mut Rows,
    ) -> Result<(), ForwardError> {
        let mut first_waiting = 0;
        for (index, tree) in trees.into_iter().enumerate() {
            let leaves = leaves(&tree);
            if !Self::begin(context, &mut batch[index], &leaves)? {
                // What waits is computed, and its trees let go: their paths will be computed anew.
                self.compute(context, rows)?;
                for segment in &mut batch[first_waiting..index] {
                    let tree = segment.cache.tree.iter_mut();
                    let taken = tree.flat_map(|tree| tree.leaves.drain(..));
                    taken.for_each(|(_, leaf)| context.give_back(leaf));
                }
                first_waiting = index;
                if !Self::begin(context, &mut batch[index], &leaves)? {
                    return Err(too_many_sequences(leaves.len()));
                }
            }
            self.plan(&mut batch[index], tree);
        }
        self.compute(context, rows)
    }

    /// Takes the sequences of a segment, those of its tree's leaves with what stands before them. Returns whether
    /// there are as many.
    fn begin(
        context: &mut Context,
        segment: &mut Segment<'_, LlamaCache>,
        leaves: &[usize],
    ) -> Result<bool, ForwardError> {
        let cache = &mut *segment.cache;
        let Some(own) = cache.sequence.or_else(|| context.take()) else {
            return Ok(false);
        };
        cache.sequence = Some(own);
        let mut taken = Vec::new();
        for &leaf in leaves {
            let Some(sequence) = context.take() else {
                taken
                    .drain(..)
                    .for_each(|(_, leaf)| context.give_back(leaf));
                cache.cut(context, cache.trunk);
                return Ok(false);
            };
            taken.push((leaf, sequence));
            if let Err(bad) = context.copy(own, sequence, cache.trunk) {
                taken
                    .drain(..)
                    .for_each(|(_, leaf)| context.give_back(leaf));
                return Err(refused(bad));
            }
        }
        if !leaves.is_empty() {
            cache.tree = Some(HeldTree {
                paths: TreePaths::default(),
                leaves: taken,
                len: 0,
            });
        }
        Ok(true)
    }

    /// Plans the tokens of a segment that has its sequences: its cache holds them from now on.
    fn plan(&mut self, segment: &mut Segment<'_, LlamaCache>, paths: TreePaths) {
        let (trunk, scored_from) = (segment.trunk(), segment.scored_from);
        let cache = &mut *segment.cache;
        self.before.push(cache.trunk);
        for (index, &token) in segment.tokens.iter().enumerate() {
            let start = self.sequences.len();
            let leaves = cache.tree.iter().flat_map(|tree| &tree.leaves);
            match index.checked_sub(trunk) {
                None => {
                    self.sequences.extend(cache.sequence);
                    self.sequences.extend(leaves.map(|(_, leaf)| *leaf));
                }
                Some(node) => {
                    let beneath =
                        leaves.filter(|(leaf, _)| paths.path(*leaf).contains(&(node as u32)));
                    self.sequences.extend(beneath.map(|(_, leaf)| *leaf));
                }
            }
            let sequences = start..self.sequences.len();
            self.tokens.push((token, sequences, index >= scored_from));
        }
        cache.trunk += trunk;
        if let Some(tree) = &mut cache.tree {
            tree.len = paths.len();
            tree.paths = paths;
        }
    }

    /// Computes what was planned.
    fn compute(&mut self, context: &mut Context, rows: &mut Rows) -> Result<(), ForwardError> {
        let entry =
            |(token, sequences, is_scored): &(u32, std::ops::Range<usize>, bool)| BatchToken {
                token: *token,
                sequences: &self.sequences[sequences.clone()],
                is_scored: *is_scored,
            };
        let entries: Vec<BatchToken<'_>> = self.tokens.iter().map(entry).collect();
        let decoded = context.decode(&entries, |row| rows.logits.extend_from_slice(row));
        drop(entries);
        self.tokens.clear();
        self.sequences.clear();
        decoded.map_err(|error| match error {
            DecodeError::Entry(bad) => refused(bad),
            DecodeError::Failed(reason) => ForwardError::Device(reason),
        })
    }

    /// Makes every cache hold what it held before.
    fn take_back(&self, context: &mut Context, batch: &mut [Segment<'_, LlamaCache>]) {
        let mut before = self.before.iter();
        for segment in batch {
            let cache = &mut *segment.cache;
            cache.drop_tree(context);
            let len = before.next().copied().unwrap_or(cache.trunk);
            cache.cut(context, len);
        }
    }
}

/// The nodes without a child; none of a chain.
fn leaves(tree: &TreePaths) -> Vec<usize> {
    let has_child = |node: usize| {
        let mut later = node + 1..tree.len();
        later.any(|later| tree.path(later).contains(&(node as u32)))
    };
    (0..tree.len()).filter(|&node| !has_child(node)).collect()
}

fn refused(bad: BadEntry) -> ForwardError {
    ForwardError::OutOfMemory(format!("llama.cpp's cells: {bad}"))
}

fn too_many_sequences(leaves: usize) -> ForwardError {
    ForwardError::OutOfMemory(format!(
        "of llama.cpp's {} sequences, {} are not free, which a sequence and a tree of as many leaves less one take",
        llama_cpp::SEQUENCES,
        leaves + 1
    ))
}
