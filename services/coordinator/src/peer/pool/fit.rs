//! Whether a model has drafters that fit its target, as a look at each of them told.

use std::sync::{Arc, Mutex, PoisonError};

/// Why none of the drafters can be used; none while one fits, or none has answered yet.
#[derive(Debug, Default)]
pub(super) struct Fit(Mutex<Option<Arc<str>>>);

impl Fit {
    pub(super) fn problem(&self) -> Option<Arc<str>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Takes note of a look; whether it is news.
    pub(super) fn note(&self, problem: Option<Arc<str>>) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = *known != problem;
        *known = problem;
        is_news
    }
}
