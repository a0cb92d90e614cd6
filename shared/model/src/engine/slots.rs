//! Sequences that no task is running on.

use std::{collections::HashMap, sync::Arc};

use speculation::ports::KvCache;

use super::task::SlotId;
use crate::sequence::CachedSequence;

/// Idle sequences by slot, the longest unused of which go first.
pub(super) struct SlotTable<C> {
    idle: HashMap<SlotId, Idle<C>>,
    /// Tokens that the evicted sequence of a slot held.
    evicted: HashMap<SlotId, usize>,
    /// Counts returns, so that the order of last use is known without a clock.
    returns: u64,
}

struct Idle<C> {
    sequence: CachedSequence<C>,
    tenant: Option<Arc<str>>,
    returned: u64,
}

impl<C: KvCache> SlotTable<C> {
    pub(super) fn new() -> Self {
        Self {
            idle: HashMap::new(),
            evicted: HashMap::new(),
            returns: 0,
        }
    }

    /// Takes the sequence of `slot` out, if the table holds one.
    pub(super) fn take(&mut self, slot: SlotId) -> Option<CachedSequence<C>> {
        self.idle.remove(&slot).map(|idle| idle.sequence)
    }

    /// Takes the sequence of `slot` out; one with a new cache if the table holds none.
    pub(super) fn take_or(&mut self, slot: SlotId, cache: impl FnOnce() -> C) -> CachedSequence<C> {
        let lost = self.evicted.remove(&slot).unwrap_or(0);
        self.take(slot)
            .unwrap_or_else(|| CachedSequence::new(cache(), &[], lost))
    }

    /// Forgets `slot`. Returns its sequence with the tenant it is of, if the table holds one of a tenant.
    pub(super) fn free(&mut self, slot: SlotId) -> Option<(Arc<str>, CachedSequence<C>)> {
        self.evicted.remove(&slot);
        let idle = self.idle.remove(&slot)?;
        Some((idle.tenant?, idle.sequence))
    }

    /// Returns the sequences of `tenant`.
    pub(super) fn of_tenant(&self, tenant: &str) -> impl Iterator<Item = &CachedSequence<C>> {
        let idle = self.idle.values();
        let of_tenant = idle.filter(move |idle| idle.tenant.as_deref() == Some(tenant));
        of_tenant.map(|idle| &idle.sequence)
    }

    /// Puts a sequence back after use.
    pub(super) fn put(
        &mut self,
        slot: SlotId,
        tenant: Option<Arc<str>>,
        sequence: CachedSequence<C>,
    ) {
        self.returns += 1;
        let idle = Idle {
            sequence,
            tenant,
            returned: self.returns,
        };
        self.idle.insert(slot, idle);
    }

    /// Drops the sequence that was unused the longest, if there is one. Returns whether.
    pub(super) fn evict_oldest(&mut self) -> bool {
        let oldest = self.idle.iter().min_by_key(|(_, idle)| idle.returned);
        let Some((&slot, idle)) = oldest else {
            return false;
        };
        let lost = idle.sequence.tokens().len().max(idle.sequence.lost());
        self.evicted.insert(slot, lost);
        self.idle.remove(&slot);
        true
    }

    /// Drops sequences, the longest unused first, until no more than `bound` are left. Returns how many.
    pub(super) fn evict_beyond(&mut self, bound: usize) -> usize {
        let mut evicted = 0;
        while self.idle.len() > bound && self.evict_oldest() {
            evicted += 1;
        }
        evicted
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
            slots.put(SlotId(slot), None, CachedSequence::new(Empty, &[], 0));
        }
        let used = slots.take(SlotId(0)).unwrap();
        slots.put(SlotId(0), None, used);
        assert_eq!(slots.evict_beyond(2), 1);
        assert!(slots.take(SlotId(1)).is_none());
        assert!(slots.take(SlotId(0)).is_some() && slots.take(SlotId(2)).is_some());
        assert_eq!((slots.len(), slots.tokens()), (0, 0));
    }
}
