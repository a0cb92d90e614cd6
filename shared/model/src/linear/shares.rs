//! What each thread computes of a product.

use std::ops::Range;

use crate::cpu::first_part;

/// Parts that a thread's share is cut into, so that an idle thread finds some to take over.
const PARTS: usize = 8;

/// How the groups of a matrix are cut into parts for threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    groups: usize,
    threads: usize,
    /// Groups of a part.
    width: usize,
    pub(super) parts: usize,
}

impl Shares {
    /// Of parts that are multiples of `step` groups.
    pub(super) fn new(groups: usize, step: usize, threads: usize) -> Self {
        let width = if threads == 1 {
            groups
        } else {
            groups.div_ceil(PARTS * threads).next_multiple_of(step)
        };
        Self {
            groups,
            threads,
            width,
            parts: groups.div_ceil(width),
        }
    }

    pub(super) fn groups(self, part: usize) -> Range<usize> {
        part * self.width..self.groups.min((part + 1) * self.width)
    }

    /// The first part that is meant for a thread.
    pub(super) fn first(self, share: usize) -> usize {
        first_part(self.parts, self.threads, share)
    }

    /// The thread whose last part this is.
    pub(super) fn share_that_ends_with(self, part: usize) -> Option<usize> {
        (0..self.threads).find(|share| self.first(share + 1) == part + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_share_ends_with_one_part() {
        for (groups, threads) in [
            (1, 1),
            (7, 1),
            (1, 2),
            (3, 2),
            (17, 2),
            (1000, 2),
            (1000, 7),
        ] {
            let shares = Shares::new(groups, 1, threads);
            let mut next = 0;
            let mut ends = Vec::new();
            for part in 0..shares.parts {
                assert_eq!(shares.groups(part).start, next, "{groups}, {threads}");
                next = shares.groups(part).end;
                ends.extend(shares.share_that_ends_with(part));
            }
            assert_eq!(next, groups);
            if groups >= threads {
                assert_eq!(
                    ends,
                    (0..threads).collect::<Vec<_>>(),
                    "{groups}, {threads}"
                );
            }
            for share in ends {
                assert!(shares.first(share) < shares.parts, "{groups}, {threads}");
            }
        }
    }

    #[test]
    fn parts_are_whole_steps() {
        for (groups, threads) in [(2, 2), (6, 2), (22, 2), (64, 2), (64, 7)] {
            let shares = Shares::new(groups, 2, threads);
            let parts: Vec<_> = (0..shares.parts).map(|part| shares.groups(part)).collect();
            let even = |range: &Range<usize>| {
                [range.start, range.end]
                    .iter()
                    .all(|at| at.is_multiple_of(2))
            };
            assert!(parts.iter().all(even), "{groups}, {threads}: {parts:?}");
            assert_eq!(parts.iter().map(Range::len).sum::<usize>(), groups);
        }
    }
}
