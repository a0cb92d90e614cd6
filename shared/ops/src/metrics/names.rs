//! Every metric a process can expose: kind, name, labels, and help, which is its documentation here. Dashboards
//! and alerts are checked against [`ALL`], and so is the table in `docs/reference/telemetry.md`.
//!
//! Labels are bounded: models are named as they are configured, methods as they are registered, tenants as in the file
//! of tokens, and all other values come from short lists. No session and nothing that a client wrote ever stands in one.

#![allow(clippy::doc_markdown, reason = "helps are plain text")]

use super::Metric;
use super::MetricKind::{Counter, Gauge, Histogram, Info};

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

/// Of gains: finest about 1, where drafting begins to pay.
const GAIN_BOUNDS: &[f64] = &[
    0.25, 0.5, 0.75, 0.9, 0.97, 1.0, 1.03, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0,
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

/// Declares the metrics, and [`ALL`] of them: a list written by hand would miss one some day.
macro_rules! metrics {
    ($($(#[doc = $help:literal])+ $constant:ident: $kind:expr, $name:literal, $labels:expr;)*) => {
        $(
            $(#[doc = $help])+
            pub static $constant: Metric = Metric {
                name: $name,
                kind: $kind,
                labels: $labels,
                help: concat!($($help),+).trim_ascii_start(),
            };
        )*

        /// Every metric there is.
        pub static ALL: &[&Metric] = &[$(&$constant),*];
    };
}

metrics! {
    /// The program's version
    BUILD: Info, "outrider_build", &["version"];
    /// 1 while a service of this process is loaded, warmed up and not draining, else 0
    READY: Gauge, "outrider_ready", &["service"];

    // A coordinator: requests.

    /// Requests that began, by method asked for and outcome: stop, length, tool_calls, cancelled, deadline,
    /// error
    REQUESTS: Counter, "outrider_requests", &["model", "method", "outcome"];
    /// Requests that never began, by reason: overloaded, invalid, unavailable, deadline, error
    REQUESTS_REFUSED: Counter, "outrider_requests_refused", &["reason"];
    /// Requests by the name of the token shown, unnamed without one, and outcome: stop, length, tool_calls, cancelled,
    /// deadline, error, refused
    TENANT_REQUESTS: Counter, "outrider_tenant_requests", &["tenant", "outcome"];
    /// Tokens by the name of the token shown, unnamed without one, and kind: prompt, output
    TENANT_TOKENS: Counter, "outrider_tenant_tokens", &["tenant", "kind"];
    /// Requests refused because coordinator.max_requests were under way; also among those refused as
    /// overloaded
    ADMISSION_REJECTS: Counter, "outrider_admission_rejects", &[];
    /// Requests whose client went away, by what they were waiting for: preparing, scoring,
    /// drafting, verifying, decoding
    CANCELLATIONS: Counter, "outrider_cancellations", &["stage"];
    /// Requests admitted and not yet over
    REQUESTS_RUNNING: Gauge, "outrider_requests_running", &[];
    /// Most requests admitted at a time (coordinator.max_requests)
    REQUESTS_LIMIT: Gauge, "outrider_requests_limit", &[];
    /// Requests whose output is not what their method promises: the drafter it depends on was lost,
    /// or peers of other numerics took over
    INEXACT_REQUESTS: Counter, "outrider_inexact_requests", MODEL;
    /// From a request's arrival to its last token (gen_ai.server.request.duration)
    REQUEST_DURATION: Histogram(GEN_AI_DURATION_BOUNDS),
        "gen_ai_server_request_duration_seconds", GEN_AI_WITH_ERROR;
    /// From a request's arrival to its first token, of successful requests
    /// (gen_ai.server.time_to_first_token)
    TIME_TO_FIRST_TOKEN: Histogram(GEN_AI_FIRST_TOKEN_BOUNDS),
        "gen_ai_server_time_to_first_token_seconds", GEN_AI;
    /// Mean time of each token after the first chunk, of successful requests
    /// (gen_ai.server.time_per_output_token)
    TIME_PER_OUTPUT_TOKEN: Histogram(GEN_AI_OUTPUT_TOKEN_BOUNDS),
        "gen_ai_server_time_per_output_token_seconds", GEN_AI;

    // A coordinator: tokens.

    /// Tokens of the prompts of requests that began
    PROMPT_TOKENS: Counter, "outrider_prompt_tokens", MODEL;
    /// Output tokens handed to clients
    EMITTED_TOKENS: Counter, "outrider_emitted_tokens", MODEL_AND_METHOD;
    /// Rounds: draft blocks that were verified
    ROUNDS: Counter, "outrider_rounds", MODEL_AND_METHOD;
    /// Draft tokens verified; all nodes of a tree count
    DRAFT_TOKENS: Counter, "outrider_draft_tokens", MODEL_AND_METHOD;
    /// Draft tokens accepted
    ACCEPTED_TOKENS: Counter, "outrider_accepted_tokens", MODEL_AND_METHOD;
    /// Draft tokens drafted and never emitted
    DISCARDED_TOKENS: Counter, "outrider_discarded_tokens", MODEL_AND_METHOD;
    /// Rounds whose draft block reached this position, from 1; those beyond 20 are counted together
    /// as 21+
    POSITION_DRAFTED: Counter, "outrider_position_drafted", &["model", "position"];
    /// Rounds whose draft token at this position was accepted, from 1; those beyond 20 are counted
    /// together as 21+
    POSITION_ACCEPTED: Counter, "outrider_position_accepted", &["model", "position"];
    /// Draft tokens accepted in a round
    ACCEPTED_LENGTH: Histogram(LENGTH_BOUNDS), "outrider_accepted_length_tokens", MODEL_AND_METHOD;
    /// Forwards of the target model: one a verdict, and one a token decoded alone
    TARGET_FORWARDS: Counter, "outrider_target_forwards", MODEL_AND_METHOD;
    /// Output tokens that the target decoded alone because the drafter was lost
    FALLBACK_TOKENS: Counter, "outrider_fallback_tokens", MODEL;
    /// Output tokens that the target decoded alone because drafting did not pay (draft length auto)
    RESTED_TOKENS: Counter, "outrider_rested_tokens", MODEL;
    /// Draft tokens of streams by source and what became of them: proposed, accepted
    STREAMED_DRAFTS: Counter, "outrider_streamed_drafts", &["model", "source", "outcome"];
    /// Draft tokens of streams that had no row: unpaid (not worth it, or no room), stale, room (of the tree), malformed
    UNSCORED_DRAFTS: Counter, "outrider_unscored_drafts", &["model", "why"];
    /// Decisions on the length of a round with draft length auto, by why: unknown, pays, tries, compares, rests
    LENGTH_DECISIONS: Counter, "outrider_length_decisions", &["model", "why"];
    /// Predicted throughput of the best draft length over that of the target alone, others' time included, of each
    /// decision
    PREDICTED_GAIN: Histogram(GAIN_BOUNDS), "outrider_predicted_gain", MODEL;
    /// Measured throughput of a request's rounds with drafts over that of the target alone at the same load
    MEASURED_GAIN: Histogram(GAIN_BOUNDS), "outrider_measured_gain", MODEL;
    /// Emitted positions that a deferral rule judged
    JUDGED_POSITIONS: Counter, "outrider_judged_positions", MODEL_AND_METHOD;
    /// Sum over those positions of how much of each was deferred to the target, 0 to 1
    DEFERRED_POSITIONS: Counter, "outrider_deferred_positions", MODEL_AND_METHOD;
    /// Time of a round by phase: draft and verify as the coordinator waits for them; queue and
    /// forward within each and accept, the decision, as the peer says; wire for what is left
    ROUND_DURATION: Histogram(ROUND_BOUNDS), "outrider_round_duration_seconds", &["model", "phase"];

    // A coordinator: peers.

    /// Times a request went on without its drafter, by reason: unreachable, timeout, overloaded,
    /// refused, malformed, context_full
    FALLBACKS: Counter, "outrider_fallbacks", &["model", "reason"];
    /// Requests to a peer sent again after a failure
    RETRIES: Counter, "outrider_retries", &["model", "peer"];
    /// Sessions moved to another replica of a drafter or verifier
    MIGRATIONS: Counter, "outrider_migrations", MODEL;
    /// Addresses of drafters and verifiers known to the coordinator: alive, left alone after
    /// failures (resting), or not used (misfit): drafters whose model does not fit the target's, and verifiers
    /// of other weights than most have
    PEERS: Gauge, "outrider_peers", &["model", "role", "state"];
    /// Speed with a draft model over that of the target alone, as requests measured it last; below 1 its drafts do not pay
    DRAFT_MODEL_GAIN: Gauge, "outrider_draft_model_gain", &["model", "draft_model"];

    // Drafters and verifiers.

    /// Rounds asked of a drafter or verifier, by outcome: answered, overloaded, late, refused, failed
    PEER_ROUNDS: Counter, "outrider_peer_rounds", &["role", "outcome"];
    /// Sessions: open with a stream, or detached and waiting for their next one
    SESSIONS: Gauge, "outrider_sessions", &["role", "state"];
    /// Most sessions, open and detached (max_sessions)
    SESSIONS_LIMIT: Gauge, "outrider_sessions_limit", ROLE;
    /// Time of a round between its arrival at the engine and its first forward
    QUEUE_DURATION: Histogram(ROUND_BOUNDS), "outrider_queue_duration_seconds", ROLE;
    /// Time of a round in forwards of the model; of each forward where it decodes or drafts ahead
    FORWARD_DURATION: Histogram(ROUND_BOUNDS), "outrider_forward_duration_seconds", ROLE;
    /// Sequences in the largest forward of a round
    ENGINE_BATCH: Histogram(BATCH_BOUNDS), "outrider_engine_batch_sequences", ROLE;
    /// Tasks in the engine's batch
    ENGINE_RUNNING: Gauge, "outrider_engine_running", ROLE;
    /// Most tasks in the batch (max_batch)
    ENGINE_RUNNING_LIMIT: Gauge, "outrider_engine_running_limit", ROLE;
    /// Tasks waiting for the engine's batch
    ENGINE_QUEUE: Gauge, "outrider_engine_queue", ROLE;
    /// Most tasks waiting (max_queue)
    ENGINE_QUEUE_LIMIT: Gauge, "outrider_engine_queue_limit", ROLE;
    /// Sequences with keys and values in memory
    ENGINE_SEQUENCES: Gauge, "outrider_engine_sequences", ROLE;
    /// Forwards of the model
    ENGINE_FORWARDS: Counter, "outrider_engine_forwards", ROLE;
    /// Tokens forwarded
    FORWARDED_TOKENS: Counter, "outrider_engine_forwarded_tokens", ROLE;
    /// Tokens forwarded ahead of those scored: prompts, and what a sequence had to catch up on
    PREFILL_TOKENS: Counter, "outrider_prefill_tokens", ROLE;
    /// Time the engine spent in forwards
    ENGINE_BUSY: Counter, "outrider_engine_busy_seconds", ROLE;
    /// What one more row adds to a forward, as measured lately under the load there was
    ENGINE_ROW: Gauge, "outrider_engine_row_seconds", ROLE;
    /// Tokens whose keys and values are in memory, in whole pages
    KV_TOKENS: Gauge, "outrider_kv_used_tokens", ROLE;
    /// Most of these tokens (kv_tokens)
    KV_BUDGET_TOKENS: Gauge, "outrider_kv_budget_tokens", ROLE;
    /// Sequences that were made to give their memory back
    KV_EVICTIONS: Counter, "outrider_kv_evictions", ROLE;
    /// Tokens forwarded again because their keys and values were gone
    REPREFILLED_TOKENS: Counter, "outrider_reprefilled_tokens", ROLE;
    /// Tokens not forwarded because another sequence of the tenant began with them
    SHARED_TOKENS: Counter, "outrider_shared_prefix_tokens", ROLE;
    /// Time it took to load a model
    MODEL_LOAD: Gauge, "outrider_model_load_seconds", &["role", "model"];

    // The process.

    /// When the certificate that the process shows, or one of its chain, expires, in seconds since
    /// 1970
    TLS_EXPIRY: Gauge, "outrider_tls_certificate_expiry_time_seconds", &[];

    // And under the names of every Prometheus client:

    /// Processor time of the process
    PROCESS_CPU: Counter, "process_cpu_seconds", &[];
    /// Resident memory of the process
    PROCESS_RESIDENT: Gauge, "process_resident_memory_bytes", &[];
    /// When the process started, in seconds since 1970
    PROCESS_START: Gauge, "process_start_time_seconds", &[];
    /// Threads of the process
    PROCESS_THREADS: Gauge, "process_threads", &[];
    /// Files and sockets the process holds open
    PROCESS_OPEN_FDS: Gauge, "process_open_fds", &[];
    /// Most files and sockets it may hold open
    PROCESS_MAX_FDS: Gauge, "process_max_fds", &[];
}
