//! Why a forward was refused.

use speculation::{
    TokenId,
    draft_tree::BadTree,
    ports::{KvCache, ModelShape, Segment},
    tree_paths::TreePaths,
};
use thiserror::Error;

/// Why a forward was refused. No cache has changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ForwardError {
    /// A token the embedding table does not have.
    #[error("token {token} is not in the vocabulary of {vocab_size}")]
    TokenOutOfRange {
        /// The token.
        token: TokenId,
        /// Entries of the embedding table.
        vocab_size: usize,
    },
    /// A sequence longer than the model's context. Of a tree the longest path counts: its other nodes
    /// take room in the cache, but no position.
    #[error("the model holds {context_len} tokens a sequence, this one would have {tokens}")]
    ContextExceeded {
        /// Tokens the sequence would have.
        tokens: usize,
        /// Tokens the model can hold.
        context_len: usize,
    },
    /// Parents that make no tree.
    #[error("the tree is refused")]
    Tree(#[from] BadTree),
    /// Tokens cannot follow a whole tree: its nodes and theirs together must be one, where the engine lets trees grow.
    #[error("the cache holds a tree from token {from} on, of which no path was kept")]
    TreeInCache {
        /// Where it begins.
        from: usize,
    },
    /// An engine without [`Caps::trees`](speculation::ports::Caps::trees) was given one.
    #[error("the engine computes no trees")]
    NoTrees,
    /// An encoder-decoder model was asked to decode from nothing.
    #[error("the sequence has no source: an encoder-decoder model decodes from one")]
    NoSource,
    /// A source without a token.
    #[error("the source is empty, at least one token is needed")]
    EmptySource,
    /// A source longer than the model takes.
    #[error("the model takes sources of {source_len} tokens, this one has {tokens}")]
    SourceTooLong {
        /// Tokens of the source.
        tokens: usize,
        /// Tokens of the longest.
        source_len: usize,
    },
    /// The state of a sequence is on another device than the model.
    #[error("the cache belongs to a model on another device")]
    ForeignCache,
    /// The memory of a device does not hold what the forward needs.
    #[error("the device is out of memory: {0}")]
    OutOfMemory(String),
    /// A device failed.
    #[error("the device failed: {0}")]
    Device(String),
}

/// Refuses sequences of more than `context_len` tokens.
pub(crate) fn check_len(tokens: usize, context_len: usize) -> Result<(), ForwardError> {
    if tokens > context_len {
        return Err(ForwardError::ContextExceeded {
            tokens,
            context_len,
        });
    }
    Ok(())
}

/// Refuses tokens that no vocabulary of `vocab_size` has.
pub(crate) fn check_tokens(tokens: &[TokenId], vocab_size: usize) -> Result<(), ForwardError> {
    match tokens.iter().find(|&&token| token as usize >= vocab_size) {
        Some(&token) => Err(ForwardError::TokenOutOfRange { token, vocab_size }),
        None => Ok(()),
    }
}

/// Reads the tree that `segment` ends in, and refuses what a model of `shape` cannot forward. Its cache may hold a part
/// of that tree, from `held_tree` on.
pub(crate) fn check_segment<C: KvCache>(
    segment: &Segment<'_, C>,
    held_tree: Option<usize>,
    shape: ModelShape,
    tree: &mut TreePaths,
) -> Result<(), ForwardError> {
    let held = held_tree.map_or(0, |from| segment.cache.len() - from);
    let nodes = held + segment.tokens.len();
    if let Some(from) = held_tree.filter(|_| segment.parents.len() != nodes) {
        return Err(ForwardError::TreeInCache { from });
    }
    tree.read(segment.parents, nodes)?;
    check_len(segment.root() + tree.depth(), shape.context_len)?;
    check_tokens(segment.tokens, shape.vocab_size)
}

/// Refuses sources that a model of `shape` does not take.
pub(crate) fn check_source(source: &[TokenId], shape: ModelShape) -> Result<(), ForwardError> {
    let (tokens, source_len) = (source.len(), shape.source_len);
    if tokens > source_len {
        return Err(ForwardError::SourceTooLong { tokens, source_len });
    }
    check_tokens(source, shape.vocab_size)
}
