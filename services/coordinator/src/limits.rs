//! The limits of a coordinator, as `docs/limits.md` lists them.

use server::limits::{Limit, mebibytes};
use server::transport::MAX_MESSAGE_BYTES;
use speculation::noise::Noise;
use wire::open::MAX_TENANT_BYTES;
use wire::proposal::MAX_SPARSE;
use wire::sampling::{MAX_ALLOWED, MAX_BANNED, MAX_LOGIT_BIAS};

use crate::config::{CoordinatorConfig, MAX_DRAFT_LEN};
use crate::driver::{ANSWER_BUFFER, ANSWER_BUFFER_BYTES};
use crate::request::limits::{
    MAX_BYTES_PER_TOKEN, MAX_MESSAGES, MAX_NAME_BYTES, MAX_STOP_BYTES, MAX_STOP_TOKENS, MAX_STOPS,
};
use crate::service::MAX_REQUEST_BYTES;

/// What becomes of a request with a field out of range.
const BAD_FIELD: &str = "INVALID_ARGUMENT, the field named";

/// Every limit of a coordinator but those of all services.
pub fn limits() -> Vec<Limit> {
    [of_work(), of_requests(), of_peers()].concat()
}

fn of_work() -> Vec<Limit> {
    let config = CoordinatorConfig::default();
    let milliseconds = |ms: u64| format!("{ms} ms");
    vec![
        Limit::set(
            "requests under way",
            config.max_requests,
            "max_requests",
            "RESOURCE_EXHAUSTED with RetryInfo",
        ),
        Limit::set(
            "time of a request, and the most it may ask for",
            milliseconds(config.request_timeout_ms.get()),
            "request_timeout_ms",
            "finished with DEADLINE_EXCEEDED; INVALID_ARGUMENT if asked for",
        ),
        Limit::fixed(
            "parts of an answer held for a client that does not read",
            ANSWER_BUFFER,
            "the request waits, until its time is over",
        ),
        Limit::fixed(
            "bytes of them; a single part that is larger goes alone",
            mebibytes(ANSWER_BUFFER_BYTES),
            "the request waits, until its time is over",
        ),
        Limit::set(
            "bytes of distributions that all requests hold",
            mebibytes(config.max_distribution_bytes.get() as usize),
            "max_distribution_bytes",
            "RESOURCE_EXHAUSTED with RetryInfo",
        ),
        Limit::fixed(
            "message of a client",
            mebibytes(MAX_REQUEST_BYTES),
            "OUT_OF_RANGE",
        ),
    ]
}

fn of_requests() -> Vec<Limit> {
    vec![
        Limit::fixed(
            "tokens of prompt and output together",
            "the verifier's context",
            BAD_FIELD,
        ),
        Limit::fixed(
            "bytes of a text, before it is tokenised, for each token of the context",
            MAX_BYTES_PER_TOKEN,
            BAD_FIELD,
        ),
        Limit::fixed("turns of a conversation", MAX_MESSAGES, BAD_FIELD),
        Limit::fixed(
            "bytes of the name of a model, a method, a rule or a role",
            MAX_NAME_BYTES,
            BAD_FIELD,
        ),
        Limit::fixed("stop strings", MAX_STOPS, BAD_FIELD),
        Limit::fixed("bytes of a stop string", MAX_STOP_BYTES, BAD_FIELD),
        Limit::fixed("stop tokens", MAX_STOP_TOKENS, BAD_FIELD),
        Limit::fixed("entries of `logit_bias`", MAX_LOGIT_BIAS, BAD_FIELD),
        Limit::fixed("entries of `banned_token_ids`", MAX_BANNED, BAD_FIELD),
        Limit::fixed("entries of `allowed_token_ids`", MAX_ALLOWED, BAD_FIELD),
        Limit::fixed("largest `choice`", Noise::MAX_CHOICE, BAD_FIELD),
        Limit::fixed("draft tokens of a round", MAX_DRAFT_LEN, BAD_FIELD),
        Limit::fixed("tokens of a sparse proposal", MAX_SPARSE, BAD_FIELD),
        Limit::fixed(
            "laws of one block, in bytes",
            mebibytes(MAX_MESSAGE_BYTES),
            BAD_FIELD,
        ),
        Limit::fixed("bytes of a tenant's name", MAX_TENANT_BYTES, BAD_FIELD),
    ]
}

fn of_peers() -> Vec<Limit> {
    let config = CoordinatorConfig::default();
    let milliseconds = |ms: u64| format!("{ms} ms");
    vec![
        Limit::set(
            "time to connect to a peer, a TLS handshake included",
            milliseconds(config.channel.connect_timeout_ms),
            "channel.connect_timeout_ms",
            "the peer is left alone for a while",
        ),
        Limit::set(
            "time of a peer for one answer",
            milliseconds(config.round_timeout_ms.get()),
            "round_timeout_ms",
            "asked again",
        ),
        Limit::set(
            "time of a drafter for one draft",
            milliseconds(config.draft_timeout_ms.get()),
            "draft_timeout_ms",
            "asked again, then the target goes on alone",
        ),
        Limit::fixed(
            "message of a peer",
            mebibytes(MAX_MESSAGE_BYTES),
            "the round fails",
        ),
    ]
}
