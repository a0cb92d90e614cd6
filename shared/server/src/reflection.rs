//! gRPC server reflection, for grpcurl and its like.

use tonic::service::Routes;
use tonic_reflection::pb::{v1, v1alpha};
use tonic_reflection::server::{Builder, Error};

use crate::receiving::{Described, client_streaming};

/// Longest request of a client to reflection, in bytes: the name of a symbol or of a file.
pub const MAX_REQUEST_BYTES: usize = 4 << 10;

/// Descriptors that reflection cannot serve.
#[derive(Debug, thiserror::Error)]
#[error("the file descriptor set cannot be served by reflection: {0}")]
pub struct ReflectionError(#[from] Error);

/// Adds reflection for `service`, described in an encoded `FileDescriptorSet`, and health: as v1 and, for older grpcurl, as v1alpha.
///
/// # Errors
/// [`ReflectionError`] if the bytes are no descriptor set.
pub fn add_to(
    routes: Routes,
    file_descriptor_set: &[u8],
    service: &str,
) -> Result<Described, ReflectionError> {
    let descriptors = || {
        Builder::configure()
            .register_encoded_file_descriptor_set(file_descriptor_set)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .with_service_name(service)
            .with_service_name("grpc.health.v1.Health")
    };
    let (of_now, of_old) = (descriptors().build_v1()?, descriptors().build_v1alpha()?);
    let sets = [
        file_descriptor_set,
        v1::FILE_DESCRIPTOR_SET,
        v1alpha::FILE_DESCRIPTOR_SET,
    ];
    Ok(Described {
        routes: routes
            .add_service(of_now.max_decoding_message_size(MAX_REQUEST_BYTES))
            .add_service(of_old.max_decoding_message_size(MAX_REQUEST_BYTES)),
        client_streaming: sets.into_iter().flat_map(client_streaming).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_descriptor_sets_are_served() {
        let health = tonic_health::pb::FILE_DESCRIPTOR_SET;
        assert!(add_to(Routes::default(), health, "grpc.health.v1.Health").is_ok());

        let cut_short = &health[..health.len() - 1];
        let error = add_to(Routes::default(), cut_short, "grpc.health.v1.Health").unwrap_err();
        assert!(error.to_string().contains("descriptor set"), "{error}");
    }
}
