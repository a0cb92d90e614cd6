//! The table of limits says what the code does.

use auth::{MAX_PAUSE, MAX_PUT_OFF, MAX_TOKEN_CHARS, MIN_TOKEN_CHARS};
use bounds::{
    MAX_CALLS, MAX_MESSAGES, MAX_SETTINGS, MAX_STOP_TOKENS, MAX_STOPS, MAX_TOOLS, MAX_TOOLS_BYTES,
};
use coordinator::limits::{
    ANSWER_BUFFER, ANSWER_BUFFER_BYTES, MAX_AHEAD_BYTES, MAX_BYTES_PER_TOKEN, MAX_DRAFT_LEN,
    MAX_FIELDS, MAX_LONG_BYTES, MAX_NAME_BYTES, MAX_PARTS, MAX_PREDICTION_BYTES,
    MAX_RENDERED_BYTES, MAX_REQUEST_BYTES, MAX_SHORT_BYTES, MAX_SHORT_TEXT, MAX_STOP_BYTES,
    MAX_TEMPLATE_BYTES, MAX_TOKENIZED, MAX_TOKENIZER_BYTES, MOST_OUTPUTS, PIECE_FACTOR,
};
use drafter::{BYTES_A_SECOND, MOST_LEVELS};
use net::http::{MAX_HTTP1_HEADER_BYTES, WINDOW_BYTES};
use net::receiving::{
    DISCARD_TIMEOUT, MAX_DISCARDED_BYTES, MAX_DISCARDED_CHUNKS, MAX_SMALL_BYTES,
    SMALL_REQUEST_BYTES,
};
use net::{
    CONNECTION_WINDOW_BYTES, KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, MAX_HEADER_BYTES,
    MAX_MESSAGE_BYTES,
};
use net::{MAX_OPENING, OPENING_TIMEOUT, auth, bounded};
use open::{MAX_LEASE_MS, MAX_TENANT_BYTES};
use ops::{admin, open_files, reflection};
use peer::{GRANT_TIMEOUT, OPEN_TIMEOUT, READ_TIMEOUT, REPLY_BUFFER};
use proposal::MAX_SPARSE;
use sampling::{MAX_ALLOWED, MAX_BANNED, MAX_LOGIT_BIAS};
use serde_json::{Value, json};
use speculation::noise::Noise;
use speculation::pending::{MOST_BEHIND, MOST_PROPOSED, ROOM};
use wire::grammar::MAX_GRAMMAR_BYTES;
use wire::status::MAX_RETRY_AFTER;
use wire::{bounds, open, proposal, round, sampling};

const TABLE: &str = include_str!("../../../docs/reference/limits.md");

/// The tables, a row a line: what is bounded, then the key of the setting, whose default is the bound, or the bound
/// that is built in. Here that of the port of gRPC and that of the port of HTTP.
fn of_every_service() -> String {
    let opening = OPENING_TIMEOUT.as_secs();
    let (silence, answer) = (KEEPALIVE_INTERVAL.as_secs(), KEEPALIVE_TIMEOUT.as_secs());
    let (header, requested) = (MAX_HEADER_BYTES >> 10, reflection::MAX_REQUEST_BYTES >> 10);
    let (window, http_window) = (CONNECTION_WINDOW_BYTES >> 20, WINDOW_BYTES >> 20);
    let (http1, discarded) = (MAX_HTTP1_HEADER_BYTES >> 10, MAX_DISCARDED_BYTES >> 20);
    let (discarding, pause) = (DISCARD_TIMEOUT.as_secs(), MAX_PAUSE.as_secs());
    let both = |bound: String| format!("{bound} | {bound}");
    [
        "open connections | `server.max_connections`".to_owned(),
        format!(
            "connections that have not begun to speak | {}",
            both(MAX_OPENING.to_string())
        ),
        format!(
            "time to the first bytes, over HTTP/2 to its preface, a TLS handshake included | {}",
            both(format!("{opening} s"))
        ),
        format!("time from then to the end of the first headers of HTTP/1 | none | {opening} s"),
        format!(
            "silence of a connection of HTTP/2 before a ping, and the wait for its answer | {}",
            both(format!("{silence} s + {answer} s"))
        ),
        "streams of one connection of HTTP/2 | `server.max_streams_per_connection`".to_owned(),
        "streams cancelled before they were looked at | `server.max_streams_per_connection`".to_owned(),
        format!(
            "metadata of a request, headers of HTTP/2 | {}",
            both(format!("{header} KiB"))
        ),
        format!("headers of HTTP/1 | none | {http1} KiB"),
        format!(
            "bytes that come on a connection of HTTP/2 before anyone reads them | {window} MiB | {http_window} MiB"
        ),
        "time for a request to come whole | `server.receive_timeout_ms`".to_owned(),
        "bytes of requests that are held for one connection, until their service has them | \
         `server.max_receiving_bytes_per_connection`"
            .to_owned(),
        "bytes of requests that are held for all connections | `server.max_receiving_bytes`".to_owned(),
        format!(
            "bytes of requests of at most {} KiB each that are held where large ones have taken all that | {}",
            SMALL_REQUEST_BYTES >> 10,
            both(format!("{} MiB", MAX_SMALL_BYTES >> 20))
        ),
        format!(
            "bytes of a refused request of HTTP/1 that are read on and thrown away, and how long | none | \
             {discarded} MiB, {discarding} s"
        ),
        format!(
            "such bytes of one that does not say how long it is | none | {} MiB",
            MAX_DISCARDED_CHUNKS >> 20
        ),
        format!(
            "time that the answer to a wrong token is put off, which doubles with each from one address | {}",
            both(format!("up to {pause} s"))
        ),
        format!("such answers at a time | {}", both(MAX_PUT_OFF.to_string())),
        format!("request of a client to reflection | {requested} KiB | none"),
        format!(
            "characters of a token | {}",
            both(format!("{MIN_TOKEN_CHARS} to {MAX_TOKEN_CHARS}"))
        ),
        "time of open streams after the order to stop | `server.drain_grace_ms`".to_owned(),
    ]
    .join("\n")
}

fn of_admin_ports() -> String {
    let [opening, header, answer] = [
        OPENING_TIMEOUT,
        admin::HEADER_TIMEOUT,
        admin::ANSWER_TIMEOUT,
    ]
    .map(|time| time.as_secs());
    let (silence, pong) = (KEEPALIVE_INTERVAL.as_secs(), KEEPALIVE_TIMEOUT.as_secs());
    let (connections, streams) = (admin::MAX_CONNECTIONS, admin::MAX_STREAMS);
    let (head, request) = (MAX_HEADER_BYTES >> 10, admin::MAX_REQUEST_BYTES >> 10);
    format!(
        "open connections | {connections}
time to the first request of a connection | {opening} s
time of a request's head over HTTP/1.1, and the pause before the next | {header} s
silence of a connection of HTTP/2 before a ping, and the wait for its answer | {silence} s + {pong} s
streams of one connection | {streams}
metadata of a request | {head} KiB
request of gRPC health | {request} KiB
time of an answer | {answer} s"
    )
}

fn of_commands() -> String {
    let (prompt, prompts) = (MAX_REQUEST_BYTES >> 20, bounded::MAX_LIST_BYTES >> 20);
    let settings = bounded::MAX_SETTINGS_BYTES >> 20;
    let prediction = MAX_PREDICTION_BYTES >> 10;
    format!(
        "prompt of `generate`, by `--prompt-file` | {prompt} MiB
prediction of `generate`, by `--prediction` | {prediction} KiB
line of `chat` from a pipe | {prompt} MiB
file of prompts for measuring | {prompts} MiB
configuration, certificates, keys or tokens | {settings} MiB"
    )
}

fn of_coordinators() -> String {
    let (buffer, message) = (ANSWER_BUFFER_BYTES >> 20, MAX_MESSAGE_BYTES >> 20);
    let (request, choice) = (MAX_REQUEST_BYTES >> 20, Noise::MAX_CHOICE);
    let (ahead, overloaded) = (MAX_AHEAD_BYTES >> 20, MAX_RETRY_AFTER.as_secs());
    let (rendered, most) = (MAX_RENDERED_BYTES >> 20, MAX_SHORT_TEXT >> 20);
    let (short, long) = (MAX_SHORT_BYTES >> 20, MAX_LONG_BYTES >> 20);
    let (tokenizer, template) = (MAX_TOKENIZER_BYTES >> 20, MAX_TEMPLATE_BYTES >> 20);
    format!(
        "requests under way | `max_requests`
requests under way that show one token | `max_requests_per_client`
output tokens of a request | `max_output_tokens`
time of a request, and the most it may ask for | `request_timeout_ms`
parts of an answer held for a client that does not read | {ANSWER_BUFFER}
bytes of them; a single part that is larger goes alone | {buffer} MiB
tokens of a verifier's answer, or log probabilities of a prompt, ahead of what such a client took | `decode_ahead`
the same of tokens with log probabilities | `decode_ahead_logprobs`
bytes of a peer's replies read and held meanwhile | {ahead} MiB
bytes of distributions that all requests hold | `max_distribution_bytes`
bytes of tokens that whole answers with log probabilities or token ids hold over HTTP | `max_answer_bytes`
fields of a JSON object | {MAX_FIELDS}
parts of the content of a turn | {MAX_PARTS}
time in which a client over HTTP asks for nothing, or takes nothing of its answers; over HTTP/1 the headers of a further \
request included | `http.idle_timeout_ms`
outputs of a request over HTTP, `n` for each prompt | {MOST_OUTPUTS}
time that an overloaded peer is believed to need | {overloaded} s
message of a client | {request} MiB
tokens of prompt and output together | the verifier's context
bytes of a text, before it is tokenised, for each token of the context | {MAX_BYTES_PER_TOKEN}
bytes of a prompt that the chat template makes of a conversation | {rendered} MiB
memory that tokenising texts takes, all together, of which each takes at most {most} MiB | {short} MiB
memory that tokenising longer texts takes, all together, {PIECE_FACTOR} bytes for each byte without a place to cut | {long} MiB
tokens that a call of `/tokenize` comes to, or one of `/detokenize` has, if the context is no longer | {MAX_TOKENIZED}
bytes of the text of `/detokenize` | {request} MiB
turns of a conversation | {MAX_MESSAGES}
calls in them | {MAX_CALLS}
tools | {MAX_TOOLS}
bytes of all tools | {MAX_TOOLS_BYTES}
further arguments of the chat template | {MAX_SETTINGS}
bytes of the name of a model, a method, a rule, a role or a speaker | {MAX_NAME_BYTES}
bytes of a prediction | {MAX_PREDICTION_BYTES}
stop strings | {MAX_STOPS}
bytes of a stop string | {MAX_STOP_BYTES}
stop tokens | {MAX_STOP_TOKENS}
bytes of a grammar | {MAX_GRAMMAR_BYTES}
entries of `logit_bias` | {MAX_LOGIT_BIAS}
entries of `banned_token_ids` | {MAX_BANNED}
entries of `allowed_token_ids` | {MAX_ALLOWED}
largest `choice` | {choice}
draft tokens of a round | {MAX_DRAFT_LEN}
tokens of a sparse proposal | {MAX_SPARSE}
distributions of one block, in bytes | {message} MiB
bytes of a tenant's name, of a `cache_salt` | {MAX_TENANT_BYTES}
time to connect to a peer, a TLS handshake included | `channel.connect_timeout_ms`
time of a peer for one answer | `round_timeout_ms`
time of a drafter for one draft | `draft_timeout_ms`
message of a peer | {message} MiB
bytes of a verifier's tokenizer | {tokenizer} MiB
bytes of its chat template | {template} MiB"
    )
}

fn of_peers() -> String {
    let [round, open, idle, grant, read] = [
        round::MAX_TIMEOUT,
        OPEN_TIMEOUT,
        peer::IDLE_TIMEOUT,
        GRANT_TIMEOUT,
        READ_TIMEOUT,
    ]
    .map(|time| time.as_secs());
    let (message, ahead) = (MAX_MESSAGE_BYTES >> 20, BYTES_A_SECOND >> 10);
    format!(
        "sessions, open or waiting for their next stream | `max_sessions`
rounds waiting for an engine | `engine.max_queue`
sequences kept in memory | `engine.max_cached_sequences`
tokens kept in memory | `engine.kv_tokens`
sequences in one forward | `engine.max_batch`
tokens in one forward | `engine.max_batch_tokens`
draft tokens of a round | `max_draft_tokens`
drafts in one forward while the target decodes, of all sequences | `engine.max_draft_rows`
drafts that wait for a forward, of one sequence | {ROOM}
drafts of one proposal, and roots that they grow on | {MOST_PROPOSED}
output tokens since the position that a proposal is counted from | {MOST_BEHIND}
levels drafted ahead | {MOST_LEVELS}
bytes of drafts made ahead, of one session in a second | {ahead} KiB
message of a client | {message} MiB
tokens of a prompt | the model's context
tokens of prompt, output and draft together | the model's context
lease of a session | {MAX_LEASE_MS} ms
time of a round | {round} s
bytes of a tenant's name | {MAX_TENANT_BYTES}
time to the first message of a stream | {open} s
time between the rounds of a stream | {idle} s
time a round waits to be granted more | {grant} s
replies held for a client that does not read | {REPLY_BUFFER}
time a round waits for such a client | {read} s"
    )
}

/// All columns but the last under the heading `section`, without the head of the table.
fn rows(section: &str) -> Vec<Vec<&'static str>> {
    let after = TABLE.split_once(&format!("\n## {section}\n"));
    let (_, after) = after.unwrap_or_else(|| panic!("no section {section}"));
    let section = after.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with('|'));
    let cells = rows.skip(2).map(|row| {
        let row = row.strip_prefix('|').and_then(|row| row.strip_suffix('|'));
        let mut cells: Vec<_> = row.expect(section).split('|').map(str::trim).collect();
        cells.pop().expect("a cell");
        cells
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
            "what free memory holds".to_owned()
        }
        "max_requests_per_client" => format!("{number} (no limit of its own)"),
        "max_output_tokens" => format!("{number} (what the context leaves)"),
        "max_distribution_bytes" | "max_answer_bytes" => format!("{} MiB", number >> 20),
        _ if key.ends_with("_ms") => format!("{number} ms"),
        _ => number.to_string(),
    }
}

#[test]
fn files_that_a_process_keeps_for_itself_are_as_many_as_is_said() {
    let kept = open_files::KEPT;
    let said = format!("keeps\n{kept} files for itself and the admin port");
    assert!(TABLE.contains(&said), "docs/reference/limits.md: {kept}");
}

#[test]
fn the_table_of_limits_is_what_the_services_are_built_with() {
    let drafter = json!(drafter::DrafterConfig::default());
    let verifier = json!(verifier::VerifierConfig::default());
    let coordinator = json!(coordinator::CoordinatorConfig::default());
    for (section, settings, expected) in [
        ("Every service", &coordinator, of_every_service()),
        ("Every service", &verifier, of_every_service()),
        ("Admin port", &coordinator, of_admin_ports()),
        ("Commands", &coordinator, of_commands()),
        ("Coordinator", &coordinator, of_coordinators()),
        ("Drafter and verifier", &drafter, of_peers()),
        ("Drafter and verifier", &verifier, of_peers()),
    ] {
        let ports = if section == "Every service" { 2 } else { 1 };
        let expected = expected.lines().map(|row| {
            let (what, bound) = row.split_once(" | ").expect("two cells");
            let key = bound
                .strip_prefix('`')
                .and_then(|key| key.strip_suffix('`'));
            let (bounds, setting) = match key {
                Some(key) => (vec![default_of(key, settings); ports], bound),
                None => (bound.split(" | ").map(str::to_owned).collect(), "-"),
            };
            [vec![what.to_owned()], bounds, vec![setting.to_owned()]].concat()
        });
        let expected: Vec<_> = expected.collect();
        assert_eq!(
            rows(section),
            expected,
            "docs/reference/limits.md, {section}"
        );
    }
}
