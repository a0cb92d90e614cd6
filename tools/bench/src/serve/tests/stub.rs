//! A server whose answers are known.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What the server is like, and what it was asked.
#[derive(Default)]
pub(super) struct Stub {
    /// Whether it counts tokens.
    pub(super) tells_usage: bool,
    /// What it adds to the last event of an answer.
    pub(super) told: Value,
    /// Which of the requests, counted from 0, are not answered as they should be, and how.
    pub(super) faults: Vec<(usize, StubFault)>,
    pub(super) asked: Mutex<Vec<Value>>,
    pub(super) open: AtomicUsize,
    pub(super) most_open: AtomicUsize,
    /// Draft tokens, as its metrics count them.
    pub(super) drafted: AtomicUsize,
}

#[derive(Clone, Copy)]
pub(super) enum StubFault {
    Busy,
    ErrorEvent,
    NoEnd,
    NoJson,
}

/// Events of an answer, each with two tokens.
const EVENTS: usize = 3;

async fn completions(State(stub): State<Arc<Stub>>, body: String) -> Response {
    let body: Value = serde_json::from_str(&body).expect("JSON");
    let number = {
        let mut asked = stub.asked.lock();
        asked.push(body.clone());
        asked.len() - 1
    };
    let open = 1 + stub.open.fetch_add(1, Ordering::SeqCst);
    stub.most_open.fetch_max(open, Ordering::SeqCst);
    // Long enough that others come meanwhile.
    tokio::time::sleep(Duration::from_millis(20)).await;
    stub.open.fetch_sub(1, Ordering::SeqCst);
    stub.drafted.fetch_add(10, Ordering::SeqCst);
    let fault = stub.faults.iter().find(|(at, _)| *at == number);
    let fault = fault.map(|(_, fault)| *fault);
    if matches!(fault, Some(StubFault::Busy)) {
        let error = json!({ "error": { "message": "come again" } });
        return (StatusCode::TOO_MANY_REQUESTS, error.to_string()).into_response();
    }
    let choice = |text: &str, end: Value| match body.get("messages") {
        Some(_) => json!({ "delta": { "content": text }, "finish_reason": end }),
        None => json!({ "text": text, "finish_reason": end }),
    };
    let mut events = vec![json!({ "choices": [choice("", Value::Null)] }).to_string()];
    events.extend(
        (0..EVENTS).map(|_| json!({ "choices": [choice("a b", Value::Null)] }).to_string()),
    );
    match fault {
        Some(StubFault::ErrorEvent) => {
            events.push(json!({ "error": { "message": "lost" } }).to_string());
        }
        Some(StubFault::NoJson) => events.push("{".to_owned()),
        Some(StubFault::NoEnd) => {}
        _ => {
            events.push(json!({ "choices": [choice("", json!("length"))] }).to_string());
            let mut last = stub.told.clone();
            last["choices"] = json!([]);
            if stub.tells_usage {
                let prompt = body["prompt"].as_str().unwrap_or_default();
                let words = prompt.split_whitespace().count();
                // Four of a template, and two for each word.
                last["usage"] =
                    json!({ "prompt_tokens": 4 + 2 * words, "completion_tokens": 2 * EVENTS });
            }
            events.push(last.to_string());
            events.push("[DONE]".to_owned());
        }
    }
    format!("data: {}\n\n", events.join("\n\ndata: ")).into_response()
}

async fn metrics(State(stub): State<Arc<Stub>>) -> String {
    let drafted = stub.drafted.load(Ordering::SeqCst);
    format!(
        "vllm:spec_decode_num_drafts_total{{engine=\"0\"}} {}.0\n\
         vllm:spec_decode_num_draft_tokens_total{{engine=\"0\"}} {drafted}.0\n\
         vllm:spec_decode_num_accepted_tokens_total{{engine=\"0\"}} {}.0\n",
        drafted / 5,
        drafted * 3 / 5
    )
}

/// Serves `stub`, and returns the address of its API.
pub(super) async fn served(stub: Stub) -> (Arc<Stub>, String) {
    let stub = Arc::new(stub);
    let router = Router::new()
        .route(
            "/v1/models",
            get(async || json!({ "data": [{ "id": "stub" }] }).to_string()),
        )
        .route("/v1/completions", post(completions))
        .route("/v1/chat/completions", post(completions))
        .route("/metrics", get(metrics))
        .with_state(Arc::clone(&stub));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let service = TowerToHyperService::new(router.clone());
            tokio::spawn(async move {
                let serving = auto::Builder::new(TokioExecutor::new());
                // That a client leaves is no failure of the stub.
                let _ = serving
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    (stub, format!("http://{address}/v1"))
}
