//! What the routes share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::front::prepare::Shared;

/// What the routes share. Cheap to clone.
#[derive(Clone)]
pub(super) struct Front {
    pub(super) shared: Arc<Shared>,
    /// Room for the bodies of requests until they are handled, in KiB.
    pub(super) receiving: Arc<Semaphore>,
    /// How long the body of a request may take to come.
    pub(super) receive_timeout: Duration,
    /// When the service began, in seconds since 1970.
    pub(super) began: u64,
}
