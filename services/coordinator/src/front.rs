//! What clients call: requests in, answers out. Nothing else knows a transport.

mod admission;
mod grpc;
mod prepare;

pub(crate) use admission::Admission;
pub(crate) use grpc::Service;
pub(crate) use prepare::Shared;
