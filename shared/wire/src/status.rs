//! Failures as statuses, and what a peer's status means for a request. Codes are those of [`Failure`].

use std::collections::HashMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use speculation::bad_value::BadValue;
use tonic::Status;
use tonic_types::{ErrorDetails, StatusExt};

use crate::failure::Failure;

/// A field of a message that is not what it must be. Maps to `INVALID_ARGUMENT`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct BadField {
    /// Path of the field, as in the `.proto` files.
    pub field: String,
    /// What is wrong, with the value and the limit.
    pub problem: String,
    /// The kind of fault, where programs act on it; `reason` of the status's `google.rpc.ErrorInfo`.
    pub reason: Option<&'static str>,
}

/// The [reason](BadField::reason) of a prompt, or of a limit of the output, that passes the model's context.
pub const CONTEXT_LENGTH_EXCEEDED: &str = "CONTEXT_LENGTH_EXCEEDED";

/// Who gives reasons their meaning; `domain` of `google.rpc.ErrorInfo`.
const DOMAIN: &str = "outrider";

impl BadField {
    /// A fault in `field`.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
            reason: None,
        }
    }

    /// Returns a fault in `field`, which passes a context of `context_len` tokens; `excess` says by what, and what to
    /// do. Clients look for the beginning of the problem, which is OpenAI's.
    pub fn beyond_context(field: &str, context_len: u32, excess: &str) -> Self {
        let problem =
            format!("This model's maximum context length is {context_len} tokens; {excess}");
        Self {
            reason: Some(CONTEXT_LENGTH_EXCEEDED),
            ..Self::new(field, problem)
        }
    }

    /// Checks that `field` has at most `most` of its `items`: entries, bytes.
    ///
    /// # Errors
    /// Names the field, how many it has, and the limit.
    pub fn at_most(field: &str, found: usize, most: usize, items: &str) -> Result<(), Self> {
        if found <= most {
            return Ok(());
        }
        let problem = format!("{found} {items}, expected at most {most}");
        Err(Self::new(field, problem))
    }

    /// Checks that the number in `field` is within `range`.
    ///
    /// # Errors
    /// Names the field, the number and the range.
    pub fn in_range<T>(field: &str, found: T, range: RangeInclusive<T>) -> Result<(), Self>
    where
        T: PartialOrd + Display,
    {
        Ok(BadValue::within(field, found, range)?)
    }

    /// Checks that each of the token ids of `field` is one of a vocabulary of `vocab_size`.
    ///
    /// # Errors
    /// Names the first one that is not.
    pub fn in_vocabulary(field: &str, tokens: &[u32], vocab_size: u32) -> Result<(), Self> {
        match tokens.iter().find(|&&token| token >= vocab_size) {
            None => Ok(()),
            Some(token) => {
                let problem = format!(
                    "token id {token} is out of range, the vocabulary has {vocab_size} tokens"
                );
                Err(Self::new(field, problem))
            }
        }
    }

    /// Reads a number of the enumeration `E`.
    ///
    /// # Errors
    /// As [`not_in`](Self::not_in).
    pub fn enumerated<E: TryFrom<i32>>(field: &str, found: i32, what: &str) -> Result<E, Self> {
        E::try_from(found).map_err(|_| Self::not_in::<E>(field, found, what))
    }

    /// A number that stands for nothing in the enumeration `E`, whose numbers follow one another.
    pub fn not_in<E: TryFrom<i32>>(field: &str, found: i32, what: &str) -> Self {
        let known = (0..i32::MAX).take_while(|&number| E::try_from(number).is_ok());
        let last = known.last().unwrap_or_default();
        Self::new(field, format!("{found} is no {what}, expected 0 to {last}"))
    }
}

impl From<BadValue> for BadField {
    fn from(BadValue { field, problem }: BadValue) -> Self {
        Self::new(field, problem)
    }
}

impl From<BadField> for Status {
    fn from(error: BadField) -> Self {
        let mut details = ErrorDetails::with_bad_request_violation(&error.field, &error.problem);
        if let Some(reason) = error.reason {
            details.set_error_info(reason, DOMAIN, HashMap::new());
        }
        Status::with_error_details(Failure::BadField.code(), error.to_string(), details)
    }
}

/// A peer computes other numbers than it said when it was asked: it is to be asked again. Maps to `ABORTED`.
pub fn other_numerics(problem: &str) -> Status {
    let details = ErrorDetails::with_bad_request_violation("numerics", problem);
    Status::with_error_details(Failure::Superseded.code(), problem, details)
}

/// Whether a status says that the model's context is too short for what was asked, when the request was read or in
/// the middle of its answer.
pub fn exceeds_context(status: &Status) -> bool {
    let info = status.get_details_error_info();
    Failure::of_status(status) == Some(Failure::ContextFull)
        || info.is_some_and(|info| info.reason == CONTEXT_LENGTH_EXCEEDED)
}

/// Whether a status says that `field` is not what it must be.
pub fn names_field(status: &Status, field: &str) -> bool {
    status.get_details_bad_request().is_some_and(|details| {
        details
            .field_violations
            .iter()
            .any(|bad| bad.field == field)
    })
}

/// `RESOURCE_EXHAUSTED` with a time to wait before trying again.
pub fn overloaded(what: impl Into<String>, retry_after: Duration) -> Status {
    Failure::Overloaded.status_after(what, retry_after)
}

/// `UNAVAILABLE` with a time to wait before trying again.
pub fn try_again(what: impl Into<String>, retry_after: Duration) -> Status {
    Failure::Unavailable.status_after(what, retry_after)
}

/// What a peer's failure means for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerFailure {
    /// Asking again, here or at another replica, may help.
    Transient,
    /// Asking again after this time may help.
    Overloaded {
        /// How long to wait.
        retry_after: Duration,
    },
    /// Asking again gives the same.
    Permanent,
}

/// How long to wait where an overloaded peer does not say.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_millis(200);

/// Longest time that an overloaded peer is believed to need, whatever it says.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(10);

/// Reads a peer's status. Only what may be passing is tried again, after no more than [`MAX_RETRY_AFTER`].
pub fn classify(status: &Status) -> PeerFailure {
    let retry_after = status
        .get_details_retry_info()
        .and_then(|info| info.retry_delay)
        .map(|delay| delay.min(MAX_RETRY_AFTER));
    match (Failure::of_status(status), retry_after) {
        (Some(Failure::Overloaded), retry_after) => PeerFailure::Overloaded {
            retry_after: retry_after.unwrap_or(DEFAULT_RETRY_AFTER),
        },
        (_, Some(retry_after)) => PeerFailure::Overloaded { retry_after },
        // A stream that is cut ends with one of these: by a broken connection, by a reset or a
        // GOAWAY of a server that stops (which tonic reports as INTERNAL), or by a newer stream.
        (
            Some(
                Failure::Unavailable
                | Failure::Cancelled
                | Failure::Late
                | Failure::Internal
                | Failure::Superseded,
            ),
            None,
        ) => PeerFailure::Transient,
        (
            None
            | Some(Failure::BadField | Failure::ContextFull | Failure::NotOffered | Failure::Denied),
            None,
        ) => PeerFailure::Permanent,
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    #[test]
    fn a_bad_field_is_named_in_message_and_details() {
        let status = Status::from(BadField::new("max_tokens", "0 is out of range"));
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(status.message(), "max_tokens: 0 is out of range");
        let details = status.get_details_bad_request().expect("details");
        assert_eq!(details.field_violations[0].field, "max_tokens");
        assert!(names_field(&status, "max_tokens") && !names_field(&status, "max"));
        assert!(!exceeds_context(&status));
    }

    #[test]
    fn what_passes_the_context_is_told_from_other_faults_of_a_field() {
        let status = Status::from(BadField::beyond_context("prompt", 8, "it has 9"));
        let message = "prompt: This model's maximum context length is 8 tokens; it has 9";
        assert_eq!(status.message(), message);
        assert!(names_field(&status, "prompt") && exceeds_context(&status));
        assert!(exceeds_context(&Status::out_of_range("in the middle")));
        assert!(!exceeds_context(&Status::unavailable("gone")));
    }

    #[test]
    fn only_passing_failures_are_tried_again() {
        let wait = Duration::from_millis(700);
        let cases = [
            (Status::unavailable("gone"), PeerFailure::Transient),
            (Status::invalid_argument("no"), PeerFailure::Permanent),
            (Status::internal("a GOAWAY"), PeerFailure::Transient),
            (Status::cancelled("a reset"), PeerFailure::Transient),
            (Status::unknown("a broken pipe"), PeerFailure::Transient),
            (Status::deadline_exceeded("late"), PeerFailure::Transient),
            // A newer stream took the session, or this one was opened before it.
            (Status::aborted("superseded"), PeerFailure::Transient),
            (Status::unimplemented("no"), PeerFailure::Permanent),
            (
                overloaded("full", wait),
                PeerFailure::Overloaded { retry_after: wait },
            ),
            (
                overloaded("full for an hour", Duration::from_secs(3_600)),
                PeerFailure::Overloaded {
                    retry_after: MAX_RETRY_AFTER,
                },
            ),
            (
                try_again("for good", Duration::from_secs(i64::MAX as u64)),
                PeerFailure::Overloaded {
                    retry_after: MAX_RETRY_AFTER,
                },
            ),
        ];
        for (status, expected) in cases {
            assert_eq!(classify(&status), expected, "{status:?}");
        }
    }
}
