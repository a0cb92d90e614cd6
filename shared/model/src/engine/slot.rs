//! A sequence's place in an engine, freed when dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::handle::{EngineHandle, Rejected};
use super::task::{SlotId, Task};

/// Numbers slots; unique in the process, so that no two engines' slots are ever confused.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A slot of its own in an engine. Dropping it frees its keys and values.
#[derive(Debug)]
pub struct Slot {
    engine: EngineHandle,
    id: SlotId,
    tenant: Option<Arc<str>>,
}

impl EngineHandle {
    /// A slot that no one else uses, of `tenant`. It takes memory from its first task on. Where
    /// [`EngineConfig::prefix_sharing`](super::EngineConfig::prefix_sharing) allows it, its sequence may
    /// begin with the memory of earlier ones of the same tenant; where that is empty it never does.
    pub fn new_slot_of(&self, tenant: &str) -> Slot {
        Slot {
            engine: self.clone(),
            id: SlotId(NEXT.fetch_add(1, Ordering::Relaxed)),
            tenant: (!tenant.is_empty()).then(|| tenant.into()),
        }
    }
}

impl Slot {
    /// Queues `task` on this slot's sequence.
    ///
    /// # Errors
    /// [`Rejected`], at once: this never blocks.
    pub fn try_submit(&self, task: impl Task) -> Result<(), Rejected> {
        let tenant = self.tenant.clone();
        self.engine.submit(self.id, tenant, Box::new(task))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.engine.free(self.id);
    }
}
