//! llama.cpp behind the engine port.
//!
//! A cache is a sequence of llama.cpp's, a page is the memory of one token. A tree takes a sequence for each of
//! its leaves until one of its paths is kept: they share the cells of what they have in common.

mod cache;
mod forward;
#[cfg(test)]
mod tests;

use std::{path::Path, sync::Arc};

use llama_cpp::{Context, KvType, LoadError, SEQUENCES, Settings};
use parking_lot::{Mutex, MutexGuard};
use speculation::ports::{Caps, KvMemory, LanguageModel, ModelShape, Rows, Segment};

pub use self::cache::LlamaCache;
use crate::{forward_error::ForwardError, free_memory};

/// Sequences left for the leaves of draft trees.
const LEAVES: usize = 64;
/// Most tokens that memory is allocated for where `kv_tokens` is 0: llama.cpp takes all of it at once, and its
/// attention looks at every cell in use.
const MOST_UNASKED: usize = 1 << 15;
/// Share of the free memory that keys and values get where `kv_tokens` is 0.
const SHARE: (u64, u64) = (2, 5);

/// A GGUF file that llama.cpp computes. Clones share the memory of all sequences.
#[derive(Clone, Debug)]
pub struct LlamaModel {
    context: SharedContext,
    shape: ModelShape,
}

/// The context, which model and caches share. It is held for forwards, and for moments by the steps of tasks, which
/// never run beside one.
///
/// A panic in a forward may leave the ledger with tokens that llama.cpp did not compute. The engine's thread,
/// which alone computes, ends with it; the caches that are left only free their sequences, which forgets in
/// both whatever either holds.
type SharedContext = Arc<Mutex<Context>>;

impl LlamaModel {
    /// Loads the GGUF file at `path`, with keys and values in `kv`.
    ///
    /// # Errors
    /// If llama.cpp does not read it, cannot take back tokens of it, or a setting is out of range.
    pub fn load(path: &Path, settings: &Settings, kv: KvType) -> Result<Self, LoadError> {
        let context = Context::load(path, settings, kv)?;
        Ok(Self {
            shape: ModelShape {
                vocab_size: context.vocab_size(),
                hidden_size: 0,
                context_len: context.context_len(),
                source_len: 0,
            },
            context: Arc::new(Mutex::new(context)),
        })
    }

    /// Returns what it is computed in, which waits for a forward.
    pub fn context(&self) -> MutexGuard<'_, Context> {
        self.context.lock()
    }
}

impl LanguageModel for LlamaModel {
    type Cache = LlamaCache;
    type Error = ForwardError;

    fn shape(&self) -> ModelShape {
        self.shape
    }

    fn caps(&self) -> Caps {
        Caps {
            trees: true,
            growing_trees: false,
            bit_invariant: false,
            max_sequences: SEQUENCES - LEAVES,
        }
    }

    fn new_cache(&self) -> LlamaCache {
        LlamaCache::new(&self.context)
    }

    fn memory(&self) -> Option<KvMemory> {
        Some(KvMemory {
            used_pages: self.context.lock().used(),
            page_tokens: 1,
            pages_a_run: 1,
        })
    }

    fn free_pages(&self) -> Option<usize> {
        let share = free_memory::free_bytes()? / SHARE.1 * SHARE.0;
        let tokens = share as usize / self.context.lock().token_bytes().max(1);
        Some(tokens.min(MOST_UNASKED))
    }

    fn reserve(&mut self, pages: usize) -> Result<(), ForwardError> {
        let reserved = self.context.lock().reserve(pages);
        reserved.map_err(|error| ForwardError::OutOfMemory(error.to_string()))
    }

    fn is_out_of_memory(error: &ForwardError) -> bool {
        matches!(error, ForwardError::OutOfMemory(_))
    }

    fn forward(
        &mut self,
        batch: &mut [Segment<'_, LlamaCache>],
        rows: &mut Rows,
    ) -> Result<(), ForwardError> {
        let trees = forward::check(batch, self.shape)?;
        rows.vocab_size = self.shape.vocab_size;
        rows.logits.clear();
        rows.hidden.clear();
        forward::forward(&self.context, batch, trees, rows)
    }
}
