//! Why a request is not received.

use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// How long a client should wait for whose request there is no room.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why a request is not received.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Other requests use up the budget.
    #[error("{most} bytes of requests are held already, see {setting}")]
    Full {
        /// Size of the budget, in bytes.
        most: usize,
        /// The setting that bounds it.
        setting: &'static str,
    },
    /// The request did not arrive within its time limit.
    #[error("the request did not come whole within {limit_ms} ms, see server.receive_timeout_ms")]
    Late {
        /// The time limit, in milliseconds.
        limit_ms: u64,
    },
    /// The body is longer than its limit.
    #[error("a body of more than {most} bytes, which is the most that is read")]
    TooLarge {
        /// The limit, in bytes.
        most: usize,
    },
    /// The connection or the stream ended before the body did.
    #[error("the body was cut short")]
    CutShort,
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        let message = refused.to_string();
        match refused {
            Refused::Full { .. } => {
                let details = ErrorDetails::with_retry_info(Some(RETRY_AFTER));
                Self::with_error_details(Code::ResourceExhausted, message, details)
            }
            Refused::Late { .. } => Self::deadline_exceeded(message),
            Refused::TooLarge { .. } => Self::out_of_range(message),
            Refused::CutShort => Self::cancelled(message),
        }
    }
}
