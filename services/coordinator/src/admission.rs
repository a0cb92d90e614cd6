//! Who is let in: a bounded number of requests at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;
use wire::status::overloaded;

/// How long a refused client should wait.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Lets at most so many requests run at a time.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    permits: Arc<Semaphore>,
    max_requests: usize,
}

impl Admission {
    pub(crate) fn new(max_requests: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(max_requests)),
            max_requests,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_is_given_back_when_dropped() {
        let admission = Admission::new(1);
        let permit = admission.admit().expect("the first");
        assert_eq!((admission.running(), admission.max_requests()), (1, 1));
        let refused = admission.admit().expect_err("the second");
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        drop(permit);
        assert_eq!(admission.running(), 0);
        assert!(admission.admit().is_ok());
    }
}
