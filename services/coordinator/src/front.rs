//! What clients call: requests in, answers out. Nothing else knows a transport.

mod admission;
mod generation;
mod grpc;
pub(crate) mod http;
mod prepare;
mod tokenizing;

/// The largest request a client may send, in bytes; it is read before anyone is admitted.
pub const MAX_REQUEST_BYTES: usize = 4 << 20;

pub(crate) use admission::Admission;
pub(crate) use grpc::Service;
pub(crate) use prepare::{Shared, reading_places};
pub(crate) use tokenizing::Tokenizing;
pub use tokenizing::{MAX_LONG_BYTES, MAX_SHORT_BYTES, MAX_SHORT_TEXT};
