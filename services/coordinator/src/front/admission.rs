//! Who is let in: a bounded number of requests at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;
use wire::status::{BadField, overloaded};

/// How long a refused client should wait.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Lets at most so many requests run at a time.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    permits: Arc<Semaphore>,
    max_requests: usize,
    /// Room for distributions, in KiB.
    room: Arc<Semaphore>,
    max_kib: usize,
}

impl Admission {
    pub(crate) fn new(max_requests: usize, max_distribution_bytes: u64) -> Self {
        let max_kib = (max_distribution_bytes >> 10).min(Semaphore::MAX_PERMITS as u64) as usize;
        Self {
            permits: Arc::new(Semaphore::new(max_requests)),
            max_requests,
            room: Arc::new(Semaphore::new(max_kib)),
            max_kib,
        }
    }

    /// Requests under way.
    pub(crate) fn running(&self) -> usize {
        self.max_requests - self.permits.available_permits()
    }

    /// Most of them.
    pub(crate) fn max_requests(&self) -> usize {
        self.max_requests
    }

    /// A permit to run one request, held for as long as it runs.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` with a time to wait.
    pub(crate) fn admit(&self) -> Result<OwnedSemaphorePermit, Status> {
        Arc::clone(&self.permits).try_acquire_owned().map_err(|_| {
            tracing::warn!(max_requests = self.max_requests, "request refused");
            let what = format!(
                "{} requests are under way, no more are taken",
                self.max_requests
            );
            overloaded(what, RETRY_AFTER)
        })
    }

    /// Room for the distributions of one request, held for as long as it runs.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` with a time to wait; or `INVALID_ARGUMENT` if they never fit.
    pub(crate) fn admit_bytes(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Status> {
        let (kib, most) = (bytes.div_ceil(1 << 10), self.max_kib);
        if kib > most as u64 {
            let problem = format!(
                "the distributions of a round take {kib} KiB, and all that may be held is {most} KiB \
                 (coordinator.max_distribution_bytes); ask for fewer draft tokens"
            );
            return Err(BadField::new("draft_len", problem).into());
        }
        let room = Arc::clone(&self.room).try_acquire_many_owned(kib as u32);
        room.map_err(|_| {
            let what = "no room for the distributions of another request";
            tracing::warn!(kib, "{what}");
            overloaded(what, RETRY_AFTER)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_have_so_many_bytes_and_no_more() {
        let admission = Admission::new(4, 10 << 10);
        assert!(admission.admit_bytes(0).is_ok());
        let held = admission.admit_bytes(9 << 10).expect("room");
        let refused = admission.admit_bytes(2 << 10).expect_err("no room");
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        drop(held);
        assert!(admission.admit_bytes(2 << 10).is_ok());
        // What never fits is no matter of waiting.
        let refused = admission.admit_bytes(11 << 10).expect_err("too much");
        assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    }

    #[test]
    fn a_permit_is_given_back_when_dropped() {
        let admission = Admission::new(1, 0);
        let permit = admission.admit().expect("the first");
        assert_eq!((admission.running(), admission.max_requests()), (1, 1));
        let refused = admission.admit().expect_err("the second");
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        drop(permit);
        assert_eq!(admission.running(), 0);
        assert!(admission.admit().is_ok());
    }
}
