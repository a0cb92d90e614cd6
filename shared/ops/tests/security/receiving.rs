//! Requests that never end, or are too many bytes at once.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use net::listen::ServerConfig;
use ops::process::Process;
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_prost::ProstCodec;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_types::StatusExt;

use super::served::{Served, client};

/// Longer than any answer takes that comes at all.
const SOON: Duration = Duration::from_secs(60);

/// A quarter of it is what a request here takes.
const MOST: usize = 1 << 20;

fn config(receive_timeout_ms: u64) -> ServerConfig {
    ServerConfig {
        receive_timeout_ms: NonZeroU64::new(receive_timeout_ms).unwrap(),
        max_receiving_bytes_per_connection: NonZeroUsize::new(MOST).unwrap(),
        max_receiving_bytes: NonZeroUsize::new(MOST).unwrap(),
        ..ServerConfig::default()
    }
}

fn connect(served: &Served) -> Channel {
    let url = format!("http://{}", served.address);
    Channel::from_shared(url).unwrap().connect_lazy()
}

/// Sends a whole message on a request that does not end, and returns the status that comes of it.
async fn unended(channel: Channel, bytes: usize) -> Status {
    let mut client = Grpc::new(channel);
    client.ready().await.unwrap();
    let message = HealthCheckRequest {
        service: "x".repeat(bytes),
    };
    let messages = tokio_stream::once(message).chain(tokio_stream::pending());
    let path = PathAndQuery::from_static("/grpc.health.v1.Health/Check");
    let codec = ProstCodec::<HealthCheckRequest, HealthCheckResponse>::default();
    let answered = client.client_streaming(Request::new(messages), path, codec);
    let answered = timeout(SOON, answered).await.expect("an answer");
    answered.expect_err("refused")
}

#[tokio::test]
async fn requests_that_never_end_are_refused_in_time_and_hold_no_more_than_they_may() {
    let served = Served::start_with(Process::default(), config(5_000)).await;
    let channel = connect(&served);
    let asking: Vec<_> = (0..40)
        .map(|_| tokio::spawn(unended(channel.clone(), MOST / 4)))
        .collect();
    let (mut late, mut refused) = (0, 0);
    for requested in asking {
        let status = requested.await.unwrap();
        let said = status.message();
        match status.code() {
            Code::DeadlineExceeded => {
                assert!(said.contains("within 5000 ms"), "{said}");
                late += 1;
            }
            Code::ResourceExhausted => {
                assert!(said.contains("server.max_receiving_bytes"), "{said}");
                assert!(status.get_details_retry_info().is_some());
                refused += 1;
            }
            _ => panic!("{status:?}"),
        }
    }
    // Ten times as much as fits came; who is refused makes room, so there is always one that waits.
    assert!(late > 0 && refused > 0, "{late} late, {refused} refused");
    // All of it was given back: a request that ends has room, and so has the next.
    for _ in 0..3 {
        let mut client = client(&served.url("http"), &Process::default());
        let service = "x".repeat(MOST / 2);
        let answered = client.check(HealthCheckRequest { service }).await;
        assert_eq!(answered.unwrap_err().code(), Code::NotFound);
    }
}

#[tokio::test]
async fn connections_share_what_the_server_may_hold() {
    let served = Served::start_with(Process::default(), config(2_000)).await;
    let of_both =
        [connect(&served), connect(&served)].map(|channel| unended(channel, MOST * 3 / 5));
    let [first, second] = of_both;
    let (first, second) = tokio::join!(first, second);
    let mut codes = [first.code(), second.code()];
    codes.sort_by_key(|&code| code as i32);
    // One of them was there first; or each had a part, and the other's refusal made room.
    assert_eq!(codes, [Code::DeadlineExceeded, Code::ResourceExhausted]);
}

#[tokio::test]
async fn a_message_that_is_too_long_is_refused_before_it_has_come() {
    let config = ServerConfig {
        receive_timeout_ms: NonZeroU64::new(300_000).unwrap(),
        ..ServerConfig::default()
    };
    let served = Served::start_with(Process::default(), config).await;
    let status = unended(connect(&served), 5 << 20).await;
    assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
}

#[tokio::test]
async fn a_call_that_takes_a_stream_of_messages_is_not_cut() {
    let served = Served::start_with(Process::default(), config(200)).await;
    let mut client = ServerReflectionClient::new(connect(&served));
    let (asking, messages) = tokio::sync::mpsc::channel(1);
    let messages = tokio_stream::wrappers::ReceiverStream::new(messages);
    let list = || ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    asking.send(list()).await.unwrap();
    let mut answers = client
        .server_reflection_info(messages)
        .await
        .unwrap()
        .into_inner();
    assert!(answers.message().await.unwrap().is_some());
    tokio::time::sleep(Duration::from_millis(600)).await;
    asking.send(list()).await.unwrap();
    assert!(answers.message().await.unwrap().is_some());
}
