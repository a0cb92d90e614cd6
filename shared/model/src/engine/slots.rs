//! Sequences that no task is running on.

use std::collections::HashMap;

use speculation::ports::KvCache;

use super::task::SlotId;
use crate::sequence::Sequence;

/// Idle sequences by slot, the longest unused of which go first.
pub(super) struct SlotTable<C> {
    idle: HashMap<SlotId, Idle<C>>,
    /// Counts returns, so that the order of last use is known without a clock.
    returns: u64,
}

struct Idle<C> {
    sequence: Sequence<C>,
    returned: u64,
}

impl<C: KvCache> SlotTable<C> {
    pub(super) fn new() -> Self {
        Self {
            idle: HashMap::new(),
            returns: 0,
        }
    }

    /// Takes the sequence of `slot` out, if the table holds one.
    pub(super) fn take(&mut self, slot: SlotId) -> Option<Sequence<C>> {
        self.idle.remove(&slot).map(|idle| idle.sequence)
    }

    /// Puts a sequence back after use.
    pub(super) fn put(&mut self, slot: SlotId, sequence: Sequence<C>) {
        self.returns += 1;
        let returned = self.returns;
        self.idle.insert(slot, Idle { sequence, returned });
    }

    /// Drops sequences, the longest unused first, until no more than `bound` are left.
    pub(super) fn evict_beyond(&mut self, bound: usize) {
        while self.idle.len() > bound {
            let oldest = self.idle.iter().min_by_key(|(_, idle)| idle.returned);
            let Some((&slot, _)) = oldest else { return };
            self.idle.remove(&slot);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.idle.len()
    }

    /// Tokens held by all sequences together.
    pub(super) fn tokens(&self) -> usize {
        self.idle
            .values()
            .map(|idle| idle.sequence.tokens().len())
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Empty;

    impl KvCache for Empty {
        fn len(&self) -> usize {
            0
        }

        fn truncate(&mut self, _len: usize) {}
    }

    #[test]
    fn the_longest_unused_goes_first() {
        let mut slots = SlotTable::new();
        for slot in 0..3 {
            slots.put(SlotId(slot), Sequence::new(Empty));
        }
        let used = slots.take(SlotId(0)).unwrap();
        slots.put(SlotId(0), used);
        slots.evict_beyond(2);
        assert!(slots.take(SlotId(1)).is_none());
        assert!(slots.take(SlotId(0)).is_some() && slots.take(SlotId(2)).is_some());
        assert_eq!((slots.len(), slots.tokens()), (0, 0));
    }
}
