//! What the routes share.

use std::sync::Arc;

use axum::body::Bytes;
use tokio::sync::Semaphore;
use tonic::Status;
use wire::status::BadField;

use super::error::ApiError;

use crate::front::prepare::Shared;

/// What the routes share. Cheap to clone.
#[derive(Clone)]
pub(super) struct Front {
    pub(super) shared: Arc<Shared>,
    /// Places for large bodies that are read as JSON.
    pub(super) reading: Arc<Semaphore>,
    /// When the service began, in seconds since 1970.
    pub(super) began: u64,
}

/// Bodies of more bytes are read off the async threads, a few at a time.
const LARGE_BODY: usize = 32 << 10;

impl Front {
    /// Reads a body by `read`.
    ///
    /// # Errors
    /// As `read`.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        body: Bytes,
        read: impl FnOnce(&[u8]) -> Result<T, BadField> + Send + 'static,
    ) -> Result<T, ApiError> {
        if body.len() <= LARGE_BODY {
            return Ok(read(&body)?);
        }
        let place = Arc::clone(&self.reading).acquire_owned().await;
        // The place goes along: the work goes on if the client leaves.
        let reading = move || {
            let read = read(&body);
            drop(place);
            read
        };
        let read = tokio::task::spawn_blocking(reading).await;
        let read = read.map_err(|error| Status::internal(error.to_string()))?;
        Ok(read?)
    }
}
