//! Pages of keys and values, and the pool they come from and go back to.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;

use super::{
    KvFormat,
    held::{Numbers, PageFormat},
};

/// Slots whose keys stand interleaved.
pub(crate) const LANES: usize = 16;
/// Slots of a page.
pub(crate) const PAGE: usize = 64;

/// Memory for the caches of one model, in pages that all have one size. A page that is let go serves
/// again, so that once a model has been busy its caches cost no page faults. The lock is taken when a page
/// is, once in 64 tokens of a layer.
#[derive(Debug)]
pub(crate) struct PagePool {
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) format: KvFormat,
    /// Buffers, in order whoever panicked.
    free: Mutex<Vec<Numbers>>,
    used: AtomicUsize,
}

/// Keys and values of one layer at 64 slots of a sequence. What was never written is left over from the
/// page's last use.
#[derive(Debug)]
pub(crate) struct CachePage {
    numbers: Numbers,
    pool: Arc<PagePool>,
}

impl PagePool {
    pub(crate) fn new(kv_heads: usize, head_dim: usize, format: KvFormat) -> Arc<Self> {
        Arc::new(Self {
            kv_heads,
            head_dim,
            format,
            free: Mutex::default(),
            used: AtomicUsize::new(0),
        })
    }

    /// Size of a page in bytes.
    pub(crate) fn page_bytes(&self) -> usize {
        2 * PAGE * self.kv_heads * self.format.head_bytes(self.head_dim)
    }

    /// Pages that caches hold; one that several share counts once.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Pages made and not in use.
    #[cfg(test)]
    pub(super) fn free_pages(&self) -> usize {
        self.free.lock().len()
    }

    /// A page of its own.
    pub(super) fn take(self: &Arc<Self>) -> Arc<CachePage> {
        self.used.fetch_add(1, Ordering::Relaxed);
        let freed = self.free.lock().pop();
        let numbers =
            freed.unwrap_or_else(|| Numbers::new(self.format, self.kv_heads, self.head_dim));
        let pool = Arc::clone(self);
        Arc::new(CachePage { numbers, pool })
    }
}

impl Drop for CachePage {
    fn drop(&mut self) {
        self.pool.used.fetch_sub(1, Ordering::Relaxed);
        let numbers = std::mem::take(&mut self.numbers);
        self.pool.free.lock().push(numbers);
    }
}

impl CachePage {
    /// A page with the same numbers.
    pub(super) fn copy(&self) -> Arc<Self> {
        let mut copy = self.pool.take();
        if let Some(page) = Arc::get_mut(&mut copy) {
            page.numbers.copy_from(&self.numbers);
        }
        copy
    }

    /// Writes key and value of slot `slot` of the page, each `(kv_heads, head_dim)`.
    pub(super) fn write(&mut self, slot: usize, key: &[f32], value: &[f32]) {
        let head_dim = self.pool.head_dim;
        let heads = key.chunks_exact(head_dim);
        for (kv_head, (key, value)) in heads.zip(value.chunks_exact(head_dim)).enumerate() {
            // SAFETY: nobody else sees the page.
            unsafe { self.write_head(slot, kv_head, key, value) };
        }
    }

    /// Writes key and value of `kv_head`, each `(head_dim)`, at slot `slot` of the page.
    ///
    /// # Safety
    /// Nobody else reads or writes keys and values of this head in this page meanwhile.
    pub(super) unsafe fn write_head(
        &self,
        slot: usize,
        kv_head: usize,
        key: &[f32],
        value: &[f32],
    ) {
        // SAFETY: the caller's promise.
        unsafe { self.numbers.write(slot, kv_head, key, value) };
    }

    /// Key and value of slot `slot` of the page, as [`Page::write`] takes them.
    pub(super) fn read(&self, slot: usize, key: &mut [f32], value: &mut [f32]) {
        let head_dim = self.pool.head_dim;
        let heads = key.chunks_exact_mut(head_dim);
        for (kv_head, (key, value)) in heads.zip(value.chunks_exact_mut(head_dim)).enumerate() {
            self.numbers.read(slot, kv_head, key, value);
        }
    }

    /// Key and value of `kv_head` at slot `slot` of the page.
    #[cfg(test)]
    pub(super) fn read_head(
        &self,
        slot: usize,
        kv_head: usize,
        key: &mut [f32],
        value: &mut [f32],
    ) {
        self.numbers.read(slot, kv_head, key, value);
    }

    /// Returns what it holds, in the pool's format.
    ///
    /// # Panics
    /// If the pool has another format.
    #[inline(always)]
    pub(crate) fn held<P: PageFormat>(&self) -> &P {
        P::of(&self.numbers).expect("numbers of the pool's format")
    }
}
