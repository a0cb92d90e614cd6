//! The admin port, asked over sockets.

mod connections;
mod health;
mod status;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use net::channel::{ChannelConfig, connect};
use net::{Credentials, OPENING_TIMEOUT};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use super::*;
use crate::health::Health;
use crate::metrics::names;

const SERVICE: &str = "outrider.v1.Verifier";

async fn open(process: &Process) -> Admin {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    serve(listener, process, &AdminConfig::default()).unwrap()
}

/// Returns an answer over HTTP/1: its status, its headers in lower case, and its body.
async fn http1(admin: &Admin, method: &str, path: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(admin.address).await.unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\naccept: application/openmetrics-text\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_ascii_lowercase(), body.to_owned())
}

async fn grpc(admin: &Admin, service: &str) -> Result<ServingStatus, Code> {
    let url = format!("http://{}", admin.address);
    let channel = connect(&url, &ChannelConfig::default(), &Credentials::default()).unwrap();
    let service = service.to_owned();
    let mut client = HealthClient::new(channel);
    match client.check(HealthCheckRequest { service }).await {
        Ok(answer) => Ok(answer.into_inner().status()),
        Err(status) => Err(status.code()),
    }
}

#[tokio::test]
async fn metrics_come_as_openmetrics_where_they_are_asked_for_so() {
    let process = Process::default();
    let admin = open(&process).await;
    let (status, head, body) = http1(&admin, "GET", "/metrics").await;
    assert_eq!(status, 200);
    let content_type = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(head.contains(content_type), "{head}");
    assert!(body.contains("\noutrider_build_info{"), "{body}");
    assert!(body.ends_with("# EOF\n"), "{body}");
    assert!(!body.contains("vllm:"), "{body}");
}

#[tokio::test]
async fn metrics_come_as_the_scraper_reads_them() {
    let admin = open(&Process::default()).await;
    let mut stream = TcpStream::connect(admin.address).await.unwrap();
    // As curl asks.
    let request =
        "GET /metrics HTTP/1.1\r\nhost: localhost\r\naccept: */*\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8"),
        "{answer}"
    );
    assert!(!answer.contains(" info\n"), "that format has no such type");
    assert!(
        answer.contains("\n# TYPE outrider_build_info gauge\n"),
        "{answer}"
    );
    assert!(!answer.contains("# EOF"), "{answer}");
}

#[tokio::test]
async fn aliases_come_where_they_are_switched_on() {
    let process = Process::default();
    let running = &names::ENGINE_RUNNING;
    process.metrics.sample(|samples| {
        samples.add(running, &["verifier"], 3.0);
        Some(())
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = AdminConfig {
        vllm_metrics: true,
        ..AdminConfig::default()
    };
    let admin = serve(listener, &process, &config).unwrap();
    let (_, _, body) = http1(&admin, "GET", "/metrics").await;
    assert!(body.contains("vllm:num_requests_running{"), "{body}");
    assert!(body.contains("outrider_engine_running{"), "{body}");
}

#[tokio::test]
async fn only_get_and_head_and_only_what_is_there() {
    let admin = open(&Process::default()).await;
    for path in ["/", "/metrics/", "/debug", "/livez/x"] {
        assert_eq!(http1(&admin, "GET", path).await.0, 404, "{path}");
    }
    for path in ["/metrics", "/livez", "/readyz"] {
        for method in ["POST", "PUT", "DELETE"] {
            assert_eq!(http1(&admin, method, path).await.0, 405, "{method} {path}");
        }
        let (status, _, body) = http1(&admin, "HEAD", path).await;
        let got = http1(&admin, "GET", path).await.0;
        assert_eq!((status, body.as_str()), (got, ""));
    }
}
