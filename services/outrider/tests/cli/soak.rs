//! A deployment that is asked at random for long: its memory stays, nothing is left behind, and its answers are
//! those of a process that was just begun. Some seconds by default, 20 minutes in a full sweep.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use speculation::methods::MethodSpec;
use speculation::philox::philox;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tonic::transport::Channel;
use wire::v1::coordinator_client::CoordinatorClient;
use wire::v1::generate_request::Prompt;
use wire::v1::generate_response::Part;
use wire::v1::{FinishReason, GenerateRequest, SamplingParams, TokenIds};

use super::draining::with_settings;
use super::health::{get, value};
use super::memory::{connect, mebibytes};
use super::{Server, free_address};

/// Clients that ask at the same time.
const CLIENTS: u32 = 8;
/// Answers that are asked for again.
const SAMPLES: usize = 40;
/// What is not counted of a long soak: caches fill up.
const BEGINNING: Duration = Duration::from_mins(5);
/// MiB a minute that memory may grow in a long soak.
const SLOPE: f64 = 1.0;

const METHODS: [&str; 8] = [
    "coupled",
    "coupled",
    "rejection",
    "block",
    "target-only",
    "spec-cascade",
    "token-cascade",
    "bild",
];

/// A budget that the clients fight for.
const SETTINGS: &str = "[drafter.engine]\nkv_tokens = 1024\n[verifier.engine]\nkv_tokens = 1024\n";

/// A request, and its answer's tokens.
type Sample = (GenerateRequest, Vec<u32>);

fn lasts() -> Duration {
    match std::env::var("OUTRIDER_SWEEP").as_deref() {
        Ok("full") => Duration::from_mins(20),
        _ => Duration::from_secs(5),
    }
}

/// The three services in one process; the coordinator, which comes last, answers.
async fn deployment(settings: &str) -> Server {
    let address = free_address();
    let mut server = with_settings(&["all", "--listen", &address], settings);
    while TcpStream::connect(&address).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    server.url = format!("http://{address}");
    server
}

/// The `index`th request of a client, and after how many parts of the answer it leaves, if it does.
fn request(client: u32, index: u32) -> (GenerateRequest, Option<u32>) {
    let [a, b, c, d] = philox([client, index, 0, 0], [19, 0]);
    let [e, f, ..] = philox([client, index, 1, 0], [19, 0]);
    let ids = (0..=a % 200).map(|at| 256 + philox([client, index, 2, at], [19, 0])[0] % 3000);
    let mut requested = GenerateRequest {
        prompt: Some(Prompt::TokenIds(TokenIds { ids: ids.collect() })),
        max_tokens: Some(1 + b % 64),
        sampling: Some(SamplingParams {
            temperature: Some([0.0, 0.7, 1.0][c as usize % 3]),
            top_p: Some([1.0, 0.95][d as usize % 2]),
            frequency_penalty: [0.0, 0.0, 0.2][e as usize % 3],
            ..Default::default()
        }),
        seed: Some(u64::from(a) << 32 | u64::from(b)),
        ..Default::default()
    };
    let method = METHODS[(f >> 8) as usize % METHODS.len()];
    let spec = MethodSpec::new(method).with("draft_len", 1 + c % 8);
    wire::settings::to_wire(&spec, &mut requested);
    (requested, (f % 4 == 0).then_some(d % 6))
}

/// Asks; the tokens if the answer came to its end and may be asked for again.
async fn ask(
    channel: Channel,
    requested: GenerateRequest,
    leaves: Option<u32>,
) -> Option<Vec<u32>> {
    let mut client = CoordinatorClient::new(channel);
    let reported = format!("{} {:?}", requested.method, requested.seed);
    let answer = client.generate(requested).await;
    let mut parts = answer
        .unwrap_or_else(|status| panic!("{reported}: {status}"))
        .into_inner();
    let (mut tokens, mut seen) = (Vec::new(), 0);
    loop {
        if leaves == Some(seen) {
            return None;
        }
        seen += 1;
        let message = parts.message().await;
        let message = message.unwrap_or_else(|status| panic!("{reported}: {status}"));
        match message.expect("an answer that ends").part.expect("a part") {
            Part::Chunk(chunk) => tokens.extend(chunk.token_ids),
            Part::Finished(finished) => {
                assert_ne!(
                    finished.reason(),
                    FinishReason::Error,
                    "{reported}: {}",
                    finished.error
                );
                return finished.reproducible.then_some(tokens);
            }
            _ => {}
        }
    }
}

/// Asks at random until `end`, and keeps samples.
async fn client(channel: Channel, number: u32, end: Instant, samples: Arc<Mutex<Vec<Sample>>>) {
    let mut index = 0;
    while Instant::now() < end {
        let (requested, leaves) = request(number, index);
        index += 1;
        let Some(tokens) = ask(channel.clone(), requested.clone(), leaves).await else {
            continue;
        };
        let mut samples = samples.lock().expect("no panic");
        // Early ones, and then late ones in their place.
        let place = philox([number, index, 3, 0], [19, 0])[0] as usize % SAMPLES;
        match samples.get_mut(place) {
            Some(sample) => *sample = (requested, tokens),
            None => samples.push((requested, tokens)),
        }
    }
}

/// Waits until nothing is under way any more.
async fn quiet(server: &Server) {
    let busy = [
        "outrider_requests_running{}",
        "outrider_engine_running{role=\"drafter\"}",
        "outrider_engine_running{role=\"verifier\"}",
        "outrider_engine_queue{role=\"drafter\"}",
        "outrider_engine_queue{role=\"verifier\"}",
        "outrider_sessions{role=\"drafter\",state=\"open\"}",
        "outrider_sessions{role=\"verifier\",state=\"open\"}",
    ];
    let mut left = Vec::new();
    for _ in 0..100 {
        let reported = get(&server.admin, "/metrics");
        left = busy
            .into_iter()
            .filter(|name| value(&reported, name) > 0.0)
            .collect();
        if left.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("still under way: {left:?}");
}

/// MiB a minute, by least squares over `(minutes, MiB)`.
fn slope(memory: &[(f64, f64)]) -> f64 {
    let count = memory.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| memory.iter().map(of).sum::<f64>() / count;
    let (minute, size) = (mean(|at| at.0), mean(|at| at.1));
    let along: f64 = memory
        .iter()
        .map(|at| (at.0 - minute) * (at.1 - size))
        .sum();
    along / memory.iter().map(|at| (at.0 - minute).powi(2)).sum::<f64>()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_asked_at_random_keeps_its_memory_and_its_answers() {
    let began = Instant::now();
    let lasts = lasts();
    let server = deployment(SETTINGS).await;
    let samples = Arc::new(Mutex::new(Vec::new()));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let end = began + lasts;
        clients.spawn(client(connect(&server), number, end, Arc::clone(&samples)));
    }
    let mut memory = Vec::new();
    while began.elapsed() < lasts {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if began.elapsed() > BEGINNING {
            memory.push((
                began.elapsed().as_secs_f64() / 60.0,
                mebibytes(&server, "VmRSS:"),
            ));
        }
    }
    clients.join_all().await;
    quiet(&server).await;
    if lasts > BEGINNING {
        let slope = slope(&memory);
        eprintln!(
            "{slope:.3} MiB a minute, {:.0} MiB at the end",
            memory[memory.len() - 1].1
        );
        assert!(slope < SLOPE, "{slope} MiB a minute: {memory:?}");
    }
    drop(server);

    let samples = std::mem::take(&mut *samples.lock().expect("no panic"));
    assert!(
        samples.len() > 5,
        "{} answers came to their end",
        samples.len()
    );
    let fresh = deployment("").await;
    for (requested, tokens) in samples {
        let reported = format!("{requested:?}");
        assert_eq!(
            ask(connect(&fresh), requested, None).await,
            Some(tokens),
            "{reported}"
        );
    }
}
