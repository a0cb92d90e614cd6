//! What is needed next, asked for while something else is computed.

use std::ops::Range;

use super::lanes::Lanes;

/// Bytes of a line of the caches.
const LINE: usize = 64;

/// Lines of the caches that are needed next. They are asked for only, never read.
#[derive(Clone, Copy)]
pub(super) struct NeededLines {
    first: *const u8,
    count: usize,
}

impl NeededLines {
    /// None.
    pub(super) const NONE: Self = Self {
        first: std::ptr::null(),
        count: 0,
    };

    /// Those of `numbers`, in whatever format they are held.
    #[inline(always)]
    pub(super) fn of<T>(numbers: &[T]) -> Self {
        Self {
            first: numbers.as_ptr().cast(),
            count: size_of_val(numbers).div_ceil(LINE),
        }
    }

    /// Returns the share that the parts `own` of `parts` ask for.
    #[inline(always)]
    pub(super) fn share(self, own: Range<usize>, parts: usize) -> Self {
        let at = |part: usize| self.count * part / parts;
        Self {
            first: self.line(at(own.start)),
            count: at(own.end) - at(own.start),
        }
    }

    /// For a loop of `steps` steps, some lines in each: all at once they would wait for one another.
    #[inline(always)]
    pub(super) fn in_steps(self, steps: usize) -> Ahead {
        Ahead {
            left: self,
            each: self.count.div_ceil(steps.max(1)),
        }
    }

    #[inline(always)]
    fn line(self, index: usize) -> *const u8 {
        self.first.wrapping_add(index * LINE)
    }
}

/// Lines that a loop asks for, some in each of its steps.
pub(super) struct Ahead {
    left: NeededLines,
    each: usize,
}

impl Ahead {
    /// Asks for the next of them.
    #[inline(always)]
    pub(super) fn step<L: Lanes>(&mut self) {
        let now = self.each.min(self.left.count);
        for line in 0..now {
            L::prefetch(self.left.line(line));
        }
        self.left.first = self.left.line(now);
        self.left.count -= now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_all_lines_and_none_twice() {
        let numbers = [0_u8; 68 * LINE - 3];
        let needed = NeededLines::of(&numbers);
        assert_eq!(needed.count, 68);
        for parts in [1, 3, 16] {
            let mut next = needed.first;
            for part in 0..parts {
                let share = needed.share(part..part + 1, parts);
                assert_eq!(share.first, next);
                next = share.line(share.count);
            }
            assert_eq!(next, needed.line(68));
        }
    }

    #[test]
    fn as_many_steps_ask_for_all() {
        for steps in [1, 7, 64, 100] {
            let mut ahead = NeededLines::of(&[0_u8; 68 * LINE]).in_steps(steps);
            for _ in 0..steps {
                ahead.step::<[f32; 16]>();
            }
            assert_eq!(ahead.left.count, 0, "{steps}");
        }
    }
}
