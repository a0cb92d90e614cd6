//! What is wrong with a process that is ready all the same.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Tells what is wrong at the moment, if anything is.
type Warning = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// Those who may have something to say. Clones share them.
#[derive(Clone, Default)]
pub struct Warnings(Arc<Mutex<Vec<Warning>>>);

impl Warnings {
    /// Has `warning` asked whenever readiness is.
    pub fn add(&self, warning: impl Fn() -> Option<String> + Send + Sync + 'static) {
        self.lock().push(Box::new(warning));
    }

    /// Returns what is wrong at the moment.
    pub fn all(&self) -> Vec<String> {
        self.lock().iter().filter_map(|warning| warning()).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Warning>> {
        // A list is in order whoever panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}
