//! Blocks of a matrix, in memory of their own or in a file that is mapped, whose pages all processes share.

use std::{
    ops::{Deref, Range},
    ptr::NonNull,
    sync::Arc,
};

use memmap2::Mmap;

use super::slab::LINE;
use super::storage::Storage;

/// How numbers stand in the blocks of all formats: to be raised with every change of it, so that no file that was
/// written before is read.
pub(crate) const LAYOUT: u32 = 1;

/// Blocks that are nothing but their bytes.
///
/// # Safety
/// There are no bytes between the fields, and every pattern of bits is a block.
pub(super) unsafe trait PlainBlock: Copy {}

/// Blocks that are only read.
#[derive(Clone, Debug)]
pub(super) enum Blocks<B: Copy> {
    Held(Storage<B>),
    Mapped(MappedBlocks<B>),
}

impl<B: PlainBlock> Blocks<B> {
    /// Their bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        let blocks: &[B] = self;
        // SAFETY: plain, so each of them is so many bytes, all of which are written.
        unsafe { std::slice::from_raw_parts(blocks.as_ptr().cast(), size_of_val(blocks)) }
    }
}

impl<B: Copy> Deref for Blocks<B> {
    type Target = [B];

    #[inline(always)]
    fn deref(&self) -> &[B] {
        match self {
            Self::Held(blocks) => blocks,
            Self::Mapped(blocks) => blocks,
        }
    }
}

/// Blocks within a mapped file.
#[derive(derive_more::Debug)]
#[debug("MappedBlocks {{ len: {len}, .. }}")]
pub(super) struct MappedBlocks<B> {
    start: NonNull<B>,
    len: usize,
    /// The mapped file that contains the blocks, kept mapped while they are used.
    map: Arc<Mmap>,
}

// SAFETY: they are read alone, by whoever.
unsafe impl<B: Sync> Send for MappedBlocks<B> {}
// SAFETY: as above.
unsafe impl<B: Sync> Sync for MappedBlocks<B> {}

impl<B: PlainBlock> MappedBlocks<B> {
    /// The blocks in the bytes `range` of `map`. `None` if it does not have them, they do not begin at a cache line, or
    /// are no whole blocks.
    pub(super) fn of(map: &Arc<Mmap>, range: Range<usize>) -> Option<Self> {
        const { assert!(align_of::<B>() <= LINE) };
        let bytes = map.get(range)?;
        let start = NonNull::from(bytes).cast::<B>();
        let is_aligned = start.addr().get().is_multiple_of(LINE);
        let is_whole = bytes.len().is_multiple_of(size_of::<B>());
        (is_aligned && is_whole).then(|| Self {
            start,
            len: bytes.len() / size_of::<B>(),
            map: Arc::clone(map),
        })
    }
}

impl<B> Clone for MappedBlocks<B> {
    fn clone(&self) -> Self {
        Self {
            map: Arc::clone(&self.map),
            ..*self
        }
    }
}

impl<B> Deref for MappedBlocks<B> {
    type Target = [B];

    #[inline(always)]
    fn deref(&self) -> &[B] {
        // SAFETY: within the map, which lives as long as this and is only read; aligned, and plain, by `of`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}
