//! One buffer, written by several threads in different places.

use std::marker::PhantomData;

/// A buffer whose parts go to different threads. Copies are of the same buffer.
pub(crate) struct SharedSlice<'a, T> {
    start: *mut T,
    len: usize,
    borrowed: PhantomData<&'a mut [T]>,
}

// SAFETY: who calls `range` from several threads promises ranges that do not overlap.
unsafe impl<T: Send> Sync for SharedSlice<'_, T> {}

impl<T> Clone for SharedSlice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SharedSlice<'_, T> {}

impl<'a, T> SharedSlice<'a, T> {
    pub(crate) fn new(buffer: &'a mut [T]) -> Self {
        Self {
            start: buffer.as_mut_ptr(),
            len: buffer.len(),
            borrowed: PhantomData,
        }
    }

    /// The `count` elements from `first` on.
    ///
    /// # Safety
    /// Nobody else holds any of them.
    pub(crate) unsafe fn range(self, first: usize, count: usize) -> &'a mut [T] {
        assert!(first <= self.len && count <= self.len - first);
        // SAFETY: within the buffer, and the caller's alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(first), count) }
    }
}
