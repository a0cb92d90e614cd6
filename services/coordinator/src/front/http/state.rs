//! What the routes share.

use std::sync::Arc;

use crate::front::prepare::Shared;

/// What the routes share. Cheap to clone.
#[derive(Clone)]
pub(super) struct Front {
    pub(super) shared: Arc<Shared>,
    /// When the service began, in seconds since 1970.
    pub(super) began: u64,
}
