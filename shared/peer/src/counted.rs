//! How often a session's tokens were seen, kept from round to round.

use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use speculation::TokenId;
use speculation::history::History;
use wire::open::SessionSpec;

/// Where a session's history is between rounds; none while a task has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct HistoryHome(Arc<Mutex<Option<History>>>);

/// The history of a session, lent to the task of a round, after whose end it is at home again.
#[derive(Debug)]
pub struct CountedHistory {
    history: History,
    home: HistoryHome,
}

impl HistoryHome {
    /// The history of a session of `spec` after `output`. It is counted anew if a task of an earlier round, which
    /// was given up, still has it.
    pub(crate) fn lend(&self, spec: &SessionSpec, output: &[TokenId]) -> CountedHistory {
        let history = self.lock().take();
        let mut history =
            history.unwrap_or_else(|| History::new(&spec.sampling, &spec.prompt, &[]));
        history.follow(output);
        CountedHistory {
            history,
            home: self.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<History>> {
        // It is put there whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for CountedHistory {
    type Target = History;

    fn deref(&self) -> &History {
        &self.history
    }
}

impl DerefMut for CountedHistory {
    fn deref_mut(&mut self) -> &mut History {
        &mut self.history
    }
}

impl Drop for CountedHistory {
    fn drop(&mut self) {
        *self.home.lock() = Some(mem::take(&mut self.history));
    }
}
