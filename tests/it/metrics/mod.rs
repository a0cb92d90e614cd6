//! What the processes tell of themselves at their admin ports, against what their answers say.

mod exemplars;
mod faults;
mod openmetrics;
mod peers;
mod readiness;
mod table;

use coordinator::CoordinatorConfig;
use drafter::{DrafterConfig, Loaded};
use model::Model;
use model::source::ServedModel;
use server::admin::{self, Admin};
use server::process::Process;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use verifier::VerifierConfig;
use wire::v1::{MethodParameters, SpeculationStatistics};

use crate::client::{Answer, With, generate, request};
use crate::cluster::{Service, config, coordinator_in, draft, drafter_in, target, verifier_in};
use openmetrics::Scrape;

/// A service in a process of its own, with an admin port.
struct Watched {
    service: Service,
    admin: Admin,
}

/// A process with its admin port.
async fn process() -> (Process, Admin) {
    let process = Process::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let admin = admin::serve(listener, &process).expect("an admin port");
    (process, admin)
}

/// A drafter, a verifier and their coordinator.
struct Cluster {
    drafter: Watched,
    verifier: Watched,
    coordinator: Watched,
}

impl Watched {
    async fn drafter(model: ServedModel<Model>) -> Self {
        let (process, admin) = process().await;
        let config = DrafterConfig::default();
        let loaded = Loaded::beside(model, &config).expect("a configuration in order");
        let (service, _) = drafter_in(process, loaded, config).await;
        Self { service, admin }
    }

    async fn verifier(model: ServedModel<Model>) -> Self {
        let (process, admin) = process().await;
        let (service, _) = verifier_in(process, model, VerifierConfig::default()).await;
        Self { service, admin }
    }

    async fn coordinator(config: CoordinatorConfig) -> Self {
        let (process, admin) = process().await;
        let service = coordinator_in(process, config).await;
        Self { service, admin }
    }

    /// An answer of the admin port: its status and body.
    async fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.admin.address())
            .await
            .expect("there");
        let request = format!("GET {path} HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        let status = head.split(' ').nth(1).expect("a status");
        (status.parse().expect("a number"), body.to_owned())
    }

    async fn scrape(&self) -> Scrape {
        let (status, text) = self.get("/metrics").await;
        assert_eq!(status, 200);
        Scrape::read(&text)
    }

    /// Scrapes until `holds`, or fails with `what` after five seconds.
    async fn eventually(&self, what: &str, holds: impl Fn(&Scrape) -> bool) {
        let limit = tokio::time::Instant::now() + std::time::Duration::from_secs(5);
        while tokio::time::Instant::now() < limit {
            if holds(&self.scrape().await) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("not within five seconds: {what}");
    }
}

impl Cluster {
    async fn start() -> Self {
        let drafter = Watched::drafter(draft()).await;
        let verifier = Watched::verifier(target()).await;
        let urls = [drafter.service.url(), verifier.service.url()];
        let coordinator = Watched::coordinator(config(&urls[..1], &urls[1..])).await;
        Self {
            drafter,
            verifier,
            coordinator,
        }
    }
}

fn statistics(answer: &Answer) -> &SpeculationStatistics {
    answer.finished.speculation.as_ref().expect("statistics")
}

/// Draft positions that are counted one by one.
const POSITIONS: u32 = 20;

/// How many rounds came to each position, given how far each came.
fn by_position<'a>(reached: impl Iterator<Item = &'a u32>) -> Vec<(String, u32)> {
    let reached: Vec<u32> = reached.copied().collect();
    let single = (1..=POSITIONS).map(|position| {
        let count = reached.iter().filter(|&&len| len >= position).count();
        (position.to_string(), count as u32)
    });
    let beyond = reached
        .iter()
        .map(|len| len.saturating_sub(POSITIONS))
        .sum();
    single.chain([("21+".to_owned(), beyond)]).collect()
}

#[tokio::test]
async fn figures_of_a_coordinator_are_the_sums_of_its_answers() {
    let cluster = Cluster::start().await;
    let coordinator = &cluster.coordinator;
    let mut answers: Vec<Answer> = Vec::new();
    for seed in 0..3 {
        let mut asked = request("Once upon a time", 40)
            .temperature(1.0)
            .seed(seed)
            .ignoring_eos();
        // Whether the client wants reports makes no difference.
        asked.report_rounds = seed == 0;
        // One with blocks longer than there are positions of their own.
        asked.draft_len = (seed == 2).then_some(24);
        answers.push(generate(&coordinator.service, asked).await);
    }
    let scrape = coordinator.scrape().await;
    let labels = [("model", "default"), ("method", "coupled")];
    let value = |name: &str| scrape.value(name, &labels);
    let total = |of: fn(&SpeculationStatistics) -> u32| -> f64 {
        answers
            .iter()
            .map(|answer| f64::from(of(statistics(answer))))
            .sum()
    };
    assert!(
        total(|s| s.num_accepted_draft_tokens) > 0.0,
        "there is something to count"
    );
    assert_eq!(value("outrider_rounds_total"), total(|s| s.num_spec_steps));
    assert_eq!(
        value("outrider_draft_tokens_total"),
        total(|s| s.num_draft_tokens)
    );
    assert_eq!(
        value("outrider_accepted_tokens_total"),
        total(|s| s.num_accepted_draft_tokens)
    );
    assert_eq!(
        value("outrider_discarded_tokens_total"),
        total(|s| s.discarded)
    );
    assert_eq!(
        value("outrider_target_forwards_total"),
        total(|s| s.target_forwards)
    );
    assert_eq!(value("outrider_emitted_tokens_total"), 120.0);
    let prompts = f64::from(answers[0].started.prompt_tokens) * 3.0;
    assert_eq!(
        scrape.value("outrider_prompt_tokens_total", &labels[..1]),
        prompts
    );

    let drafted = answers
        .iter()
        .flat_map(|answer| &statistics(answer).per_step_drafted);
    let accepted = || {
        answers
            .iter()
            .flat_map(|answer| &statistics(answer).per_step_accepted)
    };
    for (name, expected) in [
        ("outrider_position_drafted_total", by_position(drafted)),
        ("outrider_position_accepted_total", by_position(accepted())),
    ] {
        for (position, count) in expected {
            let labels = [labels[0], ("position", position.as_str())];
            assert_eq!(
                scrape.value(name, &labels),
                f64::from(count),
                "{name} {position}"
            );
        }
    }
    let lengths = "outrider_accepted_length_tokens";
    assert_eq!(
        value(&format!("{lengths}_count")),
        total(|s| s.num_spec_steps)
    );
    assert_eq!(
        value(&format!("{lengths}_sum")),
        total(|s| s.num_accepted_draft_tokens)
    );
    for bound in [0, 3, 8] {
        let le = format!("{bound}.0");
        let within = accepted().filter(|&&len| len <= bound).count();
        let labels = [labels[0], labels[1], ("le", le.as_str())];
        assert_eq!(
            scrape.value(&format!("{lengths}_bucket"), &labels),
            within as f64
        );
    }

    let outcomes = [labels[0], labels[1], ("outcome", "length")];
    assert_eq!(scrape.value("outrider_requests_total", &outcomes), 3.0);
    assert_eq!(scrape.sum("outrider_requests_total", &[]), 3.0);
    assert_eq!(scrape.value("outrider_requests_limit", &[]), 256.0);
    let over = |scrape: &Scrape| scrape.value("outrider_requests_running", &[]) == 0.0;
    coordinator.eventually("all requests are over", over).await;
    times_agree(&scrape, &answers);
    nothing_went_wrong(&scrape);
}

/// Nothing was refused, lost or tried again.
fn nothing_went_wrong(scrape: &Scrape) {
    for name in [
        "outrider_requests_refused_total",
        "outrider_fallbacks_total",
        "outrider_retries_total",
    ] {
        assert_eq!(scrape.sum(name, &[]), 0.0, "{name}");
    }
}

/// Histograms of times, against what the answers say.
fn times_agree(scrape: &Scrape, answers: &[Answer]) {
    let gen_ai = [
        ("gen_ai_operation_name", "chat"),
        ("gen_ai_provider_name", "outrider"),
        ("gen_ai_request_model", "default"),
    ];
    let with_error = [gen_ai[0], gen_ai[1], gen_ai[2], ("error_type", "")];
    let timing = |answer: &Answer| answer.finished.timing.expect("timing");
    let seconds = |of: fn(&wire::v1::RequestTiming) -> f64| -> f64 {
        answers.iter().map(|answer| of(&timing(answer)) / 1e3).sum()
    };
    let near = |name: &str, labels: &[(&str, &str)], expected: f64| {
        assert_eq!(
            scrape.value(&format!("{name}_count"), labels),
            3.0,
            "{name}"
        );
        let sum = scrape.value(&format!("{name}_sum"), labels);
        // Taken a moment apart.
        assert!(
            (sum - expected).abs() < 0.25 + expected * 0.1,
            "{name}: {sum}, not {expected}"
        );
    };
    let (first, total) = (
        seconds(|timing| timing.time_to_first_token_ms),
        seconds(|timing| timing.total_ms),
    );
    near("gen_ai_server_time_to_first_token_seconds", &gen_ai, first);
    near("gen_ai_server_request_duration_seconds", &with_error, total);
    let each = "gen_ai_server_time_per_output_token_seconds";
    assert_eq!(scrape.value(&format!("{each}_count"), &gen_ai), 3.0);
    let after_first = scrape.value(&format!("{each}_sum"), &gen_ai) * 36.0;
    assert!(after_first > 0.2 * (total - first) && after_first < 2.0 * (total - first));

    let rounds: u32 = answers
        .iter()
        .map(|answer| statistics(answer).num_spec_steps)
        .sum();
    let phase = |phase: &str, suffix: &str| {
        let name = format!("outrider_round_duration_seconds_{suffix}");
        scrape.value(&name, &[("model", "default"), ("phase", phase)])
    };
    for asked in ["draft", "verify"] {
        let count = phase(asked, "count");
        assert!(count >= f64::from(rounds), "{asked}: {count} of {rounds}");
        let parts: f64 = ["queue", "forward"]
            .map(|part| phase(&format!("{asked}_{part}"), "sum"))
            .iter()
            .sum();
        assert!(parts > 0.0 && parts <= phase(asked, "sum"), "{asked}");
    }
    let waited = phase("draft", "sum") + phase("verify", "sum");
    assert!(phase("wire", "sum") > 0.0 && phase("wire", "sum") < waited);
    assert!(waited <= total);
}

#[tokio::test]
async fn figures_of_peers_follow_their_work_and_return_to_nothing() {
    let cluster = Cluster::start().await;
    let asked = request("Once upon a time", 40).ignoring_eos();
    let answer = generate(&cluster.coordinator.service, asked).await;
    let statistics = statistics(&answer);
    for (peer, role, rounds) in [
        (&cluster.drafter, "drafter", statistics.num_spec_steps),
        (&cluster.verifier, "verifier", statistics.target_forwards),
    ] {
        let of_role = [("role", role)];
        let nothing = |scrape: &Scrape| {
            let open = [of_role[0], ("state", "open")];
            let detached = [of_role[0], ("state", "detached")];
            scrape.value("outrider_sessions", &open) == 0.0
                && scrape.value("outrider_sessions", &detached) == 0.0
                && scrape.value("outrider_engine_running", &of_role) == 0.0
                && scrape.value("outrider_engine_queue", &of_role) == 0.0
                && scrape.value("outrider_engine_sequences", &of_role) == 0.0
                && scrape.value("outrider_kv_used_tokens", &of_role) == 0.0
        };
        peer.eventually(role, nothing).await;
        let scrape = peer.scrape().await;
        let value = |name: &str| scrape.value(name, &of_role);
        let answered = [of_role[0], ("outcome", "answered")];
        assert_eq!(
            scrape.value("outrider_peer_rounds_total", &answered),
            f64::from(rounds)
        );
        assert_eq!(
            scrape.sum("outrider_peer_rounds_total", &[]),
            f64::from(rounds),
            "{role}"
        );
        for name in [
            "queue_duration_seconds",
            "forward_duration_seconds",
            "engine_batch_sequences",
        ] {
            let count = value(&format!("outrider_{name}_count"));
            assert_eq!(count, f64::from(rounds), "{name}");
        }
        assert_eq!(
            value("outrider_engine_batch_sequences_sum"),
            f64::from(rounds)
        );
        let busy = value("outrider_engine_busy_seconds_total");
        let forwards = value("outrider_forward_duration_seconds_sum");
        assert!(
            busy >= forwards * 0.999 && busy < forwards * 1.5 + 0.1,
            "{busy}, {forwards}"
        );
        let prompt = f64::from(answer.started.prompt_tokens);
        let prefilled = value("outrider_prefill_tokens_total");
        assert!(
            prefilled >= prompt - 1.0 && prefilled <= prompt + 40.0,
            "{prefilled}"
        );
        assert!(value("outrider_engine_forwarded_tokens_total") > prefilled + 40.0 - 1.0);
        assert!(value("outrider_engine_forwards_total") >= f64::from(rounds));
        assert!(value("outrider_kv_budget_tokens") > 0.0);
        assert_eq!(value("outrider_engine_running_limit"), 32.0);
        assert_eq!(value("outrider_engine_queue_limit"), 256.0);
        assert_eq!(value("outrider_sessions_limit"), 1_024.0);
        let model = [
            of_role[0],
            ("model", if role == "drafter" { "draft" } else { "target" }),
        ];
        assert!(scrape.value("outrider_model_load_seconds", &model) > 0.0);
    }
}

#[tokio::test]
async fn sessions_and_memory_are_seen_while_a_request_runs() {
    let cluster = Cluster::start().await;
    let long = request("Once upon a time", 480).ignoring_eos();
    let mut parts = crate::cluster::client(&cluster.coordinator.service)
        .generate(long)
        .await
        .expect("in order")
        .into_inner();
    for _ in 0..3 {
        parts.message().await.expect("a part");
    }
    let open = [("role", "verifier"), ("state", "open")];
    let scrape = cluster.verifier.scrape().await;
    assert_eq!(scrape.value("outrider_sessions", &open), 1.0);
    let holds =
        |scrape: &Scrape| scrape.value("outrider_kv_used_tokens", &[("role", "verifier")]) > 0.0;
    cluster.verifier.eventually("memory is used", holds).await;
    let scrape = cluster.coordinator.scrape().await;
    assert_eq!(scrape.value("outrider_requests_running", &[]), 1.0);
    let alive = [
        ("model", "default"),
        ("role", "verifier"),
        ("state", "alive"),
    ];
    assert_eq!(scrape.value("outrider_peers", &alive), 1.0);
    drop(parts);
    let over = |scrape: &Scrape| scrape.value("outrider_requests_running", &[]) == 0.0;
    cluster
        .coordinator
        .eventually("the request is over", over)
        .await;
}

#[tokio::test]
async fn deferral_is_counted_where_a_rule_judges() {
    let cluster = Cluster::start().await;
    let asked = wire::v1::GenerateRequest {
        parameters: Some(MethodParameters {
            rule: Some("token-v1".to_owned()),
            alpha: Some(0.3),
            ..Default::default()
        }),
        ..request("Once upon a time", 40)
            .method("spec-cascade")
            .ignoring_eos()
    };
    let answer = generate(&cluster.coordinator.service, asked).await;
    let rate = statistics(&answer).deferral_rate.expect("a rule judged");
    let scrape = cluster.coordinator.scrape().await;
    let labels = [("model", "default"), ("method", "spec-cascade")];
    let judged = scrape.value("outrider_judged_positions_total", &labels);
    let deferred = scrape.value("outrider_deferred_positions_total", &labels);
    assert!(judged > 0.0);
    assert!(
        (deferred / judged - rate).abs() < 1e-6,
        "{deferred} of {judged}, not {rate}"
    );
}
