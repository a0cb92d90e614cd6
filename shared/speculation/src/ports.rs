//! What an engine needs of a language model, and nothing more.
//!
//! The model runtime implements these on real weights; tests of the protocol on a seeded hash, so that they
//! run without weights.

use crate::TokenId;

/// The sizes that bound what a model can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelShape {
    /// Length of a logits row, in tokens. May exceed the tokenizer's vocabulary (padded tails).
    pub vocab_size: usize,
    /// Length of a hidden-state row; 0 if the model offers none.
    pub hidden_size: usize,
    /// Longest sequence (prompt and output) the model can hold, in tokens. Of a tree the longest path
    /// counts, not its nodes. Of an encoder-decoder model, the longest output, start token included.
    pub context_len: usize,
    /// Longest source that [`LanguageModel::encode`] takes, in tokens; 0 of a model without an encoder.
    pub source_len: usize,
}

/// What an engine can do, and what its rows promise. What it lacks is refused where it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Whether a segment may end in a tree.
    pub trees: bool,
    /// Whether nodes may be appended below those of a tree that a cache holds.
    pub growing_trees: bool,
    /// Whether a row has the same bits in whatever forwards its sequence was computed; otherwise it is the same up to
    /// rounding, and a seed gives its tokens again unless two of them are as good as equally likely.
    pub bit_invariant: bool,
    /// Most caches that may hold tokens when a forward has been made.
    pub max_sequences: usize,
}

impl Caps {
    /// Of an engine that lacks nothing.
    pub const ALL: Self = Self {
        trees: true,
        growing_trees: true,
        bit_invariant: true,
        max_sequences: usize::MAX,
    };
}

/// One sequence's model state: keys and values of every token forwarded so far.
pub trait KvCache {
    /// Number of tokens held.
    fn len(&self) -> usize;

    /// Whether no token is held.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets every token from `len` on; a no-op if it holds no more than that. Truncating and
    /// forwarding again gives bit for bit what a fresh forward gives.
    ///
    /// May leave fewer than `len` tokens: a cache whose layers see a sliding window holds only what stands
    /// in it, so far back it can go on from nothing, and forgets all. [`KvCache::len`] tells. The tokens of
    /// the last forward can always be forgotten without that.
    fn truncate(&mut self, len: usize);

    /// Keeps, of the tree that was forwarded from `from` on, the nodes `path`, which are tokens like those before from
    /// now on, and then the nodes `rest`, which are still a tree; forgets the others. `path` runs from a child of the
    /// root down, `rest` are descendants of its last node with all that stand between, and both grow. Keeping and
    /// going on gives bit for bit what a fresh forward gives. A cache that cannot move its tokens forgets them all,
    /// one without [`Caps::growing_trees`] forgets `rest`.
    fn keep(&mut self, from: usize, _path: &[u32], _rest: &[u32]) {
        self.truncate(from);
    }

    /// Pages of memory held, those shared with other caches included; 0 where they are not counted.
    fn pages(&self) -> usize {
        0
    }

    /// Most pages that appending `more` tokens takes beyond those held, if no more than `at_once` are
    /// appended in one forward; 0 where they are not counted.
    fn pages_for(&self, _more: usize, _at_once: usize) -> usize {
        0
    }

    /// A cache that holds the first of this one's tokens, at most `len` and none of a tree, in the same memory: as many
    /// as stand in whole pages. None if those are none, or memory cannot be shared.
    fn share(&self, _len: usize) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// Memory that the caches of one model take, in pages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvMemory {
    /// Pages held, each once, however many caches share it.
    pub used_pages: usize,
    /// Tokens of a page.
    pub page_tokens: usize,
    /// Pages that a run of `page_tokens` tokens takes: one for each layer.
    pub pages_a_run: usize,
}

impl KvMemory {
    /// The pages held, in tokens.
    pub fn used_tokens(&self) -> usize {
        self.tokens(self.used_pages)
    }

    /// Pages in tokens, rounded up.
    pub fn tokens(&self, pages: usize) -> usize {
        (pages * self.page_tokens).div_ceil(self.pages_a_run.max(1))
    }

    /// Pages that a budget of `tokens` tokens allows: those of its whole runs.
    pub fn pages(&self, tokens: usize) -> usize {
        (tokens / self.page_tokens.max(1)).saturating_mul(self.pages_a_run)
    }
}

/// One sequence's share of a forward: `tokens` are appended to `cache`, and the positions from
/// `scored_from` on (an index into `tokens`) get a row each.
pub struct Segment<'a, C> {
    /// State to extend; after the forward it holds `tokens` too.
    pub cache: &'a mut C,
    /// Tokens to append, in order; at least one.
    pub tokens: &'a [TokenId],
    /// The last tokens form a tree, one entry each: the index of its parent among them, none for a child
    /// of the token before them. A token of the tree sees the sequence and its ancestors, and its
    /// position is its depth. Its row has the bits of its path forwarded alone. Empty for a chain.
    ///
    /// The cache then holds the nodes in the order given, which is no sequence. With [`Caps::growing_trees`] further
    /// nodes may be appended: `parents` then begins with those of the nodes held, and has one entry for each of
    /// `tokens` after them. For anything else [`KvCache::keep`] or [`KvCache::truncate`] must take the tree away
    /// before.
    pub parents: &'a [Option<u32>],
    /// First index into `tokens` whose next-token logits are wanted; `tokens.len()` asks for none.
    pub scored_from: usize,
}

impl<C> Segment<'_, C> {
    /// Number of tokens before the tree; all of a chain, none of those that are appended to a tree.
    pub fn trunk(&self) -> usize {
        self.tokens.len().saturating_sub(self.parents.len())
    }

    /// The node of the tree that token `index` is; none before the tree.
    pub fn node(&self, index: usize) -> Option<usize> {
        (index + self.parents.len()).checked_sub(self.tokens.len())
    }
}

impl<C: KvCache> Segment<'_, C> {
    /// Number of tokens before the tree, those that the cache holds included; of a chain, all.
    pub fn root(&self) -> usize {
        self.cache.len() + self.tokens.len() - self.parents.len()
    }
}

/// What a forward returns: one row per scored position, in the order of the segments and then of
/// the positions. Kept by the caller and reused, so that decoding does not allocate.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Next-token logits, `(rows, vocab_size)`.
    pub logits: Vec<f32>,
    /// Last hidden states after the final norm, `(rows, hidden_size)`; filled only if
    /// [`Rows::want_hidden`] is set and the model offers them.
    pub hidden: Vec<f32>,
    /// Whether the caller wants [`Rows::hidden`].
    pub want_hidden: bool,
    /// Length of a logits row.
    pub vocab_size: usize,
}

impl Rows {
    /// The logits of row `row`, `(vocab_size)`.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.logits[row * self.vocab_size..][..self.vocab_size]
    }

    /// The logits of row `row`, to be turned into a distribution in place.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.logits[row * self.vocab_size..][..self.vocab_size]
    }
}

/// A causal language model that scores any number of positions of any number of sequences at once: the port
/// beneath a drafter's or a verifier's engine thread, whatever computes behind it.
///
/// A row depends on its own sequence only: not on the other segments, not on how many positions are scored
/// with it, not on how the sequence was cut into forwards. With [`Caps::bit_invariant`] that holds for its
/// bits, else up to rounding.
pub trait LanguageModel {
    /// State of one sequence.
    type Cache: KvCache;
    /// Why a forward failed.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The model's sizes.
    fn shape(&self) -> ModelShape;

    /// Returns what the engine behind it can do.
    fn caps(&self) -> Caps {
        Caps::ALL
    }

    /// State of an empty sequence.
    fn new_cache(&self) -> Self::Cache;

    /// Reads the source that an encoder-decoder model decodes from: `cache` forgets its tokens and any
    /// other source, and the tokens appended from now on are those of the output, start token first.
    /// Truncation leaves the source alone. A model without an encoder has no use for a source and does
    /// nothing; [`ModelShape::source_len`] tells the two apart.
    ///
    /// # Errors
    /// If the source is empty or too long, or a token is out of range. The cache then holds what it
    /// held before.
    fn encode(&mut self, _cache: &mut Self::Cache, _source: &[TokenId]) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Memory that its caches take now; none if it is not counted, and then nothing bounds it.
    fn memory(&self) -> Option<KvMemory> {
        None
    }

    /// Pages that its caches may take of the memory that is free where they are, when it is asked; none if that
    /// does not tell. It is asked once, before there is any sequence.
    fn free_pages(&self) -> Option<usize> {
        None
    }

    /// Sets memory aside for `pages` pages, which is what its caches will take together at most. Called once,
    /// before there is any sequence; models that take memory as they need it do nothing.
    ///
    /// # Errors
    /// If there is not as much.
    fn reserve(&mut self, _pages: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Whether a forward that failed with `error` may succeed once other caches have given memory back.
    fn is_out_of_memory(_error: &Self::Error) -> bool {
        false
    }

    /// Appends every segment's tokens to its cache and writes the scored rows to `rows`.
    ///
    /// # Errors
    /// If a token is out of range, a sequence outgrows the context, parents make no tree, what is appended to a tree
    /// that a cache holds is not said to be part of it, an encoder-decoder model was given no source, or a kernel fails. The caches then hold what they
    /// held before.
    fn forward(
        &mut self,
        batch: &mut [Segment<'_, Self::Cache>],
        rows: &mut Rows,
    ) -> Result<(), Self::Error>;
}
