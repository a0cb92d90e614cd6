//! A language model without weights: seeded, exact, instant.
//!
//! Its logits are a hash of the whole context, so any mistake in what a peer believes the context
//! to be changes its output. Tests of the protocol run on it.

use speculation::TokenId;
use speculation::draft_tree::BadTree;
use speculation::philox::philox;
use speculation::ports::{KvCache, LanguageModel, ModelShape, Rows, Segment};
use speculation::tree_paths::TreePaths;

/// The tokens of one sequence.
#[derive(Clone, Debug, Default)]
pub struct ToyCache {
    tokens: Vec<TokenId>,
    /// Where the tree begins that is held, if there is one.
    tree_from: Option<usize>,
}

impl KvCache for ToyCache {
    fn len(&self) -> usize {
        self.tokens.len()
    }

    fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
        self.tree_from.take_if(|from| len <= *from);
    }

    fn keep(&mut self, from: usize, path: &[u32], rest: &[u32]) {
        for (index, &node) in path.iter().chain(rest).enumerate() {
            self.tokens[from + index] = self.tokens[from + node as usize];
        }
        let root = from + path.len();
        self.tokens.truncate(root + rest.len());
        self.tree_from = (!rest.is_empty()).then_some(root);
    }
}

/// A seeded model over a small vocabulary.
#[derive(Clone, Debug)]
pub struct ToyModel {
    seed: u64,
    shape: ModelShape,
    /// Logits lie within plus and minus this.
    spread: f32,
    /// Another seed, and the share of its logits in this model's.
    blend: Option<(u64, f32)>,
    /// Where its logits are peaks, how often its first, second and third choice is that of the model it foretells.
    foretells: Option<[f64; 3]>,
}

/// Choices of a model whose logits are peaks, and how far each is above the next: so far that noise seldom matters.
const PEAKS: usize = 4;
const APART: f32 = 12.0;

/// Why a toy forward fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToyError {
    /// A token is not in the vocabulary.
    #[error("token {token} is out of range, the vocabulary has {vocab_size}")]
    Token {
        /// The token.
        token: TokenId,
        /// The vocabulary's size.
        vocab_size: usize,
    },
    /// The sequence outgrows the context.
    #[error("sequence of {len} tokens exceeds the context of {context_len}")]
    Context {
        /// Length asked for.
        len: usize,
        /// The context's length.
        context_len: usize,
    },
    /// Parents that make no tree.
    #[error("the tree is refused")]
    Tree(#[from] BadTree),
    /// Tokens cannot follow a whole tree.
    #[error("the cache holds a tree from token {from} on, of which no path was kept")]
    TreeInCache {
        /// Where it begins.
        from: usize,
    },
}

impl ToyModel {
    /// A model whose distributions are fixed by `seed`.
    pub fn new(seed: u64, vocab_size: usize) -> Self {
        let shape = ModelShape {
            vocab_size,
            hidden_size: 0,
            context_len: 4096,
            source_len: 0,
        };
        Self {
            seed,
            shape,
            spread: 3.0,
            blend: None,
            foretells: None,
        }
    }

    /// A model that is as good as sure of its choice, which the context alone decides, whatever the noise. One that
    /// foretells it has its choice as its own first, second or third choice as often as `ranks` say.
    #[must_use]
    pub fn peaked(self, ranks: [f64; 3]) -> Self {
        Self {
            foretells: Some(ranks),
            ..self
        }
    }

    /// A model near this one: `share` of its logits come from another seed. 0 gives the same
    /// distributions, 1 unrelated ones.
    #[must_use]
    pub fn near(&self, seed: u64, share: f32) -> Self {
        Self {
            blend: Some((seed, share)),
            ..self.clone()
        }
    }

    /// Writes the next-token logits (vocab) after `context`.
    pub fn logits(&self, context: &[TokenId], row: &mut [f32]) {
        if let Some(ranks) = self.foretells {
            return write_peaks(self.seed, ranks, context, row);
        }
        write_logits(self.seed, self.spread, context, row);
        if let Some((seed, share)) = self.blend {
            let mut other = vec![0.0; row.len()];
            write_logits(seed, self.spread, context, &mut other);
            for (mine, theirs) in row.iter_mut().zip(other) {
                *mine += share * (theirs - *mine);
            }
        }
    }
}

/// A few choices after `context`, and nothing else. That of the model foretold is the first, second or third as often as
/// `ranks` say, or none of them.
fn write_peaks(seed: u64, ranks: [f64; 3], context: &[TokenId], row: &mut [f32]) {
    let key = [seed as u32, (seed >> 32) as u32];
    let words = hash(context, key);
    let first = words[0] as usize % row.len();
    let others = (1..=PEAKS).map(|step| (first + step * (1 + words[1] as usize % 97)) % row.len());
    let mut choices: Vec<usize> = others.collect();
    let luck = f64::from(words[2]) / f64::from(u32::MAX);
    let mut below = 0.0;
    let rank = ranks.iter().position(|share| {
        below += share;
        luck < below
    });
    if let Some(rank) = rank {
        choices.insert(rank, first);
    }
    row.fill(0.0);
    for (rank, &choice) in choices.iter().take(PEAKS).enumerate() {
        row[choice] = APART * (PEAKS - rank) as f32;
    }
}

fn hash(context: &[TokenId], key: [u32; 2]) -> [u32; 4] {
    let mut state = [context.len() as u32, 0, 0, 0];
    for &token in context {
        state[3] ^= token;
        state = philox(state, key);
    }
    state
}

fn write_logits(seed: u64, spread: f32, context: &[TokenId], row: &mut [f32]) {
    let key = [seed as u32, (seed >> 32) as u32];
    let state = hash(context, key);
    for (token, logit) in row.iter_mut().enumerate() {
        let word = philox([token as u32, state[0], state[1], state[2]], key)[0];
        *logit = (word as f32 / u32::MAX as f32 * 2.0 - 1.0) * spread;
    }
}

impl LanguageModel for ToyModel {
    type Cache = ToyCache;
    type Error = ToyError;

    fn shape(&self) -> ModelShape {
        self.shape
    }

    fn new_cache(&self) -> ToyCache {
        ToyCache::default()
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, ToyCache>],
        rows: &mut Rows,
    ) -> Result<(), ToyError> {
        let ModelShape {
            vocab_size,
            context_len,
            ..
        } = self.shape;
        let mut tree = TreePaths::default();
        for segment in batch.iter() {
            let held = segment.cache.tree_from;
            let nodes = held.map_or(0, |from| segment.cache.len() - from) + segment.tokens.len();
            if let Some(from) = held.filter(|_| segment.parents.len() != nodes) {
                return Err(ToyError::TreeInCache { from });
            }
            tree.read(segment.parents, nodes)?;
            let len = segment.root() + tree.depth();
            if len > context_len {
                return Err(ToyError::Context { len, context_len });
            }
            if let Some(&token) = segment.tokens.iter().find(|&&t| t as usize >= vocab_size) {
                return Err(ToyError::Token { token, vocab_size });
            }
        }
        rows.vocab_size = vocab_size;
        rows.logits.clear();
        for segment in batch.iter_mut() {
            let (held, root) = (segment.cache.len(), segment.root());
            tree.read(segment.parents, held + segment.tokens.len() - root)?;
            segment.cache.tokens.extend_from_slice(segment.tokens);
            for index in segment.scored_from..segment.tokens.len() {
                let all = &segment.cache.tokens;
                let mut context = all[..root.min(held + index + 1)].to_vec();
                if let Some(node) = segment.node(index) {
                    let path = tree.path(node).iter();
                    context.extend(path.map(|&node| all[root + node as usize]));
                }
                let start = rows.logits.len();
                rows.logits.resize(start + vocab_size, 0.0);
                self.logits(&context, &mut rows.logits[start..]);
            }
            segment.cache.tree_from = (!tree.is_empty()).then_some(root);
        }
        Ok(())
    }
}
