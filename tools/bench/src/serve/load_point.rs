//! Requests sent at their times, so many at once, and what became of them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use outrider::progress;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::answer::Answer;
use super::endpoint::Endpoint;
use super::failure::RequestFailure;

/// A request that is to be sent.
#[derive(Clone, Debug)]
pub(super) struct PlannedRequest {
    /// What kind of prompt it has.
    pub(super) kind: String,
    pub(super) body: Bytes,
    /// When it is to be sent, from the beginning on.
    pub(super) due: Duration,
}

/// What became of a request.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) kind: String,
    /// How long after its time it was sent.
    late: Duration,
    /// When its answer was whole or it failed, from the beginning on.
    ended: Duration,
    pub(super) answer: Result<Answer, RequestFailure>,
}

/// What became of all of them.
#[derive(Debug)]
pub(super) struct LoadOutcome {
    /// Requests that were to be sent.
    pub(super) planned: usize,
    /// Of those that ended; all, unless it was interrupted.
    pub(super) outcomes: Vec<Outcome>,
}

impl LoadOutcome {
    /// Returns the seconds from the first request to the last end of one.
    pub(super) fn seconds(&self) -> f64 {
        let ends = self.outcomes.iter().map(|outcome| outcome.ended);
        ends.max().unwrap_or_default().as_secs_f64()
    }

    /// Returns the milliseconds after its time at which the latest request was sent.
    pub(super) fn late_ms(&self) -> f64 {
        let late = self.outcomes.iter().map(|outcome| outcome.late);
        late.max().unwrap_or_default().as_secs_f64() * 1e3
    }
}

/// Sends `planned`, in order of their times, to `path` of `endpoint`, and waits until all ended; `at_once` is the most
/// that are open at a time. Once `stop` is cancelled, none is sent any more, and those that are open are given up.
pub(super) async fn send(
    endpoint: &Arc<Endpoint>,
    path: &'static str,
    planned: Vec<PlannedRequest>,
    at_once: Option<usize>,
    stop: &CancellationToken,
) -> LoadOutcome {
    let count = planned.len();
    let places = Arc::new(Semaphore::new(at_once.unwrap_or(Semaphore::MAX_PERMITS)));
    let mut open = JoinSet::new();
    let mut outcomes = Vec::with_capacity(count);
    let began = Instant::now();
    for request in planned {
        let due = began + request.due;
        let place = async {
            sleep_until(due).await;
            Arc::clone(&places).acquire_owned().await
        };
        // Nobody closes the semaphore: an error would be as an interruption.
        let place = tokio::select! {
            Ok(place) = place => place,
            () = stop.cancelled() => break,
        };
        let late = due.elapsed();
        let endpoint = Arc::clone(endpoint);
        open.spawn(async move {
            let answer = endpoint.stream(path, request.body).await;
            drop(place);
            Outcome {
                kind: request.kind,
                late,
                ended: began.elapsed(),
                answer,
            }
        });
        while let Some(ended) = open.try_join_next() {
            outcomes.extend(outcome(ended));
        }
        show(outcomes.len(), count);
    }
    loop {
        tokio::select! {
            ended = open.join_next() => match ended {
                Some(ended) => outcomes.extend(outcome(ended)),
                None => break,
            },
            () = stop.cancelled(), if !stop.is_cancelled() => {}
        }
        if stop.is_cancelled() {
            open.abort_all();
        }
        show(outcomes.len(), count);
    }
    LoadOutcome {
        planned: count,
        outcomes,
    }
}

/// Returns what became of a request, unless it was given up.
fn outcome(ended: Result<Outcome, JoinError>) -> Option<Outcome> {
    match ended {
        Ok(outcome) => Some(outcome),
        // A fault of this program goes on as one.
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => None,
    }
}

/// Shows how many have ended. That a terminal cannot be written to is no failure of what is measured.
fn show(ended: usize, count: usize) {
    let _unseen = progress::show(&format!("{ended} of {count} requests ended"));
}
