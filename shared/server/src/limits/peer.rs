//! The limits of drafters and verifiers: the same, but for what is set.

use std::time::Duration;

use super::{Limit, mebibytes};
use crate::stream::{IDLE_TIMEOUT, OPEN_TIMEOUT, READ_TIMEOUT, REPLY_BUFFER};
use crate::transport::MAX_MESSAGE_BYTES;

/// What becomes of a message with a field out of range.
const BAD_FIELD: &str = "INVALID_ARGUMENT, the field named";

/// Bounds of a drafter or a verifier: the defaults of its configuration, and those of its messages.
#[derive(Clone, Copy, Debug)]
pub struct PeerBounds {
    /// Sessions.
    pub max_sessions: usize,
    /// Rounds that wait.
    pub max_queue: usize,
    /// Sequences in memory.
    pub max_cached_sequences: usize,
    /// Sequences in one forward.
    pub max_batch: usize,
    /// Tokens in one forward.
    pub max_batch_tokens: usize,
    /// Draft tokens of a round.
    pub max_draft_tokens: u32,
    /// Longest lease of a session, in ms.
    pub max_lease_ms: u32,
    /// Longest time of a round.
    pub max_round: Duration,
    /// Longest name of a tenant.
    pub max_tenant_bytes: usize,
}

/// Every limit of a drafter or a verifier but those of all services.
pub fn peer_limits(bounds: &PeerBounds) -> Vec<Limit> {
    [of_work(bounds), of_messages(bounds), of_streams()].concat()
}

fn of_work(bounds: &PeerBounds) -> Vec<Limit> {
    vec![
        Limit::set(
            "sessions, open or waiting for their next stream",
            bounds.max_sessions,
            "max_sessions",
            "RESOURCE_EXHAUSTED with RetryInfo",
        ),
        Limit::set(
            "rounds waiting for an engine",
            bounds.max_queue,
            "max_queue",
            "RESOURCE_EXHAUSTED with RetryInfo",
        ),
        Limit::set(
            "sequences kept in memory",
            bounds.max_cached_sequences,
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
            bounds.max_batch,
            "max_batch",
            "wait for the next",
        ),
        Limit::set(
            "tokens in one forward",
            bounds.max_batch_tokens,
            "max_batch_tokens",
            "wait for the next",
        ),
        Limit::set(
            "draft tokens of a round",
            bounds.max_draft_tokens,
            "max_draft_tokens",
            BAD_FIELD,
        ),
    ]
}

fn of_messages(bounds: &PeerBounds) -> Vec<Limit> {
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
            format!("{} ms", bounds.max_lease_ms),
            "granted that much",
        ),
        Limit::fixed(
            "time of a round",
            format!("{} s", bounds.max_round.as_secs()),
            BAD_FIELD,
        ),
        Limit::fixed(
            "bytes of a tenant's name",
            bounds.max_tenant_bytes,
            BAD_FIELD,
        ),
    ]
}

/// Of the streams that sessions are served on.
fn of_streams() -> Vec<Limit> {
    let seconds = |time: Duration| format!("{} s", time.as_secs());
    vec![
        Limit::fixed(
            "time to the first message of a stream",
            seconds(OPEN_TIMEOUT),
            "DEADLINE_EXCEEDED",
        ),
        Limit::fixed(
            "time between the rounds of a stream",
            seconds(IDLE_TIMEOUT),
            "the stream ends; the session waits for its lease",
        ),
        Limit::fixed(
            "replies held for a client that does not read",
            REPLY_BUFFER,
            "the round waits",
        ),
        Limit::fixed(
            "time a round waits for such a client",
            seconds(READ_TIMEOUT),
            "DEADLINE_EXCEEDED; the session waits for its lease",
        ),
    ]
}
