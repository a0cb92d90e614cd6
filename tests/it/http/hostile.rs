//! Clients that announce much and send little, send too much, or guess tokens, beside one that is honest.

use std::time::Duration;

use net::receiving::SMALL_REQUEST_BYTES;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tonic::Code;

use super::{Serving, demanding, serving, serving_in};

use crate::client::{With, request};
use crate::cluster::client;

const JSON: &str = "content-type: application/json\r\n";

/// What all requests together may hold here.
const ROOM: usize = 1 << 20;

async fn with_little_room() -> Serving {
    serving(|config| {
        let limits = &mut config.server;
        limits.receive_timeout_ms = 3_000.try_into().expect("not zero");
        limits.max_receiving_bytes = ROOM.try_into().expect("not zero");
    })
    .await
}

/// The head of a request whose body has a length as `described`.
fn head(described: &str) -> String {
    format!("POST /v1/completions HTTP/1.1\r\nhost: localhost\r\n{JSON}{described}\r\n\r\n")
}

async fn ask(serving: &Serving, said: &[&[u8]]) -> TcpStream {
    let connected = TcpStream::connect(serving.http).await;
    let mut stream = connected.expect("a connection");
    for part in said {
        stream.write_all(part).await.expect("written");
    }
    stream
}

/// The first bytes of an answer.
async fn answer(stream: &mut TcpStream) -> String {
    let mut read = vec![0; 1 << 12];
    let length = stream.read(&mut read).await.unwrap_or(0);
    String::from_utf8_lossy(&read[..length]).into_owned()
}

#[tokio::test]
async fn who_announces_a_body_takes_no_room_with_that() {
    let serving = with_little_room().await;
    let mut silent = Vec::new();
    for described in [
        format!("content-length: {ROOM}"),
        "transfer-encoding: chunked".to_owned(),
    ] {
        for _ in 0..32 {
            silent.push(ask(&serving, &[head(&described).as_bytes(), b"1"]).await);
        }
    }
    for _ in 0..3 {
        let reply = serving.completion(json!({ "max_tokens": 1 })).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    for stream in &mut silent {
        let late = answer(stream).await;
        let is_refused = ["HTTP/1.1 408 ", "HTTP/1.1 400 "];
        assert!(
            is_refused.iter().any(|start| late.starts_with(start)),
            "{late}"
        );
    }
}

#[tokio::test]
async fn what_came_over_http_takes_the_room_of_both_ports_until_its_time_is_over() {
    let serving = with_little_room().await;
    let announced = head(&format!("content-length: {ROOM}"));
    let mut slow = ask(&serving, &[announced.as_bytes(), &vec![b' '; ROOM - 20]]).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let small = serving.completion(json!({ "max_tokens": 1 })).await;
    assert_eq!(
        small.status, 200,
        "small ones have room of their own: {small:?}"
    );
    let long = "x".repeat(SMALL_REQUEST_BYTES);
    let refused = serving.completion(json!({ "prompt": long })).await;
    let message = refused.refused(429, None);
    assert!(message.contains("server.max_receiving_bytes"), "{message}");
    assert!(refused.headers.contains("retry-after: 1"), "{refused:?}");
    let mut grpc = client(&serving.coordinator);
    let generated = grpc.generate(request(&long, 1)).await;
    let status = generated.expect_err("no room");
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    let late = answer(&mut slow).await;
    assert!(
        late.starts_with("HTTP/1.1 408 ") && late.contains("within 3000 ms"),
        "{late}"
    );
    let reply = serving.completion(json!({ "max_tokens": 1 })).await;
    assert_eq!(reply.status, 200, "it was given back: {reply:?}");
    grpc.generate(request("x", 1).method("coupled"))
        .await
        .expect("let in");
}

#[tokio::test]
async fn who_sends_far_too_much_reads_what_the_limit_is() {
    let serving = serving(|_| {}).await;
    let length = 16 << 20;
    let announced = head(&format!("content-length: {length}"));
    // The client writes the whole body before it reads.
    let mut stream = ask(&serving, &[announced.as_bytes(), &vec![b' '; length]]).await;
    let refused = answer(&mut stream).await;
    assert!(
        refused.starts_with("HTTP/1.1 413 ") && refused.contains("4194304 bytes"),
        "{refused}"
    );
    // The connection goes on.
    stream
        .write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .expect("written");
    let next = answer(&mut stream).await;
    assert!(next.starts_with("HTTP/1.1 200 "), "{next}");
}

#[tokio::test]
async fn guessing_tokens_takes_time_and_showing_the_right_one_does_not() {
    const TOKEN: &str = "0123456789abcdef0123456789abcdef";
    let (_file, process) = demanding(TOKEN);
    let serving = serving_in(process, |_| {}).await;
    let list = async |token: &str| {
        let request = format!("GET /v1/models HTTP/1.0\r\nauthorization: Bearer {token}\r\n\r\n");
        serving.exchange(request.as_bytes()).await.status
    };
    let began = Instant::now();
    for _ in 0..8 {
        assert_eq!(list("a-guess-of-a-token").await, 401);
    }
    let guessing = began.elapsed();
    assert!(guessing > Duration::from_secs(2), "{guessing:?}");
    // While a guess of the same client waits.
    let guess = list("another-guess-of-it");
    let honest = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let began = Instant::now();
        assert_eq!(list(TOKEN).await, 200);
        began.elapsed()
    };
    let waited = async {
        let began = Instant::now();
        assert_eq!(guess.await, 401);
        began.elapsed()
    };
    let (guess, honest) = tokio::join!(waited, honest);
    assert!(
        honest < guess && guess >= Duration::from_secs(1),
        "{honest:?} {guess:?}"
    );
}
