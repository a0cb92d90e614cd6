//! Whether any drafter of a model fits its target, and how those that fit draft, as last checked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What the last check of the drafters found.
#[derive(Debug, Default)]
pub(super) struct Fit {
    /// The mismatch because of which no drafter can be used. None while a drafter fits, or none has answered yet.
    problem: Mutex<Option<Arc<str>>>,
    only_copies: AtomicBool,
}

impl Fit {
    pub(super) fn problem(&self) -> Option<Arc<str>> {
        self.problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Stores the mismatch that a check found; returns whether it differs from the one before.
    pub(super) fn note(&self, problem: Option<Arc<str>>) -> bool {
        let mut known = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = *known != problem;
        *known = problem;
        is_news
    }

    /// Returns whether drafters fit, and none of them has a draft model.
    pub(super) fn only_copies(&self) -> bool {
        self.only_copies.load(Ordering::Relaxed)
    }

    /// Stores what a check found.
    pub(super) fn note_only_copies(&self, only_copies: bool) {
        self.only_copies.store(only_copies, Ordering::Relaxed);
    }
}
