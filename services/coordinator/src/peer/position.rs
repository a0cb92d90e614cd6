//! Where a request stands when a peer is asked, and how long the peer may take.

use std::time::{Duration, Instant};

use fleet::CallError;
use ops::trace::TraceContext;
use speculation::TokenId;

/// How long a peer may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    /// Until then.
    pub(crate) until: Instant,
    /// Whether that is less than a peer is due, as the request's own time ends: then nobody is to blame.
    pub(crate) is_short: bool,
}

impl Deadline {
    /// Returns the time that is left.
    pub(crate) fn left(self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Returns the deadline of a peer that is due `whole`, and gets no more than `most`.
    pub(crate) fn at_most(most: Duration, whole: Duration) -> Self {
        Self {
            until: Instant::now() + whole.min(most),
            is_short: most < whole,
        }
    }

    /// Returns the failure of a peer that did not answer within the time it was given.
    pub(crate) fn exceeded(self, given: Duration) -> CallError {
        if self.is_short {
            CallError::OutOfTime(given)
        } else {
            CallError::Late(given)
        }
    }
}

/// Where a request stands when a peer is asked.
#[derive(Clone, Copy)]
pub(crate) struct RoundPosition<'a> {
    pub(crate) round: u64,
    pub(crate) deadline: Deadline,
    /// All output tokens so far.
    pub(crate) output: &'a [TokenId],
    /// How many of them were emitted, and so will stand at the next round.
    pub(crate) emitted: usize,
    /// The least probability of survival at which one more draft token pays, see [`Decision::worth`].
    ///
    /// [`Decision::worth`]: speculation::goodput::Decision::worth
    pub(crate) worth: Option<f64>,
    /// What the peer hangs its spans on, if it is to make any.
    pub(crate) trace: Option<TraceContext>,
}
