//! The kinds of failures: the one table of codes, of gRPC and of HTTP.

use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// What is wrong, as far as it matters to whoever is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// A field is not what it must be, or does not go with another: change the request.
    BadField,
    /// The sequence is longer than a model's context or its memory holds.
    ContextFull,
    /// There is too much to do at the moment: wait.
    Overloaded,
    /// Something that is needed is not there at the moment: another replica may have it.
    Unavailable,
    /// It took too long.
    Late,
    /// Something newer has taken its place.
    Superseded,
    /// Who asked is gone.
    Cancelled,
    /// This version does not offer it.
    NotOffered,
    /// Who asks is not let in.
    Denied,
    /// A fault of the program.
    Internal,
}

impl Failure {
    /// The gRPC code that says it.
    pub const fn code(self) -> Code {
        match self {
            Self::BadField => Code::InvalidArgument,
            Self::ContextFull => Code::OutOfRange,
            Self::Overloaded => Code::ResourceExhausted,
            Self::Unavailable => Code::Unavailable,
            Self::Late => Code::DeadlineExceeded,
            Self::Superseded => Code::Aborted,
            Self::Cancelled => Code::Cancelled,
            Self::NotOffered => Code::Unimplemented,
            Self::Denied => Code::Unauthenticated,
            Self::Internal => Code::Internal,
        }
    }

    /// The HTTP status that says it.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::BadField | Self::ContextFull => 400,
            Self::Denied => 401,
            Self::Superseded => 409,
            Self::Overloaded => 429,
            // What servers write down for clients that hung up.
            Self::Cancelled => 499,
            Self::Internal => 500,
            Self::NotOffered => 501,
            Self::Unavailable => 503,
            Self::Late => 504,
        }
    }

    /// Returns the failure that a code stands for, also a code that only others give; none for success.
    pub const fn of(code: Code) -> Option<Self> {
        Some(match code {
            Code::Ok => return None,
            Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::NotFound
            | Code::AlreadyExists => Self::BadField,
            Code::OutOfRange => Self::ContextFull,
            Code::ResourceExhausted => Self::Overloaded,
            // A broken connection comes as either.
            Code::Unavailable | Code::Unknown => Self::Unavailable,
            Code::DeadlineExceeded => Self::Late,
            Code::Aborted => Self::Superseded,
            Code::Cancelled => Self::Cancelled,
            Code::Unimplemented => Self::NotOffered,
            Code::Unauthenticated | Code::PermissionDenied => Self::Denied,
            Code::Internal | Code::DataLoss => Self::Internal,
        })
    }

    /// Returns the failure that `status` stands for; none for success.
    pub fn of_status(status: &Status) -> Option<Self> {
        Self::of(status.code())
    }

    /// A status that says `message` of it.
    pub fn status(self, message: impl Into<String>) -> Status {
        Status::new(self.code(), message)
    }

    /// The same with a time to wait before trying again.
    pub fn status_after(self, message: impl Into<String>, retry_after: Duration) -> Status {
        let details = ErrorDetails::with_retry_info(Some(retry_after));
        Status::with_error_details(self.code(), message, details)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_is_read_back_from_its_code() {
        let codes = (0..17).map(Code::from_i32);
        let failures: Vec<Failure> = codes.clone().filter_map(Failure::of).collect();
        assert_eq!(failures.len(), 16);
        for failure in failures {
            assert_eq!(Failure::of(failure.code()), Some(failure));
        }
        assert_eq!(Failure::of(Code::Ok), None);
    }
}
