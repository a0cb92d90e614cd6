//! Bytes that may be held at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::RETRY_AFTER;

/// A number of bytes that requests share. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    /// What sets it.
    setting: &'static str,
    most: usize,
    left: Arc<Semaphore>,
}

impl Budget {
    /// At most `most` bytes, as `setting` says.
    pub(crate) fn new(setting: &'static str, most: usize) -> Self {
        let left = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        Self {
            setting,
            most,
            left,
        }
    }

    fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes).ok()?;
        Arc::clone(&self.left).try_acquire_many_owned(bytes).ok()
    }
}

/// What one request has of its budgets; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    budgets: [Budget; 2],
    held: [Option<OwnedSemaphorePermit>; 2],
}

impl Share {
    pub(super) fn new(budgets: [Budget; 2]) -> Self {
        let held = [None, None];
        Self { budgets, held }
    }

    /// Takes `bytes` more.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` with a time to wait if one of the budgets has no room for them; nothing is taken then.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Status> {
        let mut taken = Vec::new();
        for budget in &self.budgets {
            taken.push(budget.take(bytes).ok_or_else(|| {
                let (most, setting) = (budget.most, budget.setting);
                let message = format!("{most} bytes of requests are held already, see {setting}");
                let details = ErrorDetails::with_retry_info(Some(RETRY_AFTER));
                Status::with_error_details(Code::ResourceExhausted, message, details)
            })?);
        }
        for (held, taken) in self.held.iter_mut().zip(taken) {
            match held {
                Some(held) => held.merge(taken),
                None => *held = Some(taken),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_taken_of_all_budgets_or_none_and_given_back() {
        let budgets = [("a", 10), ("b", 6)].map(|(name, most)| Budget::new(name, most));
        let of_both = || Share::new(budgets.clone());
        let taken = || {
            let taken = |budget: &Budget| budget.most - budget.left.available_permits();
            (taken(&budgets[0]), taken(&budgets[1]))
        };
        let mut one = of_both();
        one.take(5).unwrap();
        let mut other = of_both();
        let refused = other.take(2).unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert!(refused.message().contains("6 bytes") && refused.message().ends_with("see b"));
        assert!(refused.get_details_retry_info().is_some());
        assert_eq!(taken(), (5, 5));
        other.take(1).unwrap();
        drop(one);
        assert_eq!(taken(), (1, 1));
        other.take(usize::MAX).unwrap_err();
        drop(other);
        assert_eq!(taken(), (0, 0));
    }
}
