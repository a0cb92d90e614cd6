//! The numbers of all heads of a page, for threads that each have a head.

use crate::linear::Storage;

/// The numbers of all heads, one head after the other.
///
/// While one thread writes a head another may read the next, so no reference ever spans two: a slice of all
/// heads, of which a part is then taken, would already be one to what the other thread writes. That is why
/// there is no way to the numbers but these functions, each of which makes its slice of one head alone.
#[derive(Debug)]
pub(super) struct HeadNumbers<T: Copy> {
    numbers: Storage<T>,
    /// Numbers of a head.
    width: usize,
}

impl<T: Copy> HeadNumbers<T> {
    /// `count` heads of `width` times `value`.
    pub(super) fn filled(value: T, count: usize, width: usize) -> Self {
        Self {
            numbers: Storage::filled(value, count * width),
            width,
        }
    }

    /// All numbers of `head`. Who writes them promises that nobody has this slice.
    #[inline(always)]
    pub(super) fn head(&self, head: usize) -> &[T] {
        // SAFETY: whoever calls `part_mut` promises that nobody reads the head meanwhile.
        unsafe { self.numbers.part(head * self.width, self.width) }
    }

    /// `count` numbers of `head` from its number `first` on.
    ///
    /// # Safety
    /// Nobody else reads or writes this head meanwhile.
    #[allow(clippy::mut_from_ref, reason = "that is what the caller promises")]
    #[inline(always)]
    pub(super) unsafe fn part_mut(&self, head: usize, first: usize, count: usize) -> &mut [T] {
        assert!(first <= self.width && count <= self.width - first);
        // SAFETY: of this head alone, and the caller's promise.
        unsafe { self.numbers.part_mut(head * self.width + first, count) }
    }

    /// Takes over the numbers of another page of the same pool.
    pub(super) fn copy_from(&mut self, other: &Self) {
        let width = self.width;
        for (head, numbers) in self.numbers.chunks_exact_mut(width.max(1)).enumerate() {
            numbers.copy_from_slice(other.head(head));
        }
    }
}
