//! What clients call: requests in, answers out. Nothing else knows a transport.

mod admission;
mod generation;
mod grpc;
pub(crate) mod http;
mod memory;
mod prepare;

use std::time::Duration;

use tonic::Status;
use wire::failure::Failure;

pub(crate) use admission::Admission;
pub(crate) use grpc::GrpcService;
pub(crate) use memory::Tokenizing;
pub(crate) use prepare::{SharedState, reading_places};

/// Returns what `work` comes to, which would hold up every stream of an async thread.
///
/// # Errors
/// Those of `work`; and if it panics.
async fn off_async_threads<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Failure::Internal.status(error.to_string()))?
}

/// How long a client should wait that is refused because others use what there is.
const RETRY_AFTER: Duration = Duration::from_secs(1);
