use std::num::NonZeroUsize;

use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::*;
use crate::process::Process;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// A server that answers `/`, and its address.
async fn serving(config: ServerConfig, health: Health) -> (SocketAddr, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/", get(async || "here\n"));
    let serving = async move {
        serve(router, listener, &config, Tls::default(), &health).await;
    };
    (address, AbortOnDropHandle::new(tokio::spawn(serving)))
}

fn health() -> Health {
    Health::new("outrider.v1.Coordinator", &Process::default())
}

async fn answer(stream: &mut TcpStream) -> String {
    let mut read = vec![0; 1 << 12];
    let length = stream.read(&mut read).await.unwrap();
    String::from_utf8_lossy(&read[..length]).into_owned()
}

/// What comes before the server closes the connection, and when that is.
async fn closed(mut stream: TcpStream, since: Instant) -> (String, Duration) {
    let mut read = String::new();
    // A reset is an end too.
    let _ = stream.read_to_string(&mut read).await;
    (read, since.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_connection_must_send_its_headers_in_time_and_may_not_idle_after_an_answer() {
    let (address, _serving) = serving(ServerConfig::default(), health()).await;
    let within = HEADER_TIMEOUT..HEADER_TIMEOUT + Duration::from_secs(5);
    let mut stalled = TcpStream::connect(address).await.unwrap();
    stalled.write_all(b"GET / HTTP/1.1\r\nhost:").await.unwrap();
    let (read, after) = closed(stalled, Instant::now()).await;
    assert!(within.contains(&after), "{after:?}");
    assert!(!read.contains(" 200 "), "{read}");

    let mut idle = TcpStream::connect(address).await.unwrap();
    for _ in 0..2 {
        idle.write_all(REQUEST).await.unwrap();
        assert!(
            answer(&mut idle).await.starts_with("HTTP/1.1 200 "),
            "it goes on"
        );
    }
    let (_, after) = closed(idle, Instant::now()).await;
    assert!(within.contains(&after), "{after:?}");
}

#[tokio::test]
async fn connections_beyond_the_limit_are_closed_at_once() {
    let config = ServerConfig {
        max_connections: NonZeroUsize::new(2).unwrap(),
        ..ServerConfig::default()
    };
    let (address, _serving) = serving(config, health()).await;
    let mut first = TcpStream::connect(address).await.unwrap();
    let mut second = TcpStream::connect(address).await.unwrap();
    for stream in [&mut first, &mut second] {
        stream.write_all(REQUEST).await.unwrap();
        assert!(answer(stream).await.contains("here"));
    }
    let third = TcpStream::connect(address).await.unwrap();
    assert_eq!(closed(third, Instant::now()).await.0, "");
    drop(first);
    // Its place is free as soon as the server has seen that.
    let again = async || {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = stream.write_all(REQUEST).await;
        closed_or_answered(&mut stream).await
    };
    while !again().await.contains("here") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn closed_or_answered(stream: &mut TcpStream) -> String {
    let mut read = [0; 1 << 10];
    let length = stream.read(&mut read).await.unwrap_or(0);
    String::from_utf8_lossy(&read[..length]).into_owned()
}

#[tokio::test]
async fn headers_that_are_too_large_are_refused() {
    let (address, _serving) = serving(ServerConfig::default(), health()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let large = format!(
        "GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "y".repeat(1 << 20)
    );
    // The server may close before it has read all.
    let _ = stream.write_all(large.as_bytes()).await;
    let (read, _) = closed(stream, Instant::now()).await;
    assert!(
        read.is_empty() || read.starts_with("HTTP/1.1 431 "),
        "{read}"
    );
}
