//! Processes that are stopped while clients talk to them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};
use wire::v1::coordinator_client::CoordinatorClient;
use wire::v1::generate_request::Prompt;
use wire::v1::generate_response::Part;
use wire::v1::{FinishReason, Finished, GenerateRequest, GenerateResponse, SamplingParams};

use super::relay::Relay;
use super::{ANY, Server, free_address, health, signal};

/// The default grace, and what a process may take beyond it on a busy machine: less than the grace, so that one
/// that does not wait for it can be told.
const GRACE: Duration = Duration::from_secs(10);
const EXIT: Duration = Duration::from_secs(5);

/// Requests that clients make in turn; the last two are decoded by the target alone, in one long round.
const REQUESTS: usize = 6;
const WITH_DRAFTS: usize = 4;

/// Output tokens of each. On the wire a token takes a byte or more, so fewer bytes are no whole answer.
const MAX_TOKENS: u32 = 300;
const NO_WHOLE_ANSWER: usize = 250;

fn requested(index: usize) -> GenerateRequest {
    GenerateRequest {
        prompt: Some(Prompt::Text("Once upon a time".to_owned())),
        max_tokens: Some(MAX_TOKENS),
        sampling: Some(SamplingParams {
            temperature: Some((index % 2) as f32),
            ..Default::default()
        }),
        seed: Some(index as u64),
        ignore_eos: true,
        method: if index < WITH_DRAFTS {
            String::new()
        } else {
            "target-only".to_owned()
        },
        ..Default::default()
    }
}

async fn generate(
    url: &str,
    request: GenerateRequest,
) -> Result<Streaming<GenerateResponse>, Status> {
    let channel = Channel::from_shared(url.to_owned())
        .expect("a URL")
        .connect_lazy();
    let parts = CoordinatorClient::new(channel).generate(request).await?;
    Ok(parts.into_inner())
}

/// Reads a stream to its end, which must be one `finished`, and after a failure its status.
async fn read(mut parts: Streaming<GenerateResponse>) -> (Vec<u32>, Finished) {
    let (mut tokens, mut end) = (Vec::new(), None);
    let status = loop {
        let message = match parts.message().await {
            Ok(Some(message)) => message,
            Ok(None) => break 0,
            Err(status) => break status.code() as u32,
        };
        assert!(end.is_none(), "nothing may follow the end");
        match message.part {
            Some(Part::Chunk(chunk)) => tokens.extend(chunk.token_ids),
            Some(Part::Finished(finished)) => end = Some(finished),
            _ => {}
        }
    };
    let end: Finished = end.unwrap_or_else(|| panic!("no end but status {status}"));
    assert_eq!(status, end.error_code);
    (tokens, end)
}

/// Returns what the target alone answers.
async fn expected(url: &str) -> Vec<Vec<u32>> {
    let mut expected = Vec::new();
    for index in 0..REQUESTS {
        let alone = GenerateRequest {
            method: "target-only".to_owned(),
            ..requested(index)
        };
        let parts = generate(url, alone).await.expect("in order");
        expected.push(read(parts).await.0);
    }
    expected
}

/// Waits for the process to end, and tells its exit code.
async fn ended(mut server: Server, limit: Duration) -> Option<i32> {
    let began = Instant::now();
    loop {
        if let Some(status) = server.child.try_wait().expect("a child") {
            return status.code();
        }
        assert!(began.elapsed() < limit, "not ended within {limit:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Returns how many sessions are open at a peer.
fn sessions_at(peer: &Server, role: &str) -> f64 {
    let sample = format!("outrider_sessions{{role=\"{role}\",state=\"open\"}}");
    health::value(&health::get(&peer.admin, "/metrics"), &sample)
}

/// Waits until `count` sessions are open at a peer.
async fn open_at(peer: &Server, role: &str, count: f64) {
    let limit = Instant::now() + Duration::from_secs(60);
    while sessions_at(peer, role) < count {
        assert!(Instant::now() < limit, "never {count} sessions at a {role}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Holds back a verifier's answers while `count` sessions are open there. A session that comes to it stays as long; if too few
/// come in time, the answers are let go before the coordinator gives the verifier up, and held back again.
async fn held_with(verifier: &Server, relay: &Relay, count: f64) {
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        relay.hold_after(0);
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until {
            if sessions_at(verifier, "verifier") >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(
            Instant::now() < limit,
            "never {count} sessions at a verifier"
        );
        relay.release();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Waits until a process that was told to stop tells of it.
fn says_that_it_drains(server: &Server, service: &str) {
    let readiness = || health::answer(&server.admin, "/readyz").1;
    let mut said = readiness();
    while said == "ready\n" {
        said = readiness();
    }
    assert_eq!(
        said,
        format!("not ready: outrider.v1.{service} is draining\n")
    );
}

/// A relay in front of a process.
async fn relay_to(address: &str) -> Relay {
    let address = address.strip_prefix("http://").unwrap_or(address);
    Relay::start(address.parse::<SocketAddr>().expect("an address")).await
}

pub(crate) fn with_settings(role: &[&str], settings: &str) -> Server {
    let file = tempfile::Builder::new().suffix(".toml").tempfile();
    let file = file.expect("a file");
    std::fs::write(file.path(), settings).expect("written");
    let path = file.path().to_str().expect("text");
    Server::start(&[role, &["--config", path]].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_notices_a_rolling_restart_of_drafters_and_verifiers() {
    let addresses: Vec<_> = (0..4).map(|_| free_address()).collect();
    let roles = ["verifier", "verifier", "drafter", "drafter"];
    let start = |index: usize| Server::start(&[roles[index], "--listen", &addresses[index]]);
    let mut peers: Vec<_> = (0..4).map(|index| Some(start(index))).collect();
    let relays = [relay_to(&addresses[0]).await, relay_to(&addresses[1]).await];
    let drafters = [2, 3].map(|index| format!("http://{}", addresses[index]));
    let verifiers = relays.each_ref().map(Relay::url);
    let verifiers = ["--verifier", &verifiers[0], "--verifier", &verifiers[1]];
    let drafters = ["--drafter", &drafters[0], "--drafter", &drafters[1]];
    let role = ["coordinator", "--listen", ANY];
    let coordinator = Server::start(&[&role[..], &verifiers, &drafters].concat());
    let expected = Arc::new(expected(&coordinator.url).await);
    let stop = Arc::new(AtomicBool::new(false));
    // Each asks for one thing again and again, so that at any time most of them have drafts verified.
    let clients: Vec<_> = (0..REQUESTS)
        .map(|index| {
            let (url, stop) = (coordinator.url.clone(), Arc::clone(&stop));
            let expected = Arc::clone(&expected);
            tokio::spawn(async move {
                let (mut answers, mut migrations) = (0, 0);
                while !stop.load(Ordering::Relaxed) {
                    let parts = generate(&url, requested(index)).await.expect("taken");
                    let (tokens, finished) = read(parts).await;
                    assert_eq!(finished.error, "", "request {index}");
                    assert_eq!(tokens, expected[index], "request {index}");
                    answers += 1;
                    migrations += finished.speculation.expect("statistics").migrations;
                }
                (answers, migrations)
            })
        })
        .collect();
    for (index, peer) in peers.iter_mut().enumerate() {
        let old = peer.take().expect("it runs");
        // Whoever comes to a verifier that is held stays there: two and more of them, when four are there, have
        // rounds ahead of them.
        if let Some(relay) = relays.get(index) {
            held_with(&old, relay, 4.0).await;
        } else {
            open_at(&old, roles[index], 1.0).await;
        }
        signal(&old.child, "TERM");
        if let Some(relay) = relays.get(index) {
            says_that_it_drains(&old, "Verifier");
            relay.release();
        }
        assert_eq!(ended(old, GRACE + EXIT).await, Some(0), "{}", roles[index]);
        *peer = Some(start(index));
    }
    stop.store(true, Ordering::Relaxed);
    let (mut answers, mut migrations) = (0, 0);
    for client in clients {
        let (answered, moved) = client.await.expect("every answer right");
        answers += answered;
        migrations += moved;
    }
    // Whatever was on the first verifier went to the second, and all of it back.
    assert!(migrations > 0, "of {answers} answers none moved");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_coordinator_leaves_no_stream_without_an_end() {
    const CLIENTS: usize = 2 * REQUESTS;
    let verifier = Server::start(&["verifier", "--listen", ANY]);
    let relay = relay_to(&verifier.url).await;
    let role = ["coordinator", "--listen", ANY, "--verifier", &relay.url()];
    // What is under way is asked to end half a second before it would be cut.
    let grace = Duration::from_secs(2);
    let settings = "[coordinator.server]\ndrain_grace_ms = 2000";
    let coordinator = with_settings(&role, settings);
    let expected = Arc::new(expected(&coordinator.url).await);
    relay.hold_after(NO_WHOLE_ANSWER);
    let (started, mut under_way) = tokio::sync::mpsc::channel(CLIENTS);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (url, expected) = (coordinator.url.clone(), Arc::clone(&expected));
            let (index, started) = (client % REQUESTS, started.clone());
            tokio::spawn(async move {
                let parts = generate(&url, requested(index)).await.expect("taken");
                started.send(()).await.expect("waited for");
                let (tokens, finished) = read(parts).await;
                assert_eq!(finished.reason(), FinishReason::Error);
                assert_eq!(finished.error_code, Code::Unavailable as u32);
                assert!(finished.retry_after_ms > 0, "{}", finished.error);
                assert!(expected[index].starts_with(&tokens));
                // It has long stopped listening.
                let refused = generate(&url, requested(index)).await.expect_err("refused");
                assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
            })
        })
        .collect();
    for _ in 0..CLIENTS {
        under_way.recv().await.expect("taken");
    }
    let began = Instant::now();
    signal(&coordinator.child, "TERM");
    // The admin port tells of the drain for as long as it lasts.
    says_that_it_drains(&coordinator, "Coordinator");
    let code = ended(coordinator, grace + EXIT).await;
    assert_eq!(code, Some(0), "after {:?}", began.elapsed());
    for client in clients {
        client.await.expect("an end in order");
    }
}

/// Prompts go through this verifier one token a forward, so that a prefill takes its time.
fn slow_verifier(address: &str) -> Server {
    let role = ["verifier", "--listen", address];
    with_settings(&role, "[verifier.engine]\nmax_batch_tokens = 1")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verifier_stopped_in_the_midst_of_a_prefill_loses_nothing() {
    let (first, second) = (free_address(), free_address());
    let relay = relay_to(&first).await;
    let verifier = slow_verifier(&first);
    let role = ["coordinator", "--listen", ANY];
    let url = format!("http://{second}");
    let peers = ["--verifier", &relay.url(), "--verifier", &url];
    let coordinator = Server::start(&[&role[..], &peers].concat());
    let long = GenerateRequest {
        prompt: Some(Prompt::Text("The cat sat on the mat. ".repeat(50))),
        max_tokens: Some(8),
        ..requested(0)
    };
    let parts = generate(&coordinator.url, long.clone())
        .await
        .expect("in order");
    let expected = read(parts).await.0;
    assert_eq!(expected.len(), 8);

    // The second replica is not there, so what is under way ends where it is.
    relay.hold_after(0);
    let parts = generate(&coordinator.url, long.clone())
        .await
        .expect("in order");
    open_at(&verifier, "verifier", 1.0).await;
    signal(&verifier.child, "TERM");
    says_that_it_drains(&verifier, "Verifier");
    relay.release();
    assert_eq!(read(parts).await.0, expected);
    assert_eq!(ended(verifier, GRACE + EXIT).await, Some(0));

    // A second signal does not wait; the second replica is started meanwhile.
    let verifier = slow_verifier(&first);
    // What there is to know of the new process is known before anything is held.
    let parts = generate(&coordinator.url, long.clone()).await;
    assert_eq!(read(parts.expect("in order")).await.0, expected);
    relay.hold_after(0);
    let parts = generate(&coordinator.url, long).await.expect("in order");
    open_at(&verifier, "verifier", 1.0).await;
    signal(&verifier.child, "TERM");
    signal(&verifier.child, "INT");
    assert_eq!(ended(verifier, EXIT).await, Some(130));
    relay.cut();
    relay.release();
    let _second = slow_verifier(&second);
    assert_eq!(read(parts).await.0, expected);
}
