//! The wrong port, seen from both sides.

use axum::http::{Request, StatusCode};
use net::fault::{connection_fault, speaks_http};
use net::http::{self, HttpRoutes};
use net::tls::Tls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::body::Body;
use tonic::{Code, Status};

use super::*;

/// Returns a gRPC port.
async fn serving() -> (std::net::SocketAddr, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = async move {
        let (process, config) = (Process::default(), ServerConfig::default());
        let health = Health::new("outrider.v1.Verifier", &process);
        let never = std::future::pending();
        serve(
            Described::default(),
            listener,
            &config,
            &process,
            &health,
            never,
            || true,
        )
        .await
        .unwrap();
    };
    (address, AbortOnDropHandle::new(tokio::spawn(serving)))
}

fn channel(address: std::net::SocketAddr) -> PeerChannel {
    connect(
        &format!("http://{address}"),
        &ChannelConfig::default(),
        &Credentials::default(),
    )
    .unwrap()
}

/// Returns the status of a health check at a port whose connections are answered with `bytes`.
async fn checked(bytes: &'static [u8]) -> Status {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answering = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(bytes).await.unwrap();
        // It stays open until the client has read why.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let _answering = AbortOnDropHandle::new(answering);
    let mut client = HealthClient::new(channel(address));
    client
        .check(HealthCheckRequest::default())
        .await
        .unwrap_err()
}

#[tokio::test]
async fn a_client_of_http1_at_a_grpc_port_is_told_where_http_is() {
    let (address, _serving) = serving().await;
    for request in [
        "GET /v1/models HTTP/1.1\r\nhost: a\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\n\r\n{}",
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
        assert!(
            head.contains(&format!("content-length: {}", body.len())),
            "{head}"
        );
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains("coordinator.http.listen"), "{message}");
    }
    // What is no request is not answered.
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"SSH-2.0-client\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(answer.is_empty());
}

#[tokio::test]
async fn a_client_of_http2_at_a_grpc_port_is_told_so_too() {
    let (address, _serving) = serving().await;
    let channel = channel(address);
    let request = Request::get("/v1/models").body(Body::empty()).unwrap();
    let answer = tower::ServiceExt::oneshot(channel.clone(), request)
        .await
        .unwrap();
    assert_eq!(answer.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let body = axum::body::to_bytes(axum::body::Body::new(answer.into_body()), 1 << 12);
    assert!(String::from_utf8_lossy(&body.await.unwrap()).contains("coordinator.http.listen"));
    // Calls go through.
    let mut health = HealthClient::new(channel);
    health.check(HealthCheckRequest::default()).await.unwrap();
}

#[tokio::test]
async fn a_grpc_client_at_a_port_of_http_is_told_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = async move {
        let front = HttpRoutes {
            router: axum::Router::new(),
            max_request_bytes: 1 << 10,
            idle_timeout: std::time::Duration::from_secs(90),
        };
        let config = ServerConfig::default();
        let gate = Gate::new(&config);
        let never = std::future::pending();
        http::serve(front, listener, &config, gate, Tls::default(), never).await;
    };
    let _serving = AbortOnDropHandle::new(tokio::spawn(serving));
    let mut client = HealthClient::new(channel(address));
    let status = client
        .check(HealthCheckRequest::default())
        .await
        .unwrap_err();
    assert!(
        speaks_http(&status) && status.code() == Code::Unimplemented,
        "{status:?}"
    );
    assert_eq!(connection_fault(&status), None);
    for part in [
        "HTTP status 404",
        "coordinator.http.listen",
        "coordinator.listen",
        "--coordinator",
    ] {
        assert!(status.message().contains(part), "{part}: {status:?}");
    }
}

#[tokio::test]
async fn a_grpc_client_at_a_port_of_http1_alone_is_told_so() {
    let status = checked(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
    let fault = connection_fault(&status).unwrap();
    assert!(
        fault.contains("answered in HTTP/1") && fault.contains("coordinator.listen"),
        "{fault}"
    );
}
