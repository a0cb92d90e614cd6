//! The limits of a coordinator, as `docs/reference/limits.md` lists them.

use std::fmt::Display;

use server::limits::{Limit, mebibytes};
use server::transport::MAX_MESSAGE_BYTES;
use speculation::noise::Noise;
use wire::bounds::{MAX_MESSAGES, MAX_STOP_TOKENS, MAX_STOPS};
use wire::open::MAX_TENANT_BYTES;
use wire::proposal::MAX_SPARSE;
use wire::sampling::{MAX_ALLOWED, MAX_BANNED, MAX_LOGIT_BIAS};

use crate::config::{CoordinatorConfig, MAX_DRAFT_LEN};
use crate::driver::{ANSWER_BUFFER, ANSWER_BUFFER_BYTES};
use crate::request::limits::{MAX_BYTES_PER_TOKEN, MAX_NAME_BYTES, MAX_STOP_BYTES};
use crate::service::MAX_REQUEST_BYTES;

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
    let limits: [(&'static str, &dyn Display); 15] = [
        (
            "tokens of prompt and output together",
            &"the verifier's context",
        ),
        (
            "bytes of a text, before it is tokenised, for each token of the context",
            &MAX_BYTES_PER_TOKEN,
        ),
        ("turns of a conversation", &MAX_MESSAGES),
        (
            "bytes of the name of a model, a method, a rule or a role",
            &MAX_NAME_BYTES,
        ),
        ("stop strings", &MAX_STOPS),
        ("bytes of a stop string", &MAX_STOP_BYTES),
        ("stop tokens", &MAX_STOP_TOKENS),
        ("entries of `logit_bias`", &MAX_LOGIT_BIAS),
        ("entries of `banned_token_ids`", &MAX_BANNED),
        ("entries of `allowed_token_ids`", &MAX_ALLOWED),
        ("largest `choice`", &Noise::MAX_CHOICE),
        ("draft tokens of a round", &MAX_DRAFT_LEN),
        ("tokens of a sparse proposal", &MAX_SPARSE),
        ("laws of one block, in bytes", &mebibytes(MAX_MESSAGE_BYTES)),
        ("bytes of a tenant's name", &MAX_TENANT_BYTES),
    ];
    let bad_field = "INVALID_ARGUMENT, the field named";
    limits
        .map(|(what, most)| Limit::fixed(what, most, bad_field))
        .to_vec()
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
