//! What is needed next, asked for while something else is computed.

use std::{ops::Range, slice::Chunks};

use super::lanes::Lanes;

/// Bytes of a line of the caches.
const LINE: usize = 64;

/// Keys or values that a loop asks for, some lines in each of its steps: all at once they would wait for one another.
pub(super) struct Ahead<'a, T>(Chunks<'a, T>);

impl<'a, T> Ahead<'a, T> {
    /// `numbers` in `steps` steps.
    #[inline(always)]
    pub(super) fn new(numbers: &'a [T], steps: usize) -> Self {
        let lines = numbers.len().div_ceil(line::<T>());
        let each = lines.div_ceil(steps.max(1)).max(1);
        Self(numbers.chunks(each * line::<T>()))
    }

    /// Asks for the next of them.
    #[inline(always)]
    pub(super) fn step<L: Lanes>(&mut self) {
        if let Some(numbers) = self.0.next() {
            for line in numbers.chunks(line::<T>()) {
                L::prefetch(&line[0]);
            }
        }
    }
}

/// Returns the share of `numbers` that the parts `own` of `parts` ask for, in whole lines.
#[inline(always)]
pub(super) fn share<T>(numbers: &[T], own: Range<usize>, parts: usize) -> &[T] {
    let lines = numbers.len() / line::<T>();
    let at = |part: usize| lines * part / parts * line::<T>();
    &numbers[at(own.start)..at(own.end)]
}

/// Numbers of a line.
#[inline(always)]
fn line<T>() -> usize {
    LINE / size_of::<T>()
}
