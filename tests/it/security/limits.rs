//! The table of limits says what the code does.

use std::fmt::Display;
use std::time::Duration;

use serde_json::{Value, json};
use server::transport::{
    KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, MAX_HEADER_BYTES, MAX_MESSAGE_BYTES,
};
use server::{auth, reflection};
use speculation::noise::Noise;
use wire::{bounds, open, proposal, round, sampling};

const TABLE: &str = include_str!("../../../docs/reference/limits.md");

/// What bounds something.
enum Bound {
    /// The setting of this key, below the section; the table has its default.
    Key(&'static str),
    /// Nothing that can be set.
    BuiltIn(String),
}

/// What is bounded, and by what.
type Row = (&'static str, Bound);

fn set(what: &'static str, key: &'static str) -> Row {
    (what, Bound::Key(key))
}

fn built_in(what: &'static str, bound: impl Display) -> Row {
    (what, Bound::BuiltIn(bound.to_string()))
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs())
}

fn mebibytes(bytes: usize) -> String {
    format!("{} MiB", bytes >> 20)
}

fn of_every_service() -> Vec<Row> {
    let (ping, answer) = (seconds(KEEPALIVE_INTERVAL), seconds(KEEPALIVE_TIMEOUT));
    let (least, most) = (auth::MIN_TOKEN_CHARS, auth::MAX_TOKEN_CHARS);
    let of_one =
        "bytes of such requests that are held for one connection, until their service has them";
    vec![
        set("open connections", "server.max_connections"),
        built_in(
            "connections that have not begun to speak HTTP/2",
            server::MAX_OPENING,
        ),
        built_in(
            "time to the HTTP/2 preface, a TLS handshake included",
            seconds(server::OPENING_TIMEOUT),
        ),
        built_in(
            "silence of a connection before a ping, and the wait for its answer",
            format!("{ping} + {answer}"),
        ),
        set(
            "streams of one connection",
            "server.max_streams_per_connection",
        ),
        built_in(
            "metadata of a request",
            format!("{} KiB", MAX_HEADER_BYTES >> 10),
        ),
        set(
            "time for a request of one message to come whole",
            "server.receive_timeout_ms",
        ),
        set(of_one, "server.max_receiving_bytes_per_connection"),
        set(
            "bytes of such requests that are held for all connections",
            "server.max_receiving_bytes",
        ),
        built_in(
            "request of a client to reflection",
            format!("{} KiB", reflection::MAX_REQUEST_BYTES >> 10),
        ),
        built_in("characters of a token", format!("{least} to {most}")),
        set(
            "time of open streams after the order to stop",
            "server.drain_grace_ms",
        ),
    ]
}

fn of_coordinators() -> Vec<Row> {
    use coordinator::limits::{
        ANSWER_BUFFER, ANSWER_BUFFER_BYTES, MAX_BYTES_PER_TOKEN, MAX_DRAFT_LEN, MAX_NAME_BYTES,
        MAX_REQUEST_BYTES, MAX_STOP_BYTES,
    };
    let of_text = "bytes of a text, before it is tokenised, for each token of the context";
    vec![
        set("requests under way", "max_requests"),
        set(
            "time of a request, and the most it may ask for",
            "request_timeout_ms",
        ),
        built_in(
            "parts of an answer held for a client that does not read",
            ANSWER_BUFFER,
        ),
        built_in(
            "bytes of them; a single part that is larger goes alone",
            mebibytes(ANSWER_BUFFER_BYTES),
        ),
        set(
            "bytes of distributions that all requests hold",
            "max_distribution_bytes",
        ),
        built_in("message of a client", mebibytes(MAX_REQUEST_BYTES)),
        built_in(
            "tokens of prompt and output together",
            "the verifier's context",
        ),
        built_in(of_text, MAX_BYTES_PER_TOKEN),
        built_in("turns of a conversation", bounds::MAX_MESSAGES),
        built_in(
            "bytes of the name of a model, a method, a rule or a role",
            MAX_NAME_BYTES,
        ),
        built_in("stop strings", bounds::MAX_STOPS),
        built_in("bytes of a stop string", MAX_STOP_BYTES),
        built_in("stop tokens", bounds::MAX_STOP_TOKENS),
        built_in("entries of `logit_bias`", sampling::MAX_LOGIT_BIAS),
        built_in("entries of `banned_token_ids`", sampling::MAX_BANNED),
        built_in("entries of `allowed_token_ids`", sampling::MAX_ALLOWED),
        built_in("largest `choice`", Noise::MAX_CHOICE),
        built_in("draft tokens of a round", MAX_DRAFT_LEN),
        built_in("tokens of a sparse proposal", proposal::MAX_SPARSE),
        built_in("laws of one block, in bytes", mebibytes(MAX_MESSAGE_BYTES)),
        built_in("bytes of a tenant's name", open::MAX_TENANT_BYTES),
        set(
            "time to connect to a peer, a TLS handshake included",
            "channel.connect_timeout_ms",
        ),
        set("time of a peer for one answer", "round_timeout_ms"),
        set("time of a drafter for one draft", "draft_timeout_ms"),
        built_in("message of a peer", mebibytes(MAX_MESSAGE_BYTES)),
    ]
}

fn of_peers() -> Vec<Row> {
    vec![
        set(
            "sessions, open or waiting for their next stream",
            "max_sessions",
        ),
        set("rounds waiting for an engine", "engine.max_queue"),
        set("sequences kept in memory", "engine.max_cached_sequences"),
        set("tokens kept in memory", "engine.kv_tokens"),
        set("sequences in one forward", "engine.max_batch"),
        set("tokens in one forward", "engine.max_batch_tokens"),
        set("draft tokens of a round", "max_draft_tokens"),
        built_in("message of a client", mebibytes(MAX_MESSAGE_BYTES)),
        built_in("tokens of a prompt", "the model's context"),
        built_in(
            "tokens of prompt, output and draft together",
            "the model's context",
        ),
        built_in("lease of a session", format!("{} ms", open::MAX_LEASE_MS)),
        built_in("time of a round", seconds(round::MAX_TIMEOUT)),
        built_in("bytes of a tenant's name", open::MAX_TENANT_BYTES),
        built_in(
            "time to the first message of a stream",
            seconds(peer::OPEN_TIMEOUT),
        ),
        built_in(
            "time between the rounds of a stream",
            seconds(peer::IDLE_TIMEOUT),
        ),
        built_in(
            "replies held for a client that does not read",
            peer::REPLY_BUFFER,
        ),
        built_in(
            "time a round waits for such a client",
            seconds(peer::READ_TIMEOUT),
        ),
    ]
}

/// The first three columns under the heading `section`, without the head of the table.
fn rows(section: &str) -> Vec<[&'static str; 3]> {
    let after = TABLE.split_once(&format!("\n## {section}\n"));
    let (_, after) = after.unwrap_or_else(|| panic!("no section {section}"));
    let section = after.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with('|'));
    let cells = rows.skip(2).map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        std::array::from_fn(|_| cells.next().expect("a cell"))
    });
    cells.collect()
}

/// The default of `key`, as the table writes it.
fn default_of(key: &str, settings: &Value) -> String {
    let value = settings.pointer(&format!("/{}", key.replace('.', "/")));
    let number = value.and_then(Value::as_u64).expect(key);
    match key {
        "engine.kv_tokens" => {
            assert_eq!(number, 0, "{key}");
            "as `max_cached_sequences` says".to_owned()
        }
        "max_distribution_bytes" => mebibytes(number as usize),
        _ if key.ends_with("_ms") => format!("{number} ms"),
        _ => number.to_string(),
    }
}

#[test]
fn the_table_of_limits_is_what_the_services_are_built_with() {
    let drafter = json!(drafter::DrafterConfig::default());
    let verifier = json!(verifier::VerifierConfig::default());
    let coordinator = json!(coordinator::CoordinatorConfig::default());
    for (section, settings, expected) in [
        ("Every service", &coordinator, of_every_service()),
        ("Every service", &verifier, of_every_service()),
        ("Coordinator", &coordinator, of_coordinators()),
        ("Drafter and verifier", &drafter, of_peers()),
        ("Drafter and verifier", &verifier, of_peers()),
    ] {
        let rows = rows(section);
        let told: Vec<_> = rows.iter().map(|[what, _, _]| *what).collect();
        let bounded: Vec<_> = expected.iter().map(|(what, _)| *what).collect();
        assert_eq!(told, bounded, "docs/reference/limits.md, {section}");
        for ([what, bound, setting], (_, expected)) in rows.iter().zip(expected) {
            let (most, by) = match expected {
                Bound::Key(key) => (default_of(key, settings), format!("`{key}`")),
                Bound::BuiltIn(bound) => (bound, "built in".to_owned()),
            };
            assert_eq!((*bound, *setting), (&*most, &*by), "{section}: {what}");
        }
    }
}
