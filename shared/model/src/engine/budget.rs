//! The bound on memory for keys and values.

use speculation::ports::{KvCache, LanguageModel};

use super::{EngineConfig, SpawnError};
use crate::cache::PAGE;

/// Memory that an engine's sequences may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct KvBudget {
    /// In pages; none if the model does not count them.
    pub(super) pages: Option<usize>,
    /// In tokens, as it was set or as free memory allows.
    pub(super) tokens: usize,
    /// Longest sequence that fits, in tokens.
    pub(super) longest: usize,
}

impl EngineConfig {
    /// Refuses a budget that no model could do with, before one is loaded. What a model needs beyond that is
    /// known once it is.
    ///
    /// # Errors
    /// [`SpawnError::Budget`], with the least that could do.
    pub fn check_budget(&self) -> Result<(), SpawnError> {
        // Layers with a window never hold more than two of the longest forwards beyond it.
        let tree_tokens = self.tree_tokens.min(2 * self.prefill_chunk.get());
        let least = (1 + tree_tokens).next_multiple_of(PAGE);
        match self.kv_tokens {
            0 => Ok(()),
            kv_tokens if kv_tokens >= least => Ok(()),
            kv_tokens => Err(SpawnError::Budget {
                kv_tokens,
                tree_tokens,
                least,
            }),
        }
    }
}

impl KvBudget {
    /// The budget that `config` sets for `model`.
    pub(super) fn of<M: LanguageModel>(
        model: &M,
        config: &EngineConfig,
    ) -> Result<Self, SpawnError> {
        let context_len = model.shape().context_len;
        let most = context_len.saturating_mul(config.max_cached_sequences.get());
        let Some(memory) = model.memory() else {
            return Ok(Self {
                pages: None,
                tokens: 0,
                longest: context_len,
            });
        };
        // Every sequence may leave its last page unfilled.
        let slots = context_len + config.tree_tokens;
        let generous = slots.next_multiple_of(memory.page_tokens.max(1));
        let generous = generous
            .saturating_mul(config.max_cached_sequences.get())
            .max(most);
        let is_automatic = config.kv_tokens == 0;
        let tokens = if is_automatic {
            let free = model.free_pages().map(|pages| pages / config.sharers);
            generous.min(free.map_or(usize::MAX, |pages| memory.tokens(pages)))
        } else {
            config.kv_tokens
        };
        let pages = memory.pages(tokens);
        let chunk = config.prefill_chunk.get();
        let cache = model.new_cache();
        // At its end a sequence may have a tree, whose nodes take room side by side.
        let fits = |len: usize| cache.pages_for(len + config.tree_tokens, chunk) <= pages;
        // The longest that fits: what is above it does not, what is below does.
        let (mut longest, mut beyond) = (0, context_len + 1);
        while beyond - longest > 1 {
            let middle = longest.midpoint(beyond);
            if fits(middle) {
                longest = middle;
            } else {
                beyond = middle;
            }
        }
        let tree_tokens = config.tree_tokens;
        let least = (1 + tree_tokens).next_multiple_of(memory.page_tokens.max(1));
        if longest == 0 && is_automatic {
            return Err(SpawnError::NoMemory {
                tokens,
                tree_tokens,
                least,
            });
        }
        if longest == 0 {
            return Err(SpawnError::Budget {
                kv_tokens: tokens,
                tree_tokens,
                least,
            });
        }
        Ok(Self {
            pages: Some(pages),
            tokens,
            longest,
        })
    }

    /// Tells in the log what the budget of `engine` holds, and warns where that is less than one whole context.
    pub(super) fn log(&self, engine: &str, context_len: usize) {
        let (tokens, longest) = (self.tokens, self.longest);
        if self.pages.is_none() {
            return;
        }
        let contexts = tokens / context_len.max(1);
        tracing::info!(
            engine,
            kv_tokens = tokens,
            contexts,
            context_len,
            "room for keys and values"
        );
        if longest < context_len {
            tracing::warn!(
                engine,
                kv_tokens = tokens,
                longest,
                context_len,
                "memory for keys and values bounds the length of a sequence"
            );
        }
    }
}
