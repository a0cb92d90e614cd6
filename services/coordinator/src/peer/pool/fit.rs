//! Whether any drafter of a model fits its target, as last checked.

use std::sync::{Arc, Mutex, PoisonError};

/// The mismatch because of which no drafter can be used. None while a drafter fits, or none has answered yet.
#[derive(Debug, Default)]
pub(super) struct Fit(Mutex<Option<Arc<str>>>);

impl Fit {
    pub(super) fn problem(&self) -> Option<Arc<str>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Stores the outcome of a check; returns whether it differs from the one before.
    pub(super) fn note(&self, problem: Option<Arc<str>>) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = *known != problem;
        *known = problem;
        is_news
    }
}
