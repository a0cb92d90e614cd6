//! The limits of a verifier, as `docs/limits.md` lists them.

use server::limits::{Limit, mebibytes, session_limits};
use server::transport::MAX_MESSAGE_BYTES;
use wire::open::{MAX_LEASE_MS, MAX_TENANT_BYTES};
use wire::round::MAX_TIMEOUT;

use crate::config::VerifierConfig;

/// What becomes of a message with a field out of range.
const BAD_FIELD: &str = "INVALID_ARGUMENT, the field named";

/// Every limit of a verifier but those of all services.
pub fn limits() -> Vec<Limit> {
    [of_work(), of_messages(), session_limits()].concat()
}

fn of_work() -> Vec<Limit> {
    let config = VerifierConfig::default();
    vec![
        Limit::set(
            "sessions, open or waiting for their next stream",
            config.max_sessions,
            "max_sessions",
            "RESOURCE_EXHAUSTED with RetryInfo",
        ),
        Limit::set(
            "rounds waiting for an engine",
            config.max_queue,
            "max_queue",
            "RESOURCE_EXHAUSTED with RetryInfo",
        ),
        Limit::set(
            "sequences kept in memory",
            config.max_cached_sequences,
            "max_cached_sequences",
            "the one used the longest time ago is computed again",
        ),
        Limit::set(
            "tokens kept in memory",
            "as `max_cached_sequences` says",
            "kv_tokens",
            "idle sequences are computed again, the youngest wait",
        ),
        Limit::set(
            "sequences in one forward",
            config.max_batch,
            "max_batch",
            "wait for the next",
        ),
        Limit::set(
            "tokens in one forward",
            config.max_batch_tokens,
            "max_batch_tokens",
            "wait for the next",
        ),
        Limit::set(
            "draft tokens of a round",
            config.max_draft_tokens,
            "max_draft_tokens",
            BAD_FIELD,
        ),
    ]
}

fn of_messages() -> Vec<Limit> {
    vec![
        Limit::fixed(
            "message of a client",
            mebibytes(MAX_MESSAGE_BYTES),
            "OUT_OF_RANGE",
        ),
        Limit::fixed("tokens of a prompt", "the model's context", BAD_FIELD),
        Limit::fixed(
            "tokens of prompt, output and draft together",
            "the model's context",
            "OUT_OF_RANGE",
        ),
        Limit::fixed(
            "lease of a session",
            format!("{MAX_LEASE_MS} ms"),
            "granted that much",
        ),
        Limit::fixed(
            "time of a round",
            format!("{} s", MAX_TIMEOUT.as_secs()),
            BAD_FIELD,
        ),
        Limit::fixed("bytes of a tenant's name", MAX_TENANT_BYTES, BAD_FIELD),
    ]
}
