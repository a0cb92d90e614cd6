//! Bytes that may be held at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::RETRY_AFTER;

/// A number of bytes that requests share.
#[derive(Debug)]
pub(crate) struct Budget {
    /// What sets it.
    setting: &'static str,
    most: usize,
    taken: AtomicUsize,
}

impl Budget {
    /// At most `most` bytes, as `setting` says.
    pub(crate) fn new(setting: &'static str, most: usize) -> Self {
        Self {
            setting,
            most,
            taken: AtomicUsize::new(0),
        }
    }

    /// Takes all of `bytes` or none.
    fn take(&self, bytes: usize) -> bool {
        let fits = |taken: usize| taken.checked_add(bytes).filter(|&sum| sum <= self.most);
        let taken = self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What one request has of its budgets; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    budgets: [Arc<Budget>; 2],
    bytes: usize,
}

impl Share {
    pub(super) fn new(budgets: [Arc<Budget>; 2]) -> Self {
        Self { budgets, bytes: 0 }
    }

    /// Takes `bytes` more.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` with a time to wait if one of the budgets has no room for them; nothing is taken then.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Status> {
        for (index, budget) in self.budgets.iter().enumerate() {
            if !budget.take(bytes) {
                for earlier in &self.budgets[..index] {
                    earlier.give_back(bytes);
                }
                let (most, setting) = (budget.most, budget.setting);
                let message = format!("{most} bytes of requests are held already, see {setting}");
                let details = ErrorDetails::with_retry_info(Some(RETRY_AFTER));
                let code = Code::ResourceExhausted;
                return Err(Status::with_error_details(code, message, details));
            }
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        for budget in &self.budgets {
            budget.give_back(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_taken_of_all_budgets_or_none_and_given_back() {
        let budgets =
            || [("a", 10), ("b", 6)].map(|(name, most)| Arc::new(Budget::new(name, most)));
        let [first, second] = budgets();
        let of_both = || Share::new([Arc::clone(&first), Arc::clone(&second)]);
        let taken = |budget: &Budget| budget.taken.load(Ordering::Relaxed);
        let mut one = of_both();
        one.take(5).unwrap();
        let mut other = of_both();
        let refused = other.take(2).unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert!(refused.message().contains("6 bytes") && refused.message().ends_with("see b"));
        assert!(refused.get_details_retry_info().is_some());
        assert_eq!((taken(&first), taken(&second)), (5, 5));
        other.take(1).unwrap();
        drop(one);
        assert_eq!((taken(&first), taken(&second)), (1, 1));
        other.take(usize::MAX).unwrap_err();
        drop(other);
        assert_eq!((taken(&first), taken(&second)), (0, 0));
    }
}
