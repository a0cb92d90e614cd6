//! A value of a session that a task owns while a round runs.

use std::mem;
use std::sync::Arc;

use derive_more::{Deref, DerefMut};
use parking_lot::Mutex;

/// Where a lent value is put back; empty while a task has it.
pub type LentSlot<T> = Arc<Mutex<Option<T>>>;

/// A value that a task has for as long as it runs, and puts back when it is dropped.
#[derive(Debug, Deref, DerefMut)]
pub struct Lent<T: Default> {
    #[deref]
    #[deref_mut]
    value: T,
    slot: LentSlot<T>,
}

impl<T: Default> Lent<T> {
    /// Lends `value`, which goes back to `slot`.
    pub fn new(value: T, slot: &LentSlot<T>) -> Self {
        let slot = Arc::clone(slot);
        Self { value, slot }
    }
}

impl<T: Default> Drop for Lent<T> {
    fn drop(&mut self) {
        *self.slot.lock() = Some(mem::take(&mut self.value));
    }
}
