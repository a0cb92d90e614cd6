//! Memory of the device that a model's caches take.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use speculation::ports::KvMemory;

/// Slots of a page. A cache grows by whole pages, each in all layers.
pub(super) const PAGE: usize = 64;

/// Counts the pages of all caches of a model.
#[derive(Clone, Debug, Default)]
pub(super) struct CacheMemory {
    used: Arc<AtomicUsize>,
}

/// Pages held; given back when dropped.
#[derive(Debug)]
pub(super) struct HeldPages {
    memory: CacheMemory,
    count: usize,
}

impl CacheMemory {
    /// Takes note of `count` pages more.
    pub(super) fn hold(&self, count: usize) -> HeldPages {
        self.used.fetch_add(count, Ordering::Relaxed);
        HeldPages {
            memory: self.clone(),
            count,
        }
    }

    /// Returns what all caches take now.
    pub(super) fn taken(&self) -> KvMemory {
        KvMemory {
            used_pages: self.used.load(Ordering::Relaxed),
            page_tokens: PAGE,
            pages_a_run: 1,
        }
    }
}

impl Drop for HeldPages {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.count, Ordering::Relaxed);
    }
}
