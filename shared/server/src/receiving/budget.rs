//! Bytes that may be held at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::refused::Refused;

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
    /// [`Refused::Full`] if one of the budgets has no room for them; nothing is taken then.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Refused> {
        let mut taken = Vec::new();
        for budget in &self.budgets {
            let of_this = budget.take(bytes).ok_or(Refused::Full {
                most: budget.most,
                setting: budget.setting,
            });
            taken.push(of_this?);
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
        let (most, setting) = (6, "b");
        assert_eq!(refused, Refused::Full { most, setting });
        assert_eq!(taken(), (5, 5));
        other.take(1).unwrap();
        drop(one);
        assert_eq!(taken(), (1, 1));
        other.take(usize::MAX).unwrap_err();
        drop(other);
        assert_eq!(taken(), (0, 0));
    }
}
