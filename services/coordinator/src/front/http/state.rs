//! What the routes share.

use std::sync::Arc;

use axum::body::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;
use wire::status::BadField;

use super::error::ApiError;

use crate::front::prepare::Shared;

/// What the routes share. Cheap to clone.
#[derive(Clone)]
pub(super) struct Front {
    pub(super) shared: Arc<Shared>,
    /// When the service began, in seconds since 1970.
    pub(super) began: u64,
}

/// Bodies of more bytes are read off the async threads, a few at a time.
const LARGE_BODY: usize = 32 << 10;

/// Requests of longer bodies keep their place until their text is tokenised, so that few such texts are held twice.
const KEEPS_PLACE: usize = 256 << 10;

impl Front {
    /// Reads a body by `read`. With a long one comes the place among [`Shared::reading`] that it keeps.
    ///
    /// # Errors
    /// As `read`.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        body: Bytes,
        read: impl FnOnce(&[u8]) -> Result<T, BadField> + Send + 'static,
    ) -> Result<(T, Option<OwnedSemaphorePermit>), ApiError> {
        if body.len() <= LARGE_BODY {
            return Ok((read(&body)?, None));
        }
        let place = Arc::clone(&self.shared.reading).acquire_owned().await;
        // The place goes along: the work goes on if the client leaves.
        let reading = move || {
            let place = place.ok().filter(|_| body.len() > KEEPS_PLACE);
            read(&body).map(|read| (read, place))
        };
        let read = tokio::task::spawn_blocking(reading).await;
        let read = read.map_err(|error| Status::internal(error.to_string()))?;
        Ok(read?)
    }
}
