//! Memory for weights, keys and values: aligned to cache lines, on large pages.

use std::{
    alloc::Layout,
    ops::{Deref, DerefMut},
    ptr::NonNull,
    sync::Arc,
};

use super::slab::{LINE, Slab};
use crate::cpu::Threads;

/// Where memory begins of which every thread writes a part of its own.
struct SharedMemory<T>(NonNull<T>);

// SAFETY: who writes from several threads promises parts that do not overlap.
unsafe impl<T: Send> Sync for SharedMemory<T> {}

impl<T> SharedMemory<T> {
    /// The element `index`.
    ///
    /// # Safety
    /// It is within the memory.
    unsafe fn at(&self, index: usize) -> NonNull<T> {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(index) }
    }
}

/// A fixed number of `T`, plain numbers all of them; they are millions, and only their number is shown.
#[derive(derive_more::Debug)]
#[debug("Storage {{ len: {len}, .. }}")]
pub(crate) struct Storage<T: Copy> {
    start: NonNull<T>,
    len: usize,
    /// What it is in; nothing of no bytes.
    #[allow(dead_code, reason = "keeps the memory")]
    slab: Option<Arc<Slab>>,
}

// SAFETY: it owns its elements, as a Vec does.
unsafe impl<T: Copy + Send> Send for Storage<T> {}
// SAFETY: as above.
unsafe impl<T: Copy + Sync> Sync for Storage<T> {}

impl<T: Copy> Storage<T> {
    /// `len` elements that nothing was written to.
    fn taken(len: usize) -> (NonNull<T>, Option<Arc<Slab>>) {
        const { assert!(align_of::<T>() <= LINE) };
        let layout = Layout::array::<T>(len).expect("fewer bytes than addresses");
        let taken = (layout.size() > 0).then(|| Slab::take(layout.size()));
        taken.map_or((NonNull::dangling(), None), |(start, slab)| {
            (start.cast(), Some(slab))
        })
    }

    /// `len` times `value`.
    pub(crate) fn filled(value: T, len: usize) -> Self {
        let (start, slab) = Self::taken(len);
        for index in 0..len {
            // SAFETY: within what was taken, or of no bytes.
            unsafe { start.add(index).write(value) };
        }
        Self { start, len, slab }
    }

    /// `parts` parts of `len` elements, each of which some thread fills with `value` and gives to `make` with its
    /// number.
    pub(crate) fn in_parts(
        threads: &Threads,
        value: T,
        parts: usize,
        len: usize,
        make: impl Fn(usize, &mut [T]) + Sync,
    ) -> Self
    where
        T: Send + Sync,
    {
        let count = parts.checked_mul(len).expect("fewer than addresses");
        let (start, slab) = Self::taken(count);
        let shared = SharedMemory(start);
        threads.each(parts, &|part| {
            // SAFETY: the part is within what was taken, or of no bytes, and this call's alone; it is lent once it
            // is written.
            let part_of_all = unsafe {
                let start = shared.at(part * len);
                for index in 0..len {
                    start.add(index).write(value);
                }
                std::slice::from_raw_parts_mut(start.as_ptr(), len)
            };
            make(part, part_of_all);
        });
        Self {
            start,
            len: count,
            slab,
        }
    }

    /// `count` elements from `first` on, for who shares the whole with others that write beside them.
    ///
    /// # Safety
    /// Nobody writes them meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn part(&self, first: usize, count: usize) -> &[T] {
        assert!(first <= self.len && count <= self.len - first);
        // SAFETY: within the elements, all of which `filled` wrote, and no more than the caller has.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(first), count) }
    }

    /// `count` elements from `first` on, for who shares the whole with others.
    ///
    /// # Safety
    /// Nobody else reads or writes them meanwhile.
    #[allow(clippy::mut_from_ref, reason = "that is what the caller promises")]
    pub(crate) unsafe fn part_mut(&self, first: usize, count: usize) -> &mut [T] {
        assert!(first <= self.len && count <= self.len - first);
        // SAFETY: within the elements, and the caller's alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(first), count) }
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
            let slab = None;
            return Self { slab, ..*self };
        };
        let mut copy = Self::filled(*first, self.len);
        copy.copy_from_slice(self);
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::super::slab::SHARED;
    use super::*;

    #[test]
    fn parts_of_a_slab_do_not_overlap_and_are_aligned() {
        let mut parts: Vec<Storage<u32>> = (0..100)
            .map(|part| Storage::filled(part, 1 + 7919 * part as usize % 300_000))
            .collect();
        parts.push(Storage::filled(100, SHARED / 4 + 1));
        for part in parts.iter().chain(&[parts[3].clone()]) {
            assert_eq!(part.as_ptr() as usize % LINE, 0);
        }
        for (index, part) in parts.iter_mut().enumerate() {
            assert!(part.iter().all(|&value| value == index as u32), "{index}");
            part.fill(u32::MAX);
            part.fill(index as u32);
        }
        for (index, part) in parts.iter().enumerate() {
            assert!(part.iter().all(|&value| value == index as u32), "{index}");
        }
    }

    #[test]
    fn threads_make_the_parts_of_one_storage() {
        for threads in [1, 2, 5] {
            let made = Storage::in_parts(&Threads::new(threads), 7_u32, 301, 13, |part, values| {
                assert_eq!(values, [7; 13]);
                // The last stays as it was filled.
                values[..12].fill(part as u32);
            });
            for (part, values) in made.chunks(13).enumerate() {
                assert_eq!(values[..12], [part as u32; 12], "{threads}");
                assert_eq!(values[12], 7, "{threads}");
            }
            assert_eq!(made.len(), 301 * 13);
        }
        let none = Storage::in_parts(&Threads::new(2), 1_u8, 0, 5, |_, _| panic!("no part"));
        assert!(none.is_empty());
    }

    #[test]
    fn a_slab_is_free_when_its_last_part_is() {
        let part = Storage::filled(1_u8, SHARED + 1);
        let slab = Arc::downgrade(part.slab.as_ref().expect("a slab"));
        let copy = part.clone();
        drop(part);
        assert!(slab.upgrade().is_none());
        assert_eq!(copy.len(), SHARED + 1);
        assert!(Storage::filled(1_u8, 0).clone().is_empty());
    }
}
