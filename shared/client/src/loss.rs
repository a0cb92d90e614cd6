//! Tells from a status whether the coordinator is absent, or was lost in the middle of an answer.

use std::error::Error;
use std::time::Duration;

use net::channel::{connection_fault, is_tls_fault};
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// How long to wait before asking again, if the status says so.
pub(crate) fn retry_after(status: &Status) -> Option<Duration> {
    status.get_details_retry_info()?.retry_delay
}

/// Whether a call failed because services are not up yet.
pub(crate) fn is_starting_up(status: &Status) -> bool {
    // A connection that closed under the request does not say why; the next one may.
    let is_unexplained = status.code() == Code::Cancelled && status.source().is_some();
    (status.code() == Code::Unavailable || is_unexplained) && !is_tls_fault(status)
}

/// Whether an answer under way ended because its connection broke, or its coordinator is about to go.
pub(crate) fn is_lost(status: &Status) -> bool {
    // The transport tells a broken connection by any of these, and says what it found beneath.
    let is_transport = matches!(
        status.code(),
        Code::Unknown | Code::Cancelled | Code::Internal
    ) && status.source().is_some();
    (status.code() == Code::Unavailable || is_transport) && !is_tls_fault(status)
}

/// The status of a loss with the code `UNAVAILABLE`; the transport has several codes for it.
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

    use super::*;

    /// A status that the transport made.
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
        let own = wire::status::try_again("stopping", Duration::from_secs(1));
        assert_eq!(
            retry_after(&as_unavailable(own)),
            Some(Duration::from_secs(1))
        );
    }
}
