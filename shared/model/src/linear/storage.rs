//! Memory for weights: aligned to cache lines, large ones on large pages.

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    fmt,
    ops::{Deref, DerefMut},
    ptr::NonNull,
};

/// Bytes from which memory is aligned to large pages and asks for them: with small ones a pass over
/// the weights of a model misses the address cache at every page.
const LARGE: usize = 4 << 20;
/// Bytes of a large page.
const LARGE_PAGE: usize = 2 << 20;
/// Bytes of a cache line.
const LINE: usize = 64;

/// A fixed number of `T`, plain numbers all of them.
pub(crate) struct Storage<T: Copy> {
    start: NonNull<T>,
    len: usize,
}

// SAFETY: it owns its elements, as a Vec does.
unsafe impl<T: Copy + Send> Send for Storage<T> {}
// SAFETY: as above.
unsafe impl<T: Copy + Sync> Sync for Storage<T> {}

impl<T: Copy> Storage<T> {
    /// `len` times `value`.
    pub(crate) fn filled(value: T, len: usize) -> Self {
        let layout = Self::layout(len);
        if layout.size() == 0 {
            return Self {
                start: NonNull::dangling(),
                len,
            };
        }
        // SAFETY: of a size above zero.
        let start = unsafe { alloc(layout) }.cast::<T>();
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        #[cfg(target_os = "linux")]
        if layout.align() == LARGE_PAGE {
            // SAFETY: the range was just allocated. Refusal does no harm, so nobody asks for it.
            unsafe {
                libc::madvise(start.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE);
            }
        }
        for index in 0..len {
            // SAFETY: within the allocation.
            unsafe { start.add(index).write(value) };
        }
        Self { start, len }
    }

    fn layout(len: usize) -> Layout {
        let plain = Layout::array::<T>(len).expect("fewer bytes than addresses");
        let align = if plain.size() >= LARGE {
            LARGE_PAGE
        } else {
            LINE
        };
        plain
            .align_to(align)
            .expect("a power of two far from the end")
    }
}

impl<T: Copy> Deref for Storage<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `filled` wrote all elements.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for Storage<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> Clone for Storage<T> {
    fn clone(&self) -> Self {
        let Some(first) = self.first() else {
            return Self {
                start: NonNull::dangling(),
                len: 0,
            };
        };
        let mut copy = Self::filled(*first, self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl<T: Copy> Drop for Storage<T> {
    fn drop(&mut self) {
        let layout = Self::layout(self.len);
        if layout.size() > 0 {
            // SAFETY: allocated with this layout; elements that are Copy need no dropping.
            unsafe { dealloc(self.start.as_ptr().cast(), layout) };
        }
    }
}

impl<T: Copy> fmt::Debug for Storage<T> {
    /// Weights are millions of numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
