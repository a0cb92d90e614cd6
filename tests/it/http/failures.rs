//! Failures in the middle of an answer, and clients that leave.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::serving_at;
use crate::metrics::Scrape;
use crate::paced::Pace;

/// So that an answer of hundreds of tokens lasts until the test is done with it.
const SLOW: Duration = Duration::from_millis(20);

#[tokio::test]
async fn a_failure_in_mid_stream_is_an_event_before_the_end() {
    let pace = Pace::default();
    pace.slow(SLOW);
    let serving = serving_at(&pace).await;
    let long = json!({ "max_tokens": 300, "ignore_eos": true, "stream": true });
    let spoiling = async {
        tokio::time::sleep(20 * SLOW).await;
        pace.spoil();
    };
    let (reply, ()) = tokio::join!(serving.completion(long), spoiling);
    assert_eq!(reply.status, 200, "the stream had begun");
    let events = reply.events();
    let (last, before) = events.split_last().expect("events");
    assert!(last["error"]["message"].is_string(), "{last}");
    let has_text = |event: &serde_json::Value| event["choices"][0]["text"] != "";
    assert!(before.iter().any(has_text), "{before:?}");
    assert!(reply.body.trim_end().ends_with("data: [DONE]"), "{reply:?}");
    // A whole answer fails as a whole, with a status that says whose fault it is.
    let whole = serving.completion(json!({ "max_tokens": 8 })).await;
    assert!((500..600).contains(&whole.status), "{whole:?}");
    assert_eq!(whole.json()["error"]["type"], "server_error");
}

#[tokio::test]
async fn a_client_that_leaves_frees_what_it_held() {
    let pace = Pace::default();
    pace.slow(SLOW);
    let serving = serving_at(&pace).await;
    let body =
        json!({ "prompt": "x", "max_tokens": 400, "n": 3, "ignore_eos": true, "stream": true });
    let body = body.to_string();
    let request = format!(
        "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(serving.http)
        .await
        .expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut some = [0; 64];
    stream
        .read_exact(&mut some)
        .await
        .expect("the beginning of the answer");
    let running = |scrape: &Scrape| scrape.value("outrider_requests_running", &[]);
    let coordinator = &serving.coordinator;
    coordinator
        .shows("all under way", |scrape| running(scrape) == 3.0)
        .await;
    drop(stream);
    coordinator
        .shows("none under way", |scrape| running(scrape) == 0.0)
        .await;
}
