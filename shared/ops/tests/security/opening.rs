//! Connections that are slow, many, or speak something else.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use net::listen::ServerConfig;
use net::tls::{TlsConfig, TlsMode};
use ops::process::Process;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;

use super::authority::Authority;
use super::log::Log;
use super::served::{Served, check, client, reported, with_tls};

/// How long one that is honest may take beside those that are not.
const SOON: Duration = Duration::from_secs(5);

/// Service and client with TLS.
async fn served() -> (Served, Process, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("ours");
    let (cert_file, key_file) = authority.issue(folder.path(), "service", &["localhost"]);
    let service = TlsConfig {
        mode: TlsMode::Server,
        cert_file,
        key_file,
        ..TlsConfig::default()
    };
    let client = with_tls(&TlsConfig {
        ca_file: authority.write(folder.path(), "ca.pem"),
        ..TlsConfig::default()
    });
    (Served::start(with_tls(&service)).await, client, folder)
}

/// Connects, says the beginning of something, and no more.
async fn stall(served: &Served, beginning: &[u8]) -> TcpStream {
    let mut connection = TcpStream::connect(served.address).await.unwrap();
    connection.write_all(beginning).await.unwrap();
    connection
}

/// Waits for the other side to close.
async fn closed(connection: &mut TcpStream) {
    let mut rest = Vec::new();
    // A reset is an end too.
    let _ = connection.read_to_end(&mut rest).await;
}

/// Awaits what must come soon.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(SOON, what).await.expect("in time")
}

#[tokio::test]
async fn whoever_stalls_holds_up_nobody_and_is_dropped_in_time() {
    let (with, client, _folder) = served().await;
    let without = Served::start(Process::default()).await;
    // The beginning of a TLS record, of HTTP/2's preface, and nothing.
    let mut stalled = Vec::new();
    let began = Instant::now();
    for _ in 0..20 {
        stalled.push(stall(&with, &[0x16, 3, 1, 2]).await);
        stalled.push(stall(&with, &[]).await);
        stalled.push(stall(&without, b"PRI * HTTP/2.0\r\n").await);
        stalled.push(stall(&without, &[]).await);
    }
    soon(with.check("https", &client)).await.unwrap();
    soon(without.check("http", &client)).await.unwrap();
    for connection in &mut stalled {
        let closed = timeout(Duration::from_secs(15), closed(connection)).await;
        closed.expect("closed in time");
    }
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(9), "dropped after {took:?}");
}

#[tokio::test]
async fn of_very_many_that_stall_the_oldest_make_room() {
    let (served, client, _folder) = served().await;
    let mut stalled = Vec::new();
    for _ in 0..300 {
        stalled.push(stall(&served, &[0x16]).await);
    }
    soon(served.check("https", &client)).await.unwrap();
    let oldest = timeout(Duration::from_secs(2), closed(&mut stalled[0])).await;
    oldest.expect("the oldest is dropped at once");
    let youngest = timeout(Duration::from_millis(200), closed(&mut stalled[299])).await;
    assert!(youngest.is_err(), "the youngest may still begin");
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed_until_one_ends() {
    let log = Log::start();
    let config = ServerConfig {
        max_connections: const { NonZeroUsize::new(2).unwrap() },
        ..ServerConfig::default()
    };
    let process = Process::default();
    let served = Served::start_with(process.clone(), config).await;
    let url = served.url("http");
    let (mut first, mut second) = (client(&url, &process), client(&url, &process));
    // Idle connections, such as coordinators keep.
    check(&mut first).await.unwrap();
    check(&mut second).await.unwrap();
    let mut third = stall(&served, &[]).await;
    let at_once = timeout(Duration::from_secs(2), closed(&mut third)).await;
    at_once.expect("closed at once");
    let parts = ["WARN", "server.max_connections are open", "most=2"];
    log.wait_for(&parts).await;
    served.check("http", &process).await.unwrap_err();
    check(&mut first).await.unwrap();

    drop(second);
    let until = Instant::now() + SOON;
    while served.check("http", &process).await.is_err() {
        assert!(Instant::now() < until, "no place was given back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn where_all_places_are_taken_the_oldest_that_has_not_begun_makes_room() {
    let config = ServerConfig {
        max_connections: const { NonZeroUsize::new(2).unwrap() },
        ..ServerConfig::default()
    };
    let process = Process::default();
    let served = Served::start_with(process.clone(), config).await;
    let mut oldest = stall(&served, b"PRI").await;
    let _other = stall(&served, &[]).await;
    soon(served.check("http", &process)).await.unwrap();
    soon(closed(&mut oldest)).await;
}

#[tokio::test]
async fn streams_beyond_the_limit_wait_until_one_ends() {
    let config = ServerConfig {
        max_streams_per_connection: const { NonZeroU32::new(2).unwrap() },
        ..ServerConfig::default()
    };
    let process = Process::default();
    let served = Served::start_with(process.clone(), config).await;
    let mut client = client(&served.url("http"), &process);
    // The settings of the server have come once it has answered.
    check(&mut client).await.unwrap();
    let mut watch = async || client.watch(HealthCheckRequest::default()).await;
    let (first, _second) = (watch().await.unwrap(), watch().await.unwrap());
    let third = timeout(Duration::from_millis(200), watch()).await;
    assert!(third.is_err(), "two at a time");
    drop(first);
    soon(watch()).await.unwrap();
}

#[tokio::test]
async fn what_is_not_http_2_is_named() {
    for said in [
        "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
        "SSH-2.0-OpenSSH_9.9 and then some\r\n",
    ] {
        let log = Log::start();
        let served = Served::start(Process::default()).await;
        let mut connection = stall(&served, said.as_bytes()).await;
        soon(closed(&mut connection)).await;
        let parts = ["WARN", "connection refused", "does not speak HTTP/2"];
        log.wait_for(&parts).await;
    }
    // Something that only looks whether the port is open is nothing to warn of.
    let log = Log::start();
    let served = Served::start(Process::default()).await;
    drop(TcpStream::connect(served.address).await.unwrap());
    served.check("http", &Process::default()).await.unwrap();
    assert!(!log.text().contains("WARN"), "{}", log.text());
}

#[tokio::test]
async fn a_client_of_http1_within_tls_is_told_where_http_is() {
    let (served, _client, folder) = served().await;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(folder.path().join("ca.pem")).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let connection = TcpStream::connect(served.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, connection).await.unwrap();
    let request = b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut said = String::new();
    // However it is closed.
    let _ = soon(stream.read_to_string(&mut said)).await;
    assert!(said.starts_with("HTTP/1.1 400 "), "{said}");
    assert!(said.contains("coordinator.http.listen"), "{said}");
}

#[tokio::test]
async fn metadata_beyond_the_limit_is_refused_and_the_connection_goes_on() {
    let process = Process::default();
    let served = Served::start(process.clone()).await;
    let mut client = client(&served.url("http"), &process);
    let with = |bytes: usize| {
        let mut request = Request::new(HealthCheckRequest::default());
        let value = "x".repeat(bytes).parse().unwrap();
        request.metadata_mut().insert("x-much", value);
        request
    };
    client.check(with(12 << 10)).await.unwrap();
    let status = client.check(with(20 << 10)).await.unwrap_err();
    assert_ne!(status.code(), Code::Ok);
    assert!(reported(&status).contains("431"), "{}", reported(&status));
    check(&mut client).await.unwrap();
}
