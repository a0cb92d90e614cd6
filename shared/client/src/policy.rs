//! When a call is made again, and how long the client waits before.

use std::time::Duration;

use tonic::Status;

use crate::loss::retry_after;

/// Pause before a coordinator that was not there is called again.
const POLL: Duration = Duration::from_millis(200);

/// How a client deals with a coordinator that is not there, or has too much to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long services may take to start up before they count as unreachable. With zero nobody is waited for.
    pub startup: Duration,
    /// How often a call is made again that an overloaded coordinator refused (`RESOURCE_EXHAUSTED` with a time to
    /// wait). The client waits as long as it is told. With zero such a call fails at once.
    pub overload_retries: u32,
    /// How long these waits of one call may take together. A wait that would take longer is not begun.
    pub overload_wait: Duration,
    /// Whether the client goes on with an answer whose connection or coordinator was lost.
    pub resume: bool,
    /// How often it does so, for one answer.
    pub resume_tries: u32,
    /// How long a lost coordinator may take each time until it is back.
    pub resume_wait: Duration,
}

impl Policy {
    /// Makes each call once, for those who measure or who decide by themselves.
    pub const NONE: Self = Self {
        startup: Duration::ZERO,
        overload_retries: 0,
        overload_wait: Duration::ZERO,
        resume: false,
        resume_tries: 0,
        resume_wait: Duration::ZERO,
    };
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            startup: Duration::from_secs(5),
            overload_retries: 5,
            overload_wait: Duration::from_secs(30),
            resume: true,
            resume_tries: 3,
            resume_wait: Duration::from_secs(30),
        }
    }
}

/// The waits that one call may still take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Whether a status says that nobody is there.
    is_absence: fn(&Status) -> bool,
    /// How long the call may take with nobody there.
    absence: Duration,
    overload_retries: u32,
    overload_wait: Duration,
}

impl Patience {
    /// The waits that `policy` allows, and `absence` for a coordinator that is not there.
    pub(crate) fn new(policy: &Policy, is_absence: fn(&Status) -> bool, absence: Duration) -> Self {
        Self {
            is_absence,
            absence,
            overload_retries: policy.overload_retries,
            overload_wait: policy.overload_wait,
        }
    }

    /// How long to wait before a call is made again that failed with `status` so long after it was first made; none
    /// if it is not made again.
    pub(crate) fn wait(&mut self, status: &Status, elapsed: Duration) -> Option<Duration> {
        let told = retry_after(status);
        if status.code() == tonic::Code::ResourceExhausted {
            let delay = told.filter(|delay| *delay <= self.overload_wait)?;
            self.overload_retries = self.overload_retries.checked_sub(1)?;
            self.overload_wait -= delay;
            return Some(delay);
        }
        let delay = told.unwrap_or(POLL).max(POLL);
        ((self.is_absence)(status) && elapsed + delay <= self.absence).then_some(delay)
    }
}

#[cfg(test)]
mod tests {
    use wire::status::{overloaded, try_again};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn patience(policy: &Policy) -> Patience {
        Patience::new(policy, crate::loss::is_starting_up, policy.startup)
    }

    #[test]
    fn an_overloaded_coordinator_is_waited_for_as_it_says_within_count_and_time() {
        let busy = |seconds| overloaded("busy", seconds * SECOND);
        let policy = Policy {
            overload_retries: 2,
            overload_wait: 5 * SECOND,
            ..Policy::default()
        };
        let mut by_count = patience(&policy);
        let waits = [1, 2, 1].map(|told| by_count.wait(&busy(told), SECOND));
        assert_eq!(waits, [Some(SECOND), Some(2 * SECOND), None]);
        let mut by_time = patience(&policy);
        let waits = [4, 2, 1].map(|told| by_time.wait(&busy(told), SECOND));
        assert_eq!(waits, [Some(4 * SECOND), None, Some(SECOND)]);
        assert_eq!(patience(&Policy::NONE).wait(&busy(0), SECOND), None);
        // Nobody said how long: a message that is too large stays too large.
        let unsaid = Status::resource_exhausted("too large");
        assert_eq!(patience(&policy).wait(&unsaid, SECOND), None);
    }

    #[test]
    fn whoever_is_not_there_is_waited_for_until_the_time_is_over() {
        let mut left = patience(&Policy::default());
        let gone = Status::unavailable("refused");
        assert_eq!(left.wait(&gone, Duration::ZERO), Some(POLL));
        assert_eq!(left.wait(&gone, 4 * SECOND), Some(POLL));
        assert_eq!(left.wait(&gone, 5 * SECOND), None);
        // A coordinator that stops says when its successor may be there.
        let stopping = try_again("stopping", SECOND);
        assert_eq!(left.wait(&stopping, 4 * SECOND), Some(SECOND));
        assert_eq!(left.wait(&stopping, 5 * SECOND), None);
        assert_eq!(patience(&Policy::NONE).wait(&gone, Duration::ZERO), None);
    }

    #[test]
    fn what_is_wrong_with_a_request_is_never_waited_for() {
        for status in [
            Status::invalid_argument("max_tokens: 0"),
            Status::unauthenticated("no token"),
            Status::unimplemented("another service"),
            Status::cancelled("by the client"),
        ] {
            assert_eq!(
                patience(&Policy::default()).wait(&status, Duration::ZERO),
                None
            );
        }
    }
}
