//! gRPC server reflection, for grpcurl and its like.

use tonic::service::Routes;
use tonic_reflection::server::{Builder, Error};

use crate::receiving::Described;

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
            .with_service_name(service)
            .with_service_name("grpc.health.v1.Health")
    };
    let (of_now, of_old) = (builder().build_v1()?, builder().build_v1alpha()?);
    Ok(Described {
        routes: routes
            .add_service(of_now.max_decoding_message_size(MAX_REQUEST_BYTES))
            .add_service(of_old.max_decoding_message_size(MAX_REQUEST_BYTES)),
        client_streaming: client_streaming.iter().copied().chain(METHODS).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_descriptor_sets_are_served() {
        let health = tonic_health::pb::FILE_DESCRIPTOR_SET;
        let add = |descriptors| {
            add_to(
                Routes::default(),
                (descriptors, &[]),
                "grpc.health.v1.Health",
            )
        };
        assert!(add(health).is_ok());
        let error = add(&health[..health.len() - 1]).unwrap_err();
        assert!(error.to_string().contains("descriptor set"), "{error}");
    }

    #[test]
    fn its_methods_are_called_as_they_are_described() {
        use tonic::server::NamedService;
        use tonic_reflection::pb::{v1, v1alpha};
        use v1::server_reflection_server::ServerReflectionServer as OfNow;
        use v1alpha::server_reflection_server::ServerReflectionServer as OfOld;
        let names = [OfNow::<()>::NAME, OfOld::<()>::NAME];
        assert_eq!(
            names.map(|name| format!("/{name}/ServerReflectionInfo")),
            METHODS
        );
    }
}
