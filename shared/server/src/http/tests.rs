use std::num::{NonZeroU32, NonZeroUsize};

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

/// The next bytes from the server; none if it has closed the connection.
async fn answer(stream: &mut TcpStream) -> String {
    let mut read = vec![0; 1 << 12];
    let length = stream.read(&mut read).await.unwrap_or(0);
    String::from_utf8_lossy(&read[..length]).into_owned()
}

/// Reads until the server closes the connection; returns the text, and the time since `since`.
async fn closed(mut stream: TcpStream, since: Instant) -> (String, Duration) {
    let mut read = String::new();
    // A reset ends the reading too.
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
    let limit = Instant::now() + Duration::from_secs(10);
    loop {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = stream.write_all(REQUEST).await;
        if answer(&mut stream).await.contains("here") {
            break;
        }
        assert!(Instant::now() < limit, "a place is not given back");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The value that the server's first frame sets `setting` to (RFC 9113, section 6.5).
async fn http2_setting(address: SocketAddr, setting: u16) -> Option<u32> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The connection preface, and an empty SETTINGS frame.
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(preface).await.unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[3], 4, "a SETTINGS frame comes first");
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut settings = vec![0; length as usize];
    stream.read_exact(&mut settings).await.unwrap();
    let mut settings = settings.chunks_exact(6).map(|entry| {
        let name = u16::from_be_bytes([entry[0], entry[1]]);
        (
            name,
            u32::from_be_bytes([entry[2], entry[3], entry[4], entry[5]]),
        )
    });
    settings.find_map(|(name, value)| (name == setting).then_some(value))
}

#[tokio::test]
async fn streams_and_headers_of_a_connection_of_http2_are_bounded() {
    let config = ServerConfig {
        max_streams_per_connection: NonZeroU32::new(7).unwrap(),
        ..ServerConfig::default()
    };
    let (address, _serving) = serving(config, health()).await;
    let (max_streams, max_header_bytes) = (3, 6);
    assert_eq!(http2_setting(address, max_streams).await, Some(7));
    let headers = http2_setting(address, max_header_bytes).await;
    assert_eq!(headers, Some(MAX_HEADER_BYTES));
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
