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
async fn health_is_described_by_reflection() {
    let admin = open(&Process::default()).await;
    let url = format!("http://{}", admin.address);
    let channel = connect(&url, &ChannelConfig::default(), &Credentials::default()).unwrap();
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let answers = ServerReflectionClient::new(channel)
        .server_reflection_info(tokio_stream::iter([request]))
        .await;
    let answer = answers.unwrap().into_inner().message().await.unwrap();
    let Some(MessageResponse::ListServicesResponse(list)) = answer.unwrap().message_response else {
        panic!("no list");
    };
    let names = list.service.into_iter().map(|service| service.name);
    assert!(
        names
            .into_iter()
            .any(|name| name == "grpc.health.v1.Health")
    );
}

#[tokio::test]
async fn a_second_process_on_a_machine_has_an_admin_port_too() {
    let first = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = first.local_addr().unwrap();
    let config = AdminConfig {
        listen: OptionalListen::At(taken.into()),
        ..AdminConfig::default()
    };
    let admin = start(&config, &Process::default(), false).await.unwrap();
    assert!(admin.unwrap().address.port() > taken.port());
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

#[tokio::test]
async fn health_follows_the_services_of_the_process() {
    let process = Process::default();
    let admin = open(&process).await;
    // Status and body of what is asked over HTTP.
    let reported = async |path| {
        let (status, _, line) = http1(&admin, "GET", path).await;
        (status, line)
    };
    let line = |status: u16, line: &str| (status, format!("{line}\n"));
    let starting = line(503, "not ready: starting, no service is up yet");
    assert_eq!(reported("/readyz").await, starting);
    assert_eq!(
        reported("/livez").await.0,
        200,
        "loading is no reason to start anew"
    );
    assert_eq!(grpc(&admin, "").await, Ok(ServingStatus::NotServing));
    assert_eq!(grpc(&admin, SERVICE).await, Err(Code::NotFound));

    let health = Health::new(SERVICE, &process);
    let starting = line(503, "not ready: outrider.v1.Verifier is starting");
    assert_eq!(reported("/readyz").await, starting);
    assert_eq!(grpc(&admin, SERVICE).await, Ok(ServingStatus::NotServing));

    health.ready();
    assert_eq!(reported("/readyz").await, line(200, "ready"));
    for service in ["", SERVICE] {
        assert_eq!(grpc(&admin, service).await, Ok(ServingStatus::Serving));
    }
    let ready = "outrider_ready{service=\"outrider.v1.Verifier\"} 1.0\n";
    assert!(reported("/metrics").await.1.contains(ready));

    health.drain();
    let draining = line(503, "not ready: outrider.v1.Verifier is draining");
    assert_eq!(reported("/readyz").await, draining);
    let unready = "outrider_ready{service=\"outrider.v1.Verifier\"} 0.0\n";
    assert!(reported("/metrics").await.1.contains(unready));
    assert_eq!(
        reported("/livez").await.0,
        200,
        "draining is no reason to be killed"
    );
    assert_eq!(grpc(&admin, "").await, Ok(ServingStatus::NotServing));

    health.died();
    let dead = line(503, "not alive: outrider.v1.Verifier is dead");
    assert_eq!(reported("/livez").await, dead);
}

#[tokio::test]
async fn a_watch_is_told_of_changes() {
    let process = Process::default();
    let admin = open(&process).await;
    let url = format!("http://{}", admin.address);
    let channel = connect(&url, &ChannelConfig::default(), &Credentials::default()).unwrap();
    let service = SERVICE.to_owned();
    let mut client = HealthClient::new(channel);
    let watch = client.watch(HealthCheckRequest { service }).await;
    let mut watch = watch.unwrap().into_inner();
    let mut next = async || watch.message().await.unwrap().unwrap().status();
    assert_eq!(next().await, ServingStatus::ServiceUnknown);
    let health = Health::new(SERVICE, &process);
    assert_eq!(next().await, ServingStatus::NotServing);
    health.ready();
    assert_eq!(next().await, ServingStatus::Serving);
    health.drain();
    assert_eq!(next().await, ServingStatus::NotServing);
}

#[tokio::test]
async fn others_can_ask_it() {
    let process = Process::default();
    let health = Health::new(SERVICE, &process);
    let admin = open(&process).await;
    let url = format!("http://{}", admin.address);
    let requested = readiness(&url).await.unwrap();
    let line = "not ready: outrider.v1.Verifier is starting";
    assert_eq!((requested.is_ready, requested.line.as_str()), (false, line));
    health.ready();
    let requested = readiness(&url).await.unwrap();
    assert_eq!(
        (requested.is_ready, requested.line.as_str()),
        (true, "ready")
    );
    drop(admin);
    let gone = readiness(&url).await.unwrap_err().to_string();
    assert!(
        gone.contains(&url) && gone.contains("does not answer"),
        "{gone}"
    );
    assert_eq!(gone.matches("refused").count(), 1, "{gone}");
    let encrypted = url.replace("http:", "https:");
    let encrypted = readiness(&encrypted).await.unwrap_err().to_string();
    assert!(encrypted.contains("speak no TLS"), "{encrypted}");
    let wrong = readiness("localhost").await.unwrap_err().to_string();
    assert!(wrong.contains("missing port"), "{wrong}");
}

#[tokio::test]
async fn a_closed_port_takes_its_connections_with_it() {
    let admin = open(&Process::default()).await;
    let address = admin.address;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut some = [0; 12];
    stream.read_exact(&mut some).await.unwrap();
    assert_eq!(&some, b"HTTP/1.1 200");
    drop(admin);
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest));
    assert!(ended.await.is_ok(), "the connection must end");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn it_is_not_opened_to_strangers_by_accident() {
    let config = |listen: &str, insecure| AdminConfig {
        listen: listen.to_owned().try_into().unwrap(),
        insecure,
        ..AdminConfig::default()
    };
    let process = Process::default();
    let strangers = start(&config("0.0.0.0:0", false), &process, true).await;
    let refused = strangers.unwrap_err().to_string();
    assert!(refused.contains("admin.insecure"), "{refused}");
    let exposed = start(&config("0.0.0.0:0", true), &process, true).await;
    assert!(exposed.unwrap().is_some());
    for off in ["off", ""] {
        let closed = start(&config(off, false), &process, true).await;
        assert!(closed.unwrap().is_none());
    }
    let admin = start(&config("127.0.0.1:0", false), &process, true).await;
    let admin = admin.unwrap().unwrap();
    let taken = config(&admin.address.to_string(), false);
    let refused = start(&taken, &process, true).await.unwrap_err().to_string();
    assert!(
        refused.contains("admin.listen") && refused.contains("a port each"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_process_that_is_ready_tells_what_is_wrong_all_the_same() {
    let process = Process::default();
    let health = Health::new(SERVICE, &process);
    let admin = open(&process).await;
    let url = format!("http://{}", admin.address);
    process.warnings.add(|| None);
    let wrong = Arc::new(AtomicBool::new(true));
    let is_wrong = Arc::clone(&wrong);
    let tell = move || {
        is_wrong
            .load(Relaxed)
            .then(|| "a drafter does not fit".to_owned())
    };
    process.warnings.add(tell);
    let reported = async || {
        let readiness = readiness(&url).await.unwrap();
        (readiness.is_ready, readiness.line)
    };
    // It is not ready for another reason, which is what matters.
    let (is_ready, line) = reported().await;
    assert!(!is_ready && !line.contains("fit"), "{line}");
    health.ready();
    let line = "ready, but a drafter does not fit".to_owned();
    assert_eq!(reported().await, (true, line));
    wrong.store(false, Relaxed);
    assert_eq!(reported().await, (true, "ready".to_owned()));
}

/// Returns whether the other side has closed it.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest));
    read.await.is_ok()
}

#[tokio::test]
async fn however_many_connections_are_held_a_probe_is_answered() {
    let admin = open(&Process::default()).await;
    let mut held = Vec::new();
    for _ in 0..3 * MAX_CONNECTIONS {
        let mut stream = TcpStream::connect(admin.address).await.unwrap();
        let request = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut some = [0; 12];
        stream.read_exact(&mut some).await.unwrap();
        held.push(stream);
    }
    assert_eq!(http1(&admin, "GET", "/livez").await.0, 200);
    let (old, new) = held.split_at_mut(2 * MAX_CONNECTIONS);
    for stream in old {
        assert!(is_closed(stream).await, "the oldest make room");
    }
    let last = new.last_mut().unwrap();
    let request = b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    last.write_all(request).await.unwrap();
    assert!(is_closed(last).await, "answered, and closed as was asked");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_asks_nothing_in_time_is_closed() {
    let admin = open(&Process::default()).await;
    // Nothing, a part of HTTP/2's preface, and a part of a head.
    for begun in ["", "PRI * HTTP/2", "GET /livez HTTP/1.1\r\nhost: loc"] {
        let mut stream = TcpStream::connect(admin.address).await.unwrap();
        stream.write_all(begun.as_bytes()).await.unwrap();
        let began = tokio::time::Instant::now();
        let mut rest = Vec::new();
        let read = tokio::time::timeout(OPENING_TIMEOUT * 2, stream.read_to_end(&mut rest));
        assert!(read.await.is_ok(), "{begun:?}");
        assert!(began.elapsed() >= OPENING_TIMEOUT, "{begun:?}");
    }
}

#[tokio::test]
async fn a_page_of_a_browser_does_not_reach_a_port_of_this_machine_alone() {
    let local = open(&Process::default()).await;
    let everywhere = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let config = AdminConfig {
        trusted_hosts: vec!["ops.example".to_owned()],
        ..AdminConfig::default()
    };
    let everywhere = serve(everywhere, &Process::default(), &config).unwrap();
    let behind_proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let behind_proxy = serve(behind_proxy, &Process::default(), &config).unwrap();
    let port = everywhere.address.port();
    let everywhere_here = SocketAddr::from(([127, 0, 0, 1], port));
    let status = async |address: SocketAddr, headers: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET /metrics HTTP/1.1\r\n{headers}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    for (headers, expected) in [
        ("host: localhost:9464", 200),
        ("host: 127.0.0.1", 200),
        ("host: [::1]:9464", 200),
        ("host: rebound.example:9464", 403),
        ("host: localhost\r\norigin: http://page.example", 403),
        ("host: localhost\r\norigin: http://localhost:3000", 200),
    ] {
        assert_eq!(status(local.address, headers).await, expected, "{headers}");
        assert_eq!(status(everywhere_here, headers).await, 200, "{headers}");
    }
    for (host, expected) in [("ops.example:9464", 200), ("other.example", 403)] {
        let header = format!("host: {host}");
        assert_eq!(
            status(behind_proxy.address, &header).await,
            expected,
            "{host}"
        );
    }
}

#[tokio::test]
async fn a_request_of_health_names_a_service_and_is_no_longer_than_that() {
    let admin = open(&Process::default()).await;
    assert_eq!(grpc(&admin, &"s".repeat(1_000)).await, Err(Code::NotFound));
    let long = "s".repeat(MAX_REQUEST_BYTES);
    assert_eq!(grpc(&admin, &long).await, Err(Code::OutOfRange));
}

#[tokio::test]
async fn the_status_page_may_ask_its_own_port_and_shows_what_parts_say() {
    let process = Process::default();
    let part = Arc::new(AtomicBool::new(true));
    let is_there = Arc::clone(&part);
    let told = move || {
        is_there
            .load(Relaxed)
            .then(|| serde_json::json!({ "part": "verifier" }))
    };
    process.status.add(told);
    process
        .warnings
        .add(|| Some("a drafter does not fit".to_owned()));
    let admin = open(&process).await;
    for (path, kind) in [
        ("/status", "text/html"),
        ("/status.js", "text/javascript"),
        ("/status.css", "text/css"),
    ] {
        let (status, head, body) = http1(&admin, "GET", path).await;
        assert_eq!(status, 200, "{path}");
        assert!(head.contains(&format!("content-type: {kind}")), "{head}");
        assert!(head.contains("content-security-policy: default-src 'none'; script-src 'self'"));
        assert!(
            !body.contains("//") || path == "/status.js",
            "{path} names an address"
        );
    }
    let status_json = async || {
        let (status, _, body) = http1(&admin, "GET", "/status.json").await;
        assert_eq!(status, 200);
        serde_json::from_str::<serde_json::Value>(&body).unwrap()
    };
    let told = status_json().await;
    assert_eq!(told["parts"][0]["part"], "verifier");
    assert_eq!(told["warnings"][0], "a drafter does not fit");
    assert_eq!(told["ready"], false);
    // A part that is gone says nothing.
    part.store(false, Relaxed);
    assert_eq!(status_json().await["parts"], serde_json::json!([]));
}
