//! What a coordinator holds of requests that strangers send: its memory is measured, as a process's.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio_stream::StreamExt;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use wire::bounds::BoundedCodec;
use wire::v1::coordinator_client::CoordinatorClient;
use wire::v1::{ChatMessage, GenerateRequest, GenerateResponse};

use super::draining::with_settings;
use super::{ANY, Server};

/// What a message may have, less a little for what goes before the list.
const MESSAGE_BYTES: usize = (4 << 20) - 64;

/// A conversation of as many empty turns as a message has room for: three bytes each there, and fifty in memory.
fn empty_turns() -> GenerateRequest {
    GenerateRequest {
        messages: vec![ChatMessage::default(); MESSAGE_BYTES / 3],
        ..Default::default()
    }
}

/// A coordinator whose verifier never comes.
fn coordinator() -> Server {
    let role = ["coordinator", "--listen", ANY, "--verifier"];
    let settings = "[coordinator.server]\nreceive_timeout_ms = 6000";
    with_settings(&[&role[..], &["http://127.0.0.1:9"]].concat(), settings)
}

pub(crate) fn connect(server: &Server) -> Channel {
    let url = Channel::from_shared(server.url.clone()).expect("a URL");
    url.connect_lazy()
}

/// Most memory that the process ever had, in MiB.
fn peak(server: &Server) -> f64 {
    mebibytes(server, "VmHWM:")
}

/// Returns what the kernel counts of the process under `key`, in MiB.
pub(crate) fn mebibytes(server: &Server, key: &str) -> f64 {
    let path = format!("/proc/{}/status", server.child.id());
    let status = std::fs::read_to_string(path).expect("it runs");
    let counted = status.lines().find_map(|line| line.strip_prefix(key));
    let counted = counted.and_then(|counted| counted.trim().strip_suffix(" kB"));
    let kibibytes: f64 = counted.expect("a size").trim().parse().expect("a number");
    kibibytes / 1024.0
}

/// Asks for something small, after which what every process needs is there.
async fn warm_up(channel: &Channel) {
    let mut client = CoordinatorClient::new(channel.clone());
    let wrong = GenerateRequest {
        model: "no such model".to_owned(),
        ..Default::default()
    };
    let refused = client.generate(wrong).await.expect_err("no such model");
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn millions_of_empty_items_are_refused_before_memory_is_spent_on_them() {
    let server = coordinator();
    let channel = connect(&server);
    warm_up(&channel).await;
    let before = peak(&server);
    let mut client = CoordinatorClient::new(channel);
    let refused = client.generate(empty_turns()).await.expect_err("too many");
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    let said = refused.message();
    assert!(
        said.starts_with("messages: 1398") && said.ends_with("turns, expected at most 1024"),
        "{said}"
    );
    let grown = peak(&server) - before;
    // The message comes in, is collected, and is handed on as a whole.
    assert!(grown < 8.0 * 4.0, "{grown} MiB more");
}

/// Sends a whole message on a request that does not end, and returns the status that comes of it.
async fn unended(channel: Channel, request: GenerateRequest) -> Status {
    let mut client = Grpc::new(channel);
    client.ready().await.expect("connected");
    let messages = tokio_stream::once(request).chain(tokio_stream::pending());
    let path = PathAndQuery::from_static("/outrider.v1.Coordinator/Generate");
    let codec = BoundedCodec::<GenerateRequest, GenerateResponse>::default();
    let answered = client.client_streaming(Request::new(messages), path, codec);
    let answered = tokio::time::timeout(Duration::from_secs(120), answered).await;
    answered.expect("an answer").expect_err("refused")
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_never_end_hold_no_more_than_a_connection_may() {
    let server = coordinator();
    let channel = connect(&server);
    warm_up(&channel).await;
    let before = peak(&server);
    let mut asking = JoinSet::new();
    for _ in 0..40 {
        let prompt = wire::v1::TokenIds {
            ids: vec![1; MESSAGE_BYTES],
        };
        let request = GenerateRequest {
            prompt: Some(wire::v1::generate_request::Prompt::TokenIds(prompt)),
            ..Default::default()
        };
        asking.spawn(unended(channel.clone(), request));
    }
    let mut late = 0;
    while let Some(status) = asking.join_next().await {
        let status = status.expect("no panic");
        match status.code() {
            Code::DeadlineExceeded => late += 1,
            Code::ResourceExhausted => {}
            _ => panic!("{status:?}"),
        }
    }
    // Who is refused makes room, so there is always one that waits until its time is over.
    assert!(late > 0, "all were refused");
    let grown = peak(&server) - before;
    // The connection's window of 32 MiB, what is held, and what grows while it is collected.
    assert!(grown < 4.0 * 32.0, "{grown} MiB more, {late} held");
}
