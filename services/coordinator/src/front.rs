//! What clients call: requests in, answers out. Nothing else knows a transport.

mod admission;
mod generation;
mod grpc;
pub(crate) mod http;
mod memory;
mod prepare;

use std::time::Duration;

pub(crate) use admission::Admission;
pub(crate) use grpc::GrpcService;
pub(crate) use memory::Tokenizing;
pub(crate) use prepare::{SharedState, reading_places};

/// How long a client should wait that is refused because others use what there is.
const RETRY_AFTER: Duration = Duration::from_secs(1);
