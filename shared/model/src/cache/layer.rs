//! Keys and values of one layer of one sequence.

use std::sync::Arc;

use super::{
    KvFormat,
    page::{CachePage, PAGE, PagePool},
};

/// Tokens at the end of a sequence that a layer with a window lets go again, whatever the forwards were:
/// drafts that a draft model made one by one, and that were refused.
pub(super) const UNCOMMITTED: usize = 128;

/// Keys and values of one layer, by slot. A token's slot is its position, but for those of a tree: they
/// stand in the order they came in, and their keys are rotated to their depth. So slots may outnumber
/// the positions of the model's context. What lies behind the sequence's length is left over from a
/// truncation, and never read before it is overwritten.
///
/// A clone shares the pages; who writes to a shared page copies it first.
#[derive(Clone, Debug)]
pub(crate) struct LayerCache {
    pool: Arc<PagePool>,
    /// Pages of 64 slots each, the first of them page `given_back` of the sequence.
    pages: Vec<Arc<CachePage>>,
    /// Pages at the beginning that no later position sees, and that are not held any more.
    given_back: usize,
    /// Most positions that a position sees, its own included.
    window: Option<usize>,
}

impl LayerCache {
    pub(crate) fn new(pool: &Arc<PagePool>, window: Option<usize>) -> Self {
        Self {
            pool: Arc::clone(pool),
            pages: Vec::new(),
            given_back: 0,
            window,
        }
    }

    /// Makes room for the slots `from..to`, all slots before them being held: pages of its own for them.
    /// What is held stays where it is.
    pub(crate) fn reserve(&mut self, from: usize, to: usize) {
        let held = self.given_back + self.pages.len();
        for index in from / PAGE..held.min(to.div_ceil(PAGE)) {
            self.own(index);
        }
        while (self.given_back + self.pages.len()) * PAGE < to {
            self.pages.push(self.pool.take());
        }
    }

    /// Pages that room for the slots `from..to` takes, if no more than `at_once` of them are written in
    /// one forward.
    pub(super) fn pages_for(&self, from: usize, to: usize, at_once: usize) -> usize {
        let held = self.given_back + self.pages.len();
        let last = from / PAGE;
        let is_copied = !from.is_multiple_of(PAGE)
            && (self.pages.get(last - self.given_back))
                .is_some_and(|page| Arc::strong_count(page) > 1);
        let new = to.div_ceil(PAGE).saturating_sub(held);
        let most = self.window.map_or(usize::MAX, |window| {
            let slots = window + at_once.max(UNCOMMITTED) + at_once;
            (slots.div_ceil(PAGE) + 1).saturating_sub(self.pages.len())
        });
        new.min(most) + usize::from(is_copied)
    }

    /// Lets go what no position sees that comes after a truncation to `len` tokens or more.
    pub(super) fn give_back(&mut self, len: usize) {
        let Some(window) = self.window else { return };
        let pages = (len + 1).saturating_sub(window) / PAGE;
        let more = pages.saturating_sub(self.given_back).min(self.pages.len());
        if more > 0 {
            self.pages.drain(..more);
            self.given_back += more;
        }
    }

    /// Whether all is held that a position sees after a truncation to `len` tokens.
    pub(super) fn can_truncate(&self, len: usize) -> bool {
        let seen_from = (self.window).map_or(0, |window| (len + 1).saturating_sub(window));
        self.given_back * PAGE <= seen_from
    }

    /// Lets go the pages behind slot `len`; all pages of what it can no longer go on from.
    pub(super) fn truncate(&mut self, len: usize) {
        let pages = len.div_ceil(PAGE);
        self.pages.truncate(pages.saturating_sub(self.given_back));
        if len == 0 {
            self.given_back = 0;
        }
    }

    /// Number of pages held.
    pub(super) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Writes key and value of `slot`, each `(kv_heads, head_dim)`.
    pub(crate) fn write(&mut self, slot: usize, key: &[f32], value: &[f32]) {
        self.own(slot / PAGE).write(slot % PAGE, key, value);
    }

    /// Writes key and value of one head of `slot`, each `(head_dim)`, for which [`LayerCache::reserve`] made
    /// room.
    ///
    /// # Safety
    /// Nobody else reads or writes keys and values of this head meanwhile.
    pub(crate) unsafe fn write_head(
        &self,
        slot: usize,
        kv_head: usize,
        key: &[f32],
        value: &[f32],
    ) {
        let page = &self.pages[slot / PAGE - self.given_back];
        assert!(
            Arc::strong_count(page) == 1,
            "slot {slot} has no page of its own"
        );
        // SAFETY: the caller's promise, and nobody else has the page.
        unsafe { page.write_head(slot % PAGE, kv_head, key, value) };
    }

    /// Copies key and value of slot `from` to slot `to`; `room` is kept for the next time.
    pub(super) fn copy(&mut self, from: usize, to: usize, room: &mut Vec<f32>) {
        let width = self.kv_heads() * self.head_dim();
        room.resize(2 * width, 0.0);
        let (key, value) = room.split_at_mut(width);
        self.page(from / PAGE).read(from % PAGE, key, value);
        self.write(to, key, value);
    }

    /// Page `index` of the sequence, for nobody else to see; copied if somebody does.
    fn own(&mut self, index: usize) -> &mut CachePage {
        let page = &mut self.pages[index - self.given_back];
        if Arc::get_mut(page).is_none() {
            *page = page.copy();
        }
        Arc::get_mut(page).expect("a page just copied is shared with nobody")
    }

    /// Page `index` of the sequence: slots `64 * index..64 * index + 64`.
    #[inline(always)]
    pub(crate) fn page(&self, index: usize) -> &CachePage {
        &self.pages[index - self.given_back]
    }

    #[inline(always)]
    pub(crate) fn kv_heads(&self) -> usize {
        self.pool.kv_heads
    }

    #[inline(always)]
    pub(crate) fn head_dim(&self) -> usize {
        self.pool.head_dim
    }

    /// Returns the format of the numbers in its pages.
    pub(crate) fn format(&self) -> KvFormat {
        self.pool.format
    }
}
