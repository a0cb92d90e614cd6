//! The table behind the leases: one slot a session, under one lock.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use smart_default::SmartDefault;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{AttachError, Leases, SessionCounts, SessionId};

#[derive(Debug, SmartDefault)]
pub(super) struct Slots<S> {
    next_generation: u64,
    by_id: HashMap<SessionId, LeaseSlot<S>>,
}

#[derive(Debug)]
enum LeaseSlot<S> {
    /// A stream holds the session; `generation` tells it from the streams before it.
    Attached {
        generation: u64,
        epoch: u32,
        superseded: CancellationToken,
    },
    Detached {
        state: S,
        epoch: u32,
        ends: Instant,
    },
}

impl<S> LeaseSlot<S> {
    fn is_held_by(&self, stream: u64) -> bool {
        matches!(self, Self::Attached { generation, .. } if *generation == stream)
    }

    fn epoch(&self) -> u32 {
        match self {
            Self::Attached { epoch, .. } | Self::Detached { epoch, .. } => *epoch,
        }
    }

    fn has_expired(&self, now: Instant) -> bool {
        matches!(self, Self::Detached { ends, .. } if *ends <= now)
    }
}

// A state's destructor may take its time or another lock (it frees cache blocks), so every method
// moves states out of the table and drops them after the lock is released.
impl<S> Leases<S> {
    /// Returns the generation of a session that a stream holds from now on, and its state where it is still there.
    pub(super) fn hold(
        &self,
        id: SessionId,
        epoch: u32,
        superseded: CancellationToken,
        now: Instant,
    ) -> Result<(u64, Option<S>), AttachError> {
        let mut slots = self.slots.lock();
        let expired = if slots.by_id.len() >= self.max_sessions {
            slots.take_expired(now)
        } else {
            Vec::new()
        };
        let refusal = match slots.by_id.get(&id).map(LeaseSlot::epoch) {
            Some(held) if held > epoch => Some(AttachError::Stale {
                held,
                requested: epoch,
            }),
            None if slots.by_id.len() >= self.max_sessions => {
                let max_sessions = self.max_sessions;
                Some(AttachError::Full { max_sessions })
            }
            _ => None,
        };
        if let Some(refusal) = refusal {
            drop(slots);
            drop(expired);
            return Err(refusal);
        }
        let generation = slots.next_generation;
        slots.next_generation += 1;
        let slot = LeaseSlot::Attached {
            generation,
            epoch,
            superseded,
        };
        let before = slots.by_id.insert(id, slot);
        drop(slots);
        drop(expired);

        let state = match before {
            Some(LeaseSlot::Detached { state, ends, .. }) if ends > now => Some(state),
            Some(LeaseSlot::Attached { superseded, .. }) => {
                superseded.cancel();
                None
            }
            Some(LeaseSlot::Detached { .. }) | None => None,
        };
        Ok((generation, state))
    }

    pub(super) fn detach(&self, id: SessionId, generation: u64, state: S, ends: Instant) {
        let mut slots = self.slots.lock();
        let superseded = match slots.by_id.get_mut(&id) {
            Some(slot) if slot.is_held_by(generation) => {
                let epoch = slot.epoch();
                *slot = LeaseSlot::Detached { state, epoch, ends };
                None
            }
            _ => Some(state),
        };
        drop(slots);
        drop(superseded);
    }

    pub(super) fn close(&self, id: SessionId, generation: u64) {
        if let Entry::Occupied(slot) = self.slots.lock().by_id.entry(id)
            && slot.get().is_held_by(generation)
        {
            slot.remove();
        }
    }

    /// Drops every detached session whose lease has ended by `now`; returns how many there were.
    pub fn sweep(&self, now: Instant) -> usize {
        let expired = self.slots.lock().take_expired(now);
        expired.len()
    }

    /// Counts the sessions.
    pub fn counts(&self) -> SessionCounts {
        let slots = self.slots.lock();
        let detached = slots
            .by_id
            .values()
            .filter(|slot| matches!(slot, LeaseSlot::Detached { .. }))
            .count();
        SessionCounts {
            attached: slots.by_id.len() - detached,
            detached,
        }
    }
}

impl<S> Slots<S> {
    fn take_expired(&mut self, now: Instant) -> Vec<LeaseSlot<S>> {
        self.by_id
            .extract_if(|_, slot| slot.has_expired(now))
            .map(|(_, slot)| slot)
            .collect()
    }
}
