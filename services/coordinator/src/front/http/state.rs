//! What the routes share.

use std::sync::Arc;

use axum::body::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;
use wire::status::BadField;

use super::error::ApiError;

use crate::front::prepare::Shared;
use crate::peer::pool::ServedModel;

/// What the routes share. Cheap to clone.
#[derive(Clone)]
pub(super) struct Front {
    pub(super) shared: Arc<Shared>,
    /// When the service began, in seconds since 1970.
    pub(super) began: u64,
    /// Whether the one model that is served answers to any name.
    pub(super) any_model: bool,
}

/// Bodies of more bytes are read off the async threads, a few at a time.
const LARGE_BODY: usize = 32 << 10;

/// Requests with longer bodies hold their place until their text is tokenised, so that few such texts are in memory at a
/// time.
const KEEPS_PLACE: usize = 256 << 10;

impl Front {
    /// Returns the model that a request names: the first one if `name` is empty, and the only one whatever `name` is, if
    /// the configuration allows that.
    ///
    /// # Errors
    /// Names those that are served.
    pub(super) fn model(&self, name: &str) -> Result<&Arc<ServedModel>, Status> {
        let mut models = self.shared.models.iter();
        match (models.next(), models.next()) {
            (Some(only), None) if self.any_model => Ok(only),
            _ => self.shared.model(name),
        }
    }

    /// Parses a body with `read`, off the async threads if it is large. A very large one also returns its place among
    /// [`Shared::reading`], to be held until its text is tokenised.
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
            let read = read(&body)?;
            Ok::<_, BadField>((read, place.ok().filter(|_| body.len() > KEEPS_PLACE)))
        };
        let read = tokio::task::spawn_blocking(reading).await;
        let read = read.map_err(|error| Status::internal(error.to_string()))?;
        Ok(read?)
    }
}
