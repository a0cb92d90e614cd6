//! Errors of the client.

use net::channel::ChannelError;
use net::fault::describe;
use tonic::{Code, Status};
use tonic_types::StatusExt;
use wire::failure::Failure;
use wire::v1;

use crate::given::OtherTokens;

/// Why a client did not get what it asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL cannot be connected to.
    #[error(transparent)]
    Url(#[from] ChannelError),
    /// The coordinator refused the request, or could not be reached.
    #[error("{}", describe(.0))]
    Status(Status),
    /// The connection or the coordinator was lost in the middle of an answer, and the client did not go on: the
    /// method is not reproducible, the policy forbids it, or nobody came back in time.
    #[error("lost after {tokens} output tokens: {}", .status.message())]
    Lost {
        /// Output tokens that were given out.
        tokens: usize,
        /// The last status, with the code `UNAVAILABLE`.
        status: Status,
    },
    /// The answer ended with a failure, which its last message tells with what was counted until then. The tokens
    /// before it are valid.
    #[error("{} ({:?})", .0.error, self.code())]
    Failed(Box<v1::Finished>),
    /// The coordinator gave other tokens after a loss than before it.
    #[error(transparent)]
    OtherTokens(#[from] OtherTokens),
}

impl Error {
    /// Its gRPC code.
    pub fn code(&self) -> Code {
        match self {
            Self::Url(_) => Failure::BadField.code(),
            Self::Status(status) | Self::Lost { status, .. } => status.code(),
            Self::Failed(finished) => Code::from_i32(finished.error_code as i32),
            Self::OtherTokens(_) => Failure::Superseded.code(),
        }
    }

    /// Returns the status of the coordinator or of the connection; none where the failure was told or found otherwise.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status(status) | Self::Lost { status, .. } => Some(status),
            Self::Url(_) | Self::Failed(_) | Self::OtherTokens(_) => None,
        }
    }

    /// Path of the request's field that is not what it must be, as in the `.proto` files; the first, if there are
    /// several.
    pub fn field(&self) -> Option<String> {
        let details = self.status()?.get_details_bad_request()?;
        let first = details.field_violations.into_iter().next();
        first.map(|violation| violation.field)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wire::status::{BadField, overloaded};

    use super::*;

    #[test]
    fn an_error_says_its_code_and_its_field() {
        let bad = Error::Status(BadField::new("max_tokens", "0 is out of range").into());
        assert_eq!(bad.field().as_deref(), Some("max_tokens"));
        assert_eq!(bad.code(), Code::InvalidArgument);
        let busy = Error::Status(overloaded("busy", Duration::from_millis(700)));
        assert_eq!((busy.code(), busy.field()), (Code::ResourceExhausted, None));
        let failed = Error::Failed(Box::new(v1::Finished {
            error: "the deadline passed".to_owned(),
            error_code: Code::DeadlineExceeded as u32,
            ..Default::default()
        }));
        assert_eq!(failed.to_string(), "the deadline passed (DeadlineExceeded)");
        assert_eq!(failed.code(), Code::DeadlineExceeded);
    }
}
