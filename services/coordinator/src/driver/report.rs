//! Why an answer ended, as its client is told.

use std::time::Duration;

use speculation::session::{FinishReason, Peer};
use tonic::Code;
use wire::v1;

/// How long a client should wait whose request a stopping coordinator cannot take, or finish.
pub(crate) const RESTART_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why an answer ended: the reason, and code and text of a failure.
pub(super) fn finish(reason: &FinishReason) -> (v1::FinishReason, Code, String) {
    let ended = |reason| (reason, Code::Ok, String::new());
    match reason {
        FinishReason::Stop => ended(v1::FinishReason::Stop),
        FinishReason::Length => ended(v1::FinishReason::Length),
        FinishReason::Cancelled => ended(v1::FinishReason::Cancelled),
        FinishReason::DeadlineExceeded => {
            let what = "the request's deadline passed".to_owned();
            (v1::FinishReason::Error, Code::DeadlineExceeded, what)
        }
        FinishReason::Failed { peer, reason } => {
            let who = match peer {
                Peer::Drafter => "drafter",
                Peer::Verifier => "verifier",
            };
            (
                v1::FinishReason::Error,
                Code::Unavailable,
                format!("{who} lost: {reason}"),
            )
        }
    }
}

/// Why an answer ended that a stopping coordinator could not wait for.
pub(super) fn interrupted() -> (v1::FinishReason, Code, String) {
    let what = "the coordinator is shutting down; ask again".to_owned();
    (v1::FinishReason::Error, Code::Unavailable, what)
}
