//! How many of an endpoint's requests may be repetitions.

/// Repetitions for each request: one in ten.
const PER_REQUEST: f64 = 0.1;

/// Most that is saved up, and what there is at first.
const MOST: f64 = 10.0;

/// A budget of repetitions: each request adds to it, each repetition takes one.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetryBudget(f64);

impl Default for RetryBudget {
    fn default() -> Self {
        Self(MOST)
    }
}

impl RetryBudget {
    /// A request was made for the first time.
    pub(super) fn requested(&mut self) {
        self.0 = (self.0 + PER_REQUEST).min(MOST);
    }

    /// Takes a repetition; whether there was one.
    pub(super) fn take(&mut self) -> bool {
        let has_one = self.0 >= 1.0;
        if has_one {
            self.0 -= 1.0;
        }
        has_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_in_ten_may_be_repeated() {
        let mut budget = RetryBudget::default();
        assert_eq!((0..100).filter(|_| budget.take()).count(), 10);
        for _ in 0..1_000 {
            budget.requested();
        }
        // No more than ten are saved up.
        assert_eq!((0..100).filter(|_| budget.take()).count(), 10);
        let taken = (0..1_000).filter(|_| {
            budget.requested();
            budget.take()
        });
        assert!((99..=101).contains(&taken.count()));
    }
}
