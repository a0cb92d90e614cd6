//! Every metric a process can expose: name, kind, unit, labels, help. Dashboards and alerts are checked
//! against [`ALL`], and so is the table in `docs/reference/telemetry.md`.
//!
//! Labels are bounded: models are named as they are configured, methods as they are registered, and all
//! other values come from short lists. No session and nothing that a client wrote ever stands in one.

use super::definition::{Kind, Metric};

const SECONDS: &str = "seconds";
const TOKENS: &str = "tokens";
const BYTES: &str = "bytes";

/// Of rounds and their parts: from 10 µs of a queue to the 30 s after which a peer is given up.
const ROUND_BOUNDS: &[f64] = &[
    0.000_01, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1,
    0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Of accepted lengths: each of the usual ones by itself, then wider.
const LENGTH_BOUNDS: &[f64] = &[
    0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0, 20.0, 32.0, 64.0,
];

const BATCH_BOUNDS: &[f64] = &[
    1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 128.0, 256.0,
];

/// As published in the GenAI conventions for `gen_ai.server.request.duration`.
const GEN_AI_DURATION_BOUNDS: &[f64] = &[
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];

/// As published for `gen_ai.server.time_to_first_token`.
const GEN_AI_FIRST_TOKEN_BOUNDS: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];

/// As published for `gen_ai.server.time_per_output_token`.
const GEN_AI_OUTPUT_TOKEN_BOUNDS: &[f64] = &[
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5,
];

/// The labels that the GenAI conventions ask for.
const GEN_AI: &[&str] = &[
    "gen_ai_operation_name",
    "gen_ai_provider_name",
    "gen_ai_request_model",
];

const GEN_AI_WITH_ERROR: &[&str] = &[
    "gen_ai_operation_name",
    "gen_ai_provider_name",
    "gen_ai_request_model",
    "error_type",
];

const MODEL: &[&str] = &["model"];
const MODEL_AND_METHOD: &[&str] = &["model", "method"];
const ROLE: &[&str] = &["role"];

const fn metric(
    kind: Kind,
    name: &'static str,
    unit: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric {
        name,
        kind,
        unit,
        labels,
        help,
    }
}

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    metric(Kind::Counter, name, "", labels, help)
}

const fn tokens(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    metric(Kind::Counter, name, TOKENS, labels, help)
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    metric(Kind::Gauge, name, "", labels, help)
}

const fn durations(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    metric(Kind::Histogram(ROUND_BOUNDS), name, SECONDS, labels, help)
}

/// Declares the metrics, and [`ALL`] of them: a list written by hand would miss one some day.
macro_rules! metrics {
    ($($(#[$doc:meta])* $constant:ident = $definition:expr;)*) => {
        $($(#[$doc])* pub static $constant: Metric = $definition;)*

        /// Every metric there is.
        pub static ALL: &[&Metric] = &[$(&$constant),*];
    };
}

metrics! {
    /// The program.
    BUILD = metric(
        Kind::Info, "outrider_build", "", &["version"],
        "The program's version",
    );
    /// Whether services are ready.
    READY = gauge(
        "outrider_ready", &["service"],
        "1 while a service of this process is loaded, warmed up and not draining, else 0",
    );

    // A coordinator: requests.

    /// Requests by their end.
    REQUESTS = counter(
        "outrider_requests", &["model", "method", "outcome"],
        "Requests that began, by method asked for and outcome: stop, length, cancelled, deadline, error",
    );
    /// Requests that never began.
    REQUESTS_REFUSED = counter(
        "outrider_requests_refused", &["reason"],
        "Requests that never began, by reason: overloaded, invalid, unavailable, deadline, error",
    );
    /// Requests beyond the limit.
    ADMISSION_REJECTS = counter(
        "outrider_admission_rejects", &[],
        "Requests refused because coordinator.max_requests were under way; also among those refused as overloaded",
    );
    /// Requests whose client went away.
    CANCELLATIONS = counter(
        "outrider_cancellations", &["stage"],
        "Requests whose client went away, by what they were waiting for: preparing, drafting, verifying, decoding",
    );
    /// Requests under way.
    REQUESTS_RUNNING = gauge(
        "outrider_requests_running", &[],
        "Requests admitted and not yet over",
    );
    /// Most of them.
    REQUESTS_LIMIT = gauge(
        "outrider_requests_limit", &[],
        "Most requests admitted at a time (coordinator.max_requests)",
    );
    /// Outputs that are not what the method promises.
    INEXACT_REQUESTS = counter(
        "outrider_inexact_requests", MODEL,
        "Requests whose output is not what their method promises: the drafter it depends on was lost, or peers of other numerics took over",
    );
    /// Duration of requests.
    REQUEST_DURATION = metric(
        Kind::Traced(GEN_AI_DURATION_BOUNDS), "gen_ai_server_request_duration_seconds", SECONDS, GEN_AI_WITH_ERROR,
        "From a request's arrival to its last token (gen_ai.server.request.duration)",
    );
    /// Time to the first token.
    TIME_TO_FIRST_TOKEN = metric(
        Kind::Traced(GEN_AI_FIRST_TOKEN_BOUNDS), "gen_ai_server_time_to_first_token_seconds", SECONDS, GEN_AI,
        "From a request's arrival to its first token, of successful requests (gen_ai.server.time_to_first_token)",
    );
    /// Time by token after the first.
    TIME_PER_OUTPUT_TOKEN = metric(
        Kind::Traced(GEN_AI_OUTPUT_TOKEN_BOUNDS), "gen_ai_server_time_per_output_token_seconds", SECONDS, GEN_AI,
        "Mean time of each token after the first chunk, of successful requests (gen_ai.server.time_per_output_token)",
    );

    // A coordinator: tokens.

    /// Tokens of prompts.
    PROMPT_TOKENS = tokens(
        "outrider_prompt_tokens", MODEL,
        "Tokens of the prompts of requests that began",
    );
    /// Tokens handed to clients.
    EMITTED_TOKENS = tokens(
        "outrider_emitted_tokens", MODEL_AND_METHOD,
        "Output tokens handed to clients",
    );
    /// Rounds.
    ROUNDS = counter(
        "outrider_rounds", MODEL_AND_METHOD,
        "Rounds: draft blocks that were verified",
    );
    /// Draft tokens.
    DRAFT_TOKENS = tokens(
        "outrider_draft_tokens", MODEL_AND_METHOD,
        "Draft tokens verified; all nodes of a tree count",
    );
    /// Draft tokens accepted.
    ACCEPTED_TOKENS = tokens(
        "outrider_accepted_tokens", MODEL_AND_METHOD,
        "Draft tokens accepted",
    );
    /// Draft tokens not emitted.
    DISCARDED_TOKENS = tokens(
        "outrider_discarded_tokens", MODEL_AND_METHOD,
        "Draft tokens drafted and never emitted",
    );
    /// Draft blocks that reached a position.
    POSITION_DRAFTED = counter(
        "outrider_position_drafted", &["model", "position"],
        "Rounds whose draft block reached this position, from 1; those beyond 20 are counted together as 21+",
    );
    /// Draft blocks accepted up to a position.
    POSITION_ACCEPTED = counter(
        "outrider_position_accepted", &["model", "position"],
        "Rounds whose draft token at this position was accepted, from 1; those beyond 20 are counted together as 21+",
    );
    /// Accepted lengths.
    ACCEPTED_LENGTH = metric(
        Kind::Histogram(LENGTH_BOUNDS), "outrider_accepted_length_tokens", TOKENS, MODEL_AND_METHOD,
        "Draft tokens accepted in a round",
    );
    /// Forwards of the target model.
    TARGET_FORWARDS = counter(
        "outrider_target_forwards", MODEL_AND_METHOD,
        "Forwards of the target model: one a verdict, and one a token decoded alone",
    );
    /// Tokens without a drafter.
    FALLBACK_TOKENS = tokens(
        "outrider_fallback_tokens", MODEL,
        "Output tokens that the target decoded alone because the drafter was lost",
    );
    /// Positions that a deferral rule judged.
    JUDGED_POSITIONS = counter(
        "outrider_judged_positions", MODEL_AND_METHOD,
        "Emitted positions that a deferral rule judged",
    );
    /// How much of them was deferred.
    DEFERRED_POSITIONS = metric(
        Kind::Sum, "outrider_deferred_positions", "", MODEL_AND_METHOD,
        "Sum over those positions of how much of each was deferred to the target, 0 to 1",
    );
    /// Where the time of rounds goes.
    ROUND_DURATION = durations(
        "outrider_round_duration_seconds", &["model", "phase"],
        "Time of a round by phase: draft and verify as the coordinator waits for them; queue and forward within each and accept, the decision, as the peer says; wire for what is left",
    );

    // A coordinator: peers.

    /// Drafters done without.
    FALLBACKS = counter(
        "outrider_fallbacks", &["model", "reason"],
        "Times a request went on without its drafter, by reason: unreachable, timeout, overloaded, refused, malformed, context_full",
    );
    /// Requests sent again.
    RETRIES = counter(
        "outrider_retries", &["model", "peer"],
        "Requests to a peer sent again after a failure",
    );
    /// Moves.
    MIGRATIONS = counter(
        "outrider_migrations", MODEL,
        "Sessions moved to another replica of a drafter or verifier",
    );
    /// Peers known.
    PEERS = gauge(
        "outrider_peers", &["model", "role", "state"],
        "Addresses of drafters and verifiers known to the coordinator: alive, or left alone after failures (resting)",
    );

    // Drafters and verifiers.

    /// Rounds at a peer.
    PEER_ROUNDS = counter(
        "outrider_peer_rounds", &["role", "outcome"],
        "Rounds asked of a drafter or verifier, by outcome: answered, overloaded, late, refused, failed",
    );
    /// Sessions.
    SESSIONS = gauge(
        "outrider_sessions", &["role", "state"],
        "Sessions: open with a stream, or detached and waiting for their next one",
    );
    /// Most of them.
    SESSIONS_LIMIT = gauge(
        "outrider_sessions_limit", ROLE,
        "Most sessions, open and detached (max_sessions)",
    );
    /// Waiting for the engine.
    QUEUE_DURATION = durations(
        "outrider_queue_duration_seconds", ROLE,
        "Time of a round between its arrival at the engine and its first forward",
    );
    /// In forwards.
    FORWARD_DURATION = durations(
        "outrider_forward_duration_seconds", ROLE,
        "Time of a round in forwards of the model, of a token where the verifier decodes alone",
    );
    /// Batch sizes.
    ENGINE_BATCH = metric(
        Kind::Histogram(BATCH_BOUNDS), "outrider_engine_batch_sequences", "sequences", ROLE,
        "Sequences in the largest forward of a round",
    );
    /// Tasks in the batch.
    ENGINE_RUNNING = gauge(
        "outrider_engine_running", ROLE,
        "Tasks in the engine's batch",
    );
    /// Most of them.
    ENGINE_RUNNING_LIMIT = gauge(
        "outrider_engine_running_limit", ROLE,
        "Most tasks in the batch (max_batch)",
    );
    /// Tasks before it.
    ENGINE_QUEUE = gauge(
        "outrider_engine_queue", ROLE,
        "Tasks waiting for the engine's batch",
    );
    /// Most of them.
    ENGINE_QUEUE_LIMIT = gauge(
        "outrider_engine_queue_limit", ROLE,
        "Most tasks waiting (max_queue)",
    );
    /// Cached sequences.
    ENGINE_SEQUENCES = gauge(
        "outrider_engine_sequences", ROLE,
        "Sequences with keys and values in memory",
    );
    /// Forwards.
    ENGINE_FORWARDS = counter(
        "outrider_engine_forwards", ROLE,
        "Forwards of the model",
    );
    /// Tokens in them.
    FORWARDED_TOKENS = tokens(
        "outrider_engine_forwarded_tokens", ROLE,
        "Tokens forwarded",
    );
    /// Prompts in them.
    PREFILL_TOKENS = tokens(
        "outrider_prefill_tokens", ROLE,
        "Tokens forwarded ahead of those scored: prompts, and what a sequence had to catch up on",
    );
    /// Time in them.
    ENGINE_BUSY = metric(
        Kind::Counter, "outrider_engine_busy_seconds", SECONDS, ROLE,
        "Time the engine spent in forwards",
    );
    /// Memory used.
    KV_TOKENS = metric(
        Kind::Gauge, "outrider_kv_used_tokens", TOKENS, ROLE,
        "Tokens whose keys and values are in memory, in whole pages",
    );
    /// Most of it.
    KV_BUDGET_TOKENS = metric(
        Kind::Gauge, "outrider_kv_budget_tokens", TOKENS, ROLE,
        "Most of these tokens (kv_tokens)",
    );
    /// Sequences evicted.
    KV_EVICTIONS = counter(
        "outrider_kv_evictions", ROLE,
        "Sequences that were made to give their memory back",
    );
    /// What that cost.
    REPREFILLED_TOKENS = tokens(
        "outrider_reprefilled_tokens", ROLE,
        "Tokens forwarded again because their keys and values were gone",
    );
    /// What sharing saved.
    SHARED_TOKENS = tokens(
        "outrider_shared_prefix_tokens", ROLE,
        "Tokens not forwarded because another sequence of the tenant began with them",
    );
    /// Loading.
    MODEL_LOAD = metric(
        Kind::Gauge, "outrider_model_load_seconds", SECONDS, &["role", "model"],
        "Time it took to load a model",
    );

    // The process.

    /// The certificate's end.
    TLS_EXPIRY = metric(
        Kind::Gauge, "outrider_tls_certificate_expiry_time_seconds", SECONDS, &[],
        "When the certificate that the process shows, or one of its chain, expires, in seconds since 1970",
    );

    // And under the names of every Prometheus client:

    /// Processor time.
    PROCESS_CPU = metric(
        Kind::Counter, "process_cpu_seconds", SECONDS, &[],
        "Processor time of the process",
    );
    /// Memory.
    PROCESS_RESIDENT = metric(
        Kind::Gauge, "process_resident_memory_bytes", BYTES, &[],
        "Resident memory of the process",
    );
    /// Start.
    PROCESS_START = metric(
        Kind::Gauge, "process_start_time_seconds", SECONDS, &[],
        "When the process started, in seconds since 1970",
    );
    /// Threads.
    PROCESS_THREADS = gauge("process_threads", &[], "Threads of the process");
    /// Files.
    PROCESS_OPEN_FDS = gauge("process_open_fds", &[], "Files and sockets the process holds open");
    /// Most of them.
    PROCESS_MAX_FDS = gauge("process_max_fds", &[], "Most files and sockets it may hold open");
}
