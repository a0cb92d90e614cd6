//! The bound on memory for keys and values: who gets room in the next forward, and who makes it.

use std::sync::atomic::Ordering;

use speculation::ports::{KvCache, LanguageModel};

use super::{EngineConfig, SpawnError, task::EngineError, worker::Worker};
use crate::cache::PAGE;

/// Memory that an engine's sequences may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// In pages; none if the model does not count them.
    pages: Option<usize>,
    /// In tokens, as it was set.
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
            Some(tokens) if tokens.get() < least => Err(SpawnError::Budget {
                kv_tokens: tokens.get(),
                tree_tokens,
                least,
            }),
            _ => Ok(()),
        }
    }
}

impl Budget {
    /// The budget that `config` sets for `model`.
    pub(super) fn of<M: LanguageModel>(
        model: &M,
        config: &EngineConfig,
    ) -> Result<Self, SpawnError> {
        let context_len = model.shape().context_len;
        let most = context_len.saturating_mul(config.max_sequences.get());
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
            .saturating_mul(config.max_sequences.get())
            .max(most);
        let tokens = config.kv_tokens.map_or(generous, std::num::NonZero::get);
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
        if longest == 0 {
            return Err(SpawnError::Budget {
                kv_tokens: tokens,
                tree_tokens: config.tree_tokens,
                least: (1 + config.tree_tokens).next_multiple_of(memory.page_tokens.max(1)),
            });
        }
        Ok(Self {
            pages: Some(pages),
            tokens,
            longest,
        })
    }
}

impl<M: LanguageModel> Worker<M> {
    /// Decides which tasks have room for all they ask for: the oldest first. For them idle sequences go,
    /// and then those of the youngest tasks, which wait. A task that would not fit alone fails.
    pub(super) fn make_room(&mut self) {
        let Some(budget) = self.budget.pages else {
            for running in &mut self.running {
                running.has_room = true;
            }
            return;
        };
        let chunk = self.config.prefill_chunk.get();
        // Promised to older tasks, beyond what they hold.
        let mut promised = 0;
        let mut index = 0;
        while let Some(running) = self.running.get(index) {
            let held = running.sequence.cache().pages();
            let need = running.pages_needed(chunk);
            if held + need > budget {
                self.refuse(index, held + need);
                continue;
            }
            let fits = |worker: &Self| worker.used_pages() + promised + need <= budget;
            while !fits(self) && self.evict_idle() {}
            if !fits(self) {
                let younger = self.running[index + 1..].iter();
                let theirs: usize = younger.map(|own| own.sequence.cache().pages()).sum();
                if self.used_pages() + promised + need <= budget + theirs {
                    let mut youngest = self.running.len();
                    while !fits(self) && youngest > index + 1 {
                        youngest -= 1;
                        self.drop_sequence(youngest);
                    }
                }
            }
            // What is still in the oldest's way is no sequence of this engine.
            let has_room = index == 0 || fits(self);
            self.running[index].has_room = has_room;
            if has_room {
                promised += need;
            }
            index += 1;
        }
    }

    /// Pages that all sequences and prefixes take.
    pub(super) fn used_pages(&self) -> usize {
        self.model.memory().map_or(0, |memory| memory.used_pages)
    }

    /// Makes the kept prefix, or the idle sequence, that was unused the longest give its memory back.
    fn evict_idle(&mut self) -> bool {
        if self.prefixes.evict_oldest() {
            return true;
        }
        let has_evicted = self.slots.evict_oldest();
        self.count_evictions(usize::from(has_evicted));
        has_evicted
    }

    /// Makes a running task's sequence give its memory back.
    fn drop_sequence(&mut self, index: usize) {
        let sequence = &mut self.running[index].sequence;
        if sequence.cache().pages() > 0 {
            sequence.forget();
            self.count_evictions(1);
        }
    }

    pub(super) fn count_evictions(&self, count: usize) {
        let counted = &self.shared.evictions;
        counted.fetch_add(count as u64, Ordering::Relaxed);
    }

    fn refuse(&mut self, index: usize, pages: usize) {
        let running = self.running.remove(index);
        let tokens = (self.model.memory()).map_or(0, |memory| memory.tokens(pages));
        let error = EngineError::OverBudget {
            tokens,
            kv_tokens: self.budget.tokens,
        };
        self.end(running, error);
    }
}
