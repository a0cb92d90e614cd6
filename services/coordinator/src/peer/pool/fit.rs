//! Whether any drafter of a model fits its target, and how those that fit draft, as last checked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What the last check of the drafters found.
#[derive(Debug, Default)]
pub(super) struct Fit {
    /// The mismatch because of which no drafter can be used. None while a drafter fits, or none has answered yet.
    problem: Mutex<Option<Arc<str>>>,
    /// Whether a check has ended, or was given up.
    is_checked: AtomicBool,
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

    /// Returns whether drafters fit, and none of them has a draft model; none before the first check.
    pub(super) fn only_copies(&self) -> Option<bool> {
        let is_checked = self.is_checked.load(Ordering::Acquire);
        is_checked.then(|| self.only_copies.load(Ordering::Relaxed))
    }

    /// Stores what a check found.
    pub(super) fn note_only_copies(&self, only_copies: bool) {
        self.only_copies.store(only_copies, Ordering::Relaxed);
        self.end_check();
    }

    /// Records that there is no need to wait for a check any more.
    pub(super) fn end_check(&self) {
        self.is_checked.store(true, Ordering::Release);
    }
}
