//! How spans get to a collector, and what happens if they do not; and what a peer makes of a context.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use drafter::{DrafterConfig, Loaded};
use server::telemetry::Protocol;
use server::trace::names;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use wire::v1::DraftRound;
use wire::v1::draft_reply::Reply;

use super::collector::Collector;
use super::watched::{Watched, everything, process, telemetry};
use crate::client::{generate, request};
use crate::cluster::{draft, drafter_in, eventually};
use crate::protocol::{DraftStream, open, with_header};

/// Head and body of an HTTP request.
pub(super) type Posted = (String, Vec<u8>);

/// A collector that takes whatever is posted to it, over HTTP/1.
async fn http_collector() -> (Arc<Mutex<Vec<Posted>>>, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let posted = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&posted);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_http(stream, Arc::clone(&taken)));
        }
    });
    (posted, address)
}

/// Answers what is posted on `stream`, until it closes.
pub(super) async fn serve_http(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    posted: Arc<Mutex<Vec<Posted>>>,
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.split("content-length: ").nth(1).expect("a length");
        let length: usize = length
            .lines()
            .next()
            .expect("a line")
            .trim()
            .parse()
            .expect("a number");
        let body = end + 4;
        while bytes.len() < body + length {
            stream.read_buf(&mut bytes).await?;
        }
        let rest = bytes.split_off(body + length);
        let request = (head, bytes.split_off(body));
        posted.lock().expect("no panic").push(request);
        bytes = rest;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .await?;
    }
}

#[tokio::test]
async fn spans_go_over_http_too() {
    let (posted, address) = http_collector().await;
    let services = Watched::start(|telemetry| {
        telemetry.endpoint = format!("http://{address}/");
        telemetry.protocol = Some(Protocol::HttpProtobuf);
    })
    .await;
    let answer = generate(&services.coordinator, request("Once upon a time", 24)).await;
    // What the peers sent went to their own collector.
    let of_peers = services.spans().await;
    assert!(!of_peers.0.is_empty());
    let posted = posted.lock().expect("no panic");
    let (head, body) = posted.first().expect("something was posted");
    assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
    assert!(
        head.contains("content-type: application/x-protobuf"),
        "{head}"
    );
    // Texts stand in protobuf as they are.
    let holds = |text: &str| {
        body.windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    assert!(holds("outrider-coordinator") && holds("chat default"));
    assert!(holds(&answer.started.request_id));
}

#[tokio::test]
async fn a_collector_that_is_not_there_holds_nobody_up() {
    // Nobody listens at the one; the other accepts and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let silent = (silent.local_addr().expect("an address"), silent);
    for (address, protocol) in [
        (SocketAddr::from(([127, 0, 0, 1], 9)), Protocol::Grpc),
        (silent.0, Protocol::Grpc),
        (silent.0, Protocol::HttpProtobuf),
    ] {
        let mut config = everything(address);
        config.protocol = Some(protocol);
        let telemetry = telemetry(&config, "drafter");
        let drafting = DrafterConfig::default();
        let loaded = Loaded::beside(draft(), &drafting).expect("in order");
        let (drafter, _) = drafter_in(process(&telemetry), loaded, drafting).await;
        let context = context(1);
        let mut stream = DraftStream::opened(drafter.url(), |_| {}).await;
        for round in 1..=40 {
            let reply = ask(&mut stream, round, &context).await;
            assert!(matches!(reply, Reply::Block(_)), "{reply:?}");
        }
        let began = Instant::now();
        telemetry.flush().await;
        let took = began.elapsed();
        assert!(took < Duration::from_secs(5), "the end waits {took:?}");
    }
}

/// A context as a coordinator sends it, sampled or not.
fn context(flags: u8) -> Vec<u8> {
    [&[7; 16][..], &[9; 8], &[flags]].concat()
}

/// What a drafter answers to a round with this context.
async fn ask(stream: &mut DraftStream, round: u64, context: &[u8]) -> Reply {
    let asked = DraftRound {
        max_tokens: 2,
        ..Default::default()
    };
    let mut asked = with_header(asked, round, &[]);
    asked.header.get_or_insert_default().trace_context = context.to_vec();
    stream.send(asked).await;
    stream.receive().await.expect("an answer")
}

#[tokio::test]
async fn a_context_that_cannot_be_one_is_no_error() {
    let (collector, address) = Collector::start().await;
    let telemetry = telemetry(&everything(address), "drafter");
    let drafting = DrafterConfig::default();
    let loaded = Loaded::beside(draft(), &drafting).expect("in order");
    let (drafter, monitor) = drafter_in(process(&telemetry), loaded, drafting).await;
    let mut stream = DraftStream::opened(drafter.url(), |_| {}).await;
    let no_trace = [&[0; 16][..], &[9; 8], &[1]].concat();
    let contexts = [
        Vec::new(),
        vec![1],
        context(1)[..24].to_vec(),
        vec![1; 26],
        vec![1; 4_000],
        no_trace,
        context(0),
        context(1),
    ];
    for (round, context) in (1..).zip(&contexts) {
        let reply = ask(&mut stream, round, context).await;
        assert!(matches!(reply, Reply::Block(_)), "{context:?}: {reply:?}");
    }
    drop(stream);
    eventually("the session is closed", || monitor.sessions().attached == 0).await;
    telemetry.flush().await;
    let spans = collector.spans();
    let drafted = spans.one(names::DRAFT);
    assert_eq!(
        (
            drafted.span.trace_id.as_slice(),
            drafted.span.parent_span_id.as_slice()
        ),
        (&[7; 16][..], &[9; 8][..])
    );
    assert_eq!(
        spans.all(names::FORWARD).len() + spans.all(names::PREFILL).len(),
        1
    );
}
