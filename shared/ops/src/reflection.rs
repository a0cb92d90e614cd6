//! gRPC server reflection, for grpcurl and its like.

use net::receiving::Described;
use tonic::service::Routes;
use tonic_reflection::server::{Builder, Error};

/// Longest request of a client to reflection, in bytes: the name of a symbol or of a file.
pub const MAX_REQUEST_BYTES: usize = 4 << 10;

/// Descriptors that reflection cannot serve.
#[derive(Debug, thiserror::Error)]
#[error("the file descriptor set cannot be served by reflection: {0}")]
pub struct ReflectionError(#[from] Error);

/// Its own methods, which take streams of messages.
const METHODS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// Adds reflection for `service` and health: as v1 and, for older grpcurl, as v1alpha. The service is described in
/// an encoded `FileDescriptorSet`, beside which stand the paths of the methods that take streams of messages.
///
/// # Errors
/// [`ReflectionError`] if the bytes are no descriptor set.
pub fn add_to(
    routes: Routes,
    (descriptors, client_streaming): (&[u8], &[&'static str]),
    service: &str,
) -> Result<Described, ReflectionError> {
    let builder = || {
        Builder::configure()
            .register_encoded_file_descriptor_set(descriptors)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            // What stands in the details of errors.
            .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
            .with_service_name(service)
            .with_service_name("grpc.health.v1.Health")
    };
    let (of_now, of_old) = (builder().build_v1()?, builder().build_v1alpha()?);
    Ok(Described {
        routes: routes
            .add_service(of_now.max_decoding_message_size(MAX_REQUEST_BYTES))
            .add_service(of_old.max_decoding_message_size(MAX_REQUEST_BYTES)),
        client_streaming: client_streaming.iter().copied().chain(METHODS).collect(),
        gate: None,
    })
}

#[cfg(test)]
mod tests;
