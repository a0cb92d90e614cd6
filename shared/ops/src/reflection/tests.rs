use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

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

/// Returns how many files are served for each of the requests.
async fn files(described: Described, requests: Vec<MessageRequest>) -> Vec<usize> {
    let mut client = ServerReflectionClient::new(described.routes);
    let requests = requests.into_iter().map(|request| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(request),
    });
    let answers = client.server_reflection_info(tokio_stream::iter(requests.collect::<Vec<_>>()));
    let mut answers = answers.await.unwrap().into_inner();
    let mut files = Vec::new();
    while let Some(answer) = answers.message().await.unwrap() {
        files.push(match answer.message_response {
            Some(MessageResponse::FileDescriptorResponse(found)) => {
                found.file_descriptor_proto.len()
            }
            _ => 0,
        });
    }
    files
}

#[tokio::test]
async fn details_of_errors_are_described_with_what_they_import() {
    let health = (tonic_health::pb::FILE_DESCRIPTOR_SET, &[][..]);
    let described = add_to(Routes::default(), health, "grpc.health.v1.Health").unwrap();
    let symbols = [
        "google.rpc.BadRequest",
        "google.rpc.RetryInfo",
        "google.rpc.Status",
    ];
    let names = [
        "google/protobuf/duration.proto",
        "google/protobuf/any.proto",
    ];
    let symbols = symbols.map(|name| MessageRequest::FileContainingSymbol(name.to_owned()));
    let names = names.map(|name| MessageRequest::FileByFilename(name.to_owned()));
    let requests = symbols.into_iter().chain(names).collect();
    assert_eq!(files(described, requests).await, [1; 5]);
}
