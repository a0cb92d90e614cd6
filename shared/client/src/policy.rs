//! When a call is made again, how long the client waits before, and what a status says of the coordinator: that it is
//! absent, or was lost in the middle of an answer.

use std::error::Error;
use std::time::Duration;

use net::fault::{connection_fault, is_tls_fault};
use tonic::{Code, Status};
use tonic_types::StatusExt;

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
    /// Returns the waits that `policy` allows, and `absence` for a coordinator that is not there.
    pub(crate) fn new(policy: &Policy, is_absence: fn(&Status) -> bool, absence: Duration) -> Self {
        Self {
            is_absence,
            absence,
            overload_retries: policy.overload_retries,
            overload_wait: policy.overload_wait,
        }
    }

    /// Returns how long to wait before a call is made again that failed with `status` so long after it was first
    /// made; none if it is not made again.
    pub(crate) fn wait(&mut self, status: &Status, elapsed: Duration) -> Option<Duration> {
        let told = retry_after(status);
        if status.code() == Code::ResourceExhausted {
            let delay = told.filter(|delay| *delay <= self.overload_wait)?;
            self.overload_retries = self.overload_retries.checked_sub(1)?;
            self.overload_wait -= delay;
            return Some(delay);
        }
        let delay = told.unwrap_or(POLL).max(POLL);
        ((self.is_absence)(status) && elapsed + delay <= self.absence).then_some(delay)
    }
}

/// Returns how long to wait before asking again, if the status says so.
pub(crate) fn retry_after(status: &Status) -> Option<Duration> {
    status.get_details_retry_info()?.retry_delay
}

/// Returns whether a call failed because services are not up yet.
pub(crate) fn is_starting_up(status: &Status) -> bool {
    // A connection that closed under the request does not say why; the next one may.
    let is_unexplained = status.code() == Code::Cancelled && status.source().is_some();
    (status.code() == Code::Unavailable || is_unexplained) && !is_tls_fault(status)
}

/// Returns whether an answer under way ended because its connection broke, or its coordinator is about to go.
pub(crate) fn is_lost(status: &Status) -> bool {
    // The transport tells a broken connection by any of these, and says what it found beneath.
    let is_transport = matches!(
        status.code(),
        Code::Unknown | Code::Cancelled | Code::Internal
    ) && status.source().is_some();
    (status.code() == Code::Unavailable || is_transport) && !is_tls_fault(status)
}

/// Returns the status of a loss with the code `UNAVAILABLE`; the transport has several codes for it.
pub(crate) fn as_unavailable(status: Status) -> Status {
    if status.code() == Code::Unavailable {
        return status;
    }
    let fault = connection_fault(&status);
    Status::unavailable(fault.unwrap_or_else(|| status.message().to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wire::status::{overloaded, try_again};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn patience(policy: &Policy) -> Patience {
        Patience::new(policy, is_starting_up, policy.startup)
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

    /// Returns a status that the transport made.
    fn of_transport(code: Code) -> Status {
        let mut status = Status::new(code, "transport error");
        let broken = std::io::Error::new(std::io::ErrorKind::BrokenPipe, "broken pipe");
        status.set_source(Arc::new(broken));
        status
    }

    #[test]
    fn a_loss_is_told_from_a_failure_by_what_lies_beneath() {
        for code in [Code::Unknown, Code::Cancelled, Code::Internal] {
            assert!(is_lost(&of_transport(code)), "{code:?}");
            assert!(!is_lost(&Status::new(code, "its own")), "{code:?}");
        }
        assert!(is_lost(&Status::unavailable("stopping")));
        assert!(!is_lost(&of_transport(Code::ResourceExhausted)));
        assert!(is_starting_up(&of_transport(Code::Cancelled)));
        assert!(!is_starting_up(&of_transport(Code::Unknown)));
    }

    #[test]
    fn a_loss_has_one_code_and_its_cause() {
        let status = as_unavailable(of_transport(Code::Unknown));
        assert_eq!(
            (status.code(), status.message()),
            (Code::Unavailable, "broken pipe")
        );
        let own = try_again("stopping", Duration::from_secs(1));
        assert_eq!(
            retry_after(&as_unavailable(own)),
            Some(Duration::from_secs(1))
        );
    }
}
