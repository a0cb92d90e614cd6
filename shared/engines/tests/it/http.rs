//! The connection: bounds, waits, and what it does not do.

use std::io::Write;
use std::time::{Duration, Instant};

use engines::{
    ConnectionSettings, EngineConnection, ScoreRequest, ScoredSequence, ScoringEngine,
    ScoringError, Sglang,
};

use crate::model::MODEL;
use crate::sglang::answer;
use crate::stub::{Response, Stub, soon};

fn score(connection: EngineConnection, deadline: Instant) -> Result<(), ScoringError> {
    let nothing = [vec![], vec![]];
    let sequence = ScoredSequence {
        tokens: &[3, 1, 4],
        committed: 2,
        asked: &nothing,
        salt: "",
    };
    let scoring = ScoreRequest {
        sequences: &[sequence],
        top: 3,
    };
    let rows = Sglang::new(connection, MODEL, true).score(&scoring, deadline);
    rows.map(|rows| assert_eq!(rows[0].rows.len(), 2))
}

fn score_of(stub: &Stub) -> Result<(), ScoringError> {
    score(stub.connection(), soon())
}

#[test]
fn an_engine_that_is_busy_is_asked_again() {
    let stub = Stub::new(|before, request| match before {
        0 => Response::status(429, &["retry-after: 0"]),
        1 => Response::status(503, &[]),
        _ => Response::json(&answer(request)),
    });
    score_of(&stub).expect("rows");
    assert_eq!(stub.requests().len(), 3);
}

#[test]
fn it_is_not_asked_beyond_the_deadline() {
    let stub = Stub::new(|_, _| Response::status(503, &["retry-after: 60"]));
    let begun = Instant::now();
    let error = score_of(&stub).expect_err("busy");
    assert!(
        matches!(
            error,
            ScoringError::Busy {
                status: 503,
                tries: 1
            }
        ),
        "{error}"
    );
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn an_answer_that_does_not_come_is_not_waited_for() {
    let stub = Stub::new(|_, request| Response {
        after: Duration::from_secs(30),
        ..Response::json(&answer(request))
    });
    let begun = Instant::now();
    let deadline = begun + Duration::from_millis(300);
    let error = score(stub.connection(), deadline).expect_err("late");
    assert!(matches!(error, ScoringError::Late(_)), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    let error = score(stub.connection(), Instant::now()).expect_err("late");
    assert!(matches!(error, ScoringError::Late(_)), "{error}");
}

#[test]
fn an_answer_is_bounded_in_bytes() {
    let stub = Stub::new(|_, _| Response::bytes(vec![b' '; 4 << 20]));
    let error = score_of(&stub).expect_err("long");
    assert!(matches!(error, ScoringError::TooLong(_)), "{error}");
}

#[test]
fn no_redirect_is_followed() {
    let target = Stub::new(|_, request| Response::json(&answer(request)));
    let location = format!("location: {}/generate", target.url);
    for status in [301, 302, 307, 308] {
        let location = location.clone();
        let stub = Stub::new(move |_, _| Response::status(status, &[&location]));
        let error = score_of(&stub).expect_err("a redirect");
        assert!(
            matches!(error, ScoringError::Status(found) if found == status),
            "{error}"
        );
    }
    assert!(target.requests().is_empty());
}

/// In a process of its own, whose environment says that there is one.
#[test]
fn a_proxy_of_the_environment_is_not_used() {
    const TEST: &str = "http::an_engine_that_is_busy_is_asked_again";
    let mut command = std::process::Command::new(std::env::current_exe().expect("this test"));
    for name in ["ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"] {
        command
            .env(name, "http://127.0.0.1:1")
            .env(name.to_lowercase(), "http://127.0.0.1:1");
    }
    let output = command.args(["--exact", TEST]).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains("1 passed"),
        "{told}"
    );
}

/// Bodies may hold the prompt.
#[test]
fn refusals_and_faults_tell_nothing_of_a_body() {
    for response in [
        Response::status(400, &[]),
        Response::status(500, &[]),
        Response::bytes("\"the prompt was 1, 2, 3\""),
        Response::bytes("the prompt was 1, 2, 3"),
        Response::bytes("{\"meta_info\": {\"prompt_tokens\": \"the prompt was"),
        Response::bytes("{\"meta_info\": {\"prompt_tokens\": \"the prompt was 1\"}}"),
    ] {
        let stub = Stub::new(move |_, _| response.clone());
        let error = score_of(&stub).expect_err("a refusal");
        let told = format!("{error} {error:?}");
        assert!(!told.contains("prompt was"), "{told}");
    }
}

#[test]
fn an_engine_that_is_not_there_is_unreachable() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address").port()
    };
    let settings = ConnectionSettings {
        url: format!("http://127.0.0.1:{port}"),
        ..Default::default()
    };
    let connection = EngineConnection::new(&settings).expect("a connection");
    let error = score(connection, soon()).expect_err("nobody");
    assert!(matches!(error, ScoringError::Unreachable(_)), "{error}");
}

#[test]
fn the_key_comes_from_a_file_and_goes_with_each_request() {
    let stub = Stub::new(|_, request| Response::json(&answer(request)));
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    writeln!(file, "s3cret").expect("written");
    let settings = ConnectionSettings {
        url: format!("{}/", stub.url),
        key_file: Some(file.path().to_owned()),
        ca_file: None,
    };
    score(
        EngineConnection::new(&settings).expect("a connection"),
        soon(),
    )
    .expect("rows");
    let head = &stub.requests()[0].head;
    assert!(
        head.contains(&"authorization: bearer s3cret".to_owned()),
        "{head:?}"
    );
    let connection = EngineConnection::new(&settings).expect("a connection");
    assert!(!format!("{connection:?}").contains("s3cret"));
}

#[test]
fn a_key_in_clear_is_noticed() {
    let shows = |url: &str, key_file: Option<&str>| {
        let settings = ConnectionSettings {
            url: url.to_owned(),
            key_file: key_file.map(Into::into),
            ca_file: None,
        };
        settings.shows_key()
    };
    for (url, is_shown) in [
        ("http://engine:30000", true),
        ("http://10.0.0.1", true),
        ("https://engine:30000", false),
        ("http://localhost:30000", false),
        ("http://127.0.0.1:30000", false),
        ("http://[::1]:30000", false),
    ] {
        assert_eq!(shows(url, Some("key")), is_shown, "{url}");
        assert!(!shows(url, None), "{url}");
    }
}

#[test]
fn settings_that_make_no_connection_are_named() {
    let mut empty = tempfile::NamedTempFile::new().expect("a file");
    writeln!(empty, " ").expect("written");
    let of_url = |url: &str| ConnectionSettings {
        url: url.to_owned(),
        ..Default::default()
    };
    let missing = Some("/nowhere".into());
    let file = Some(empty.path().to_owned());
    for (settings, field) in [
        (of_url("engine:80 80"), "url: "),
        (of_url("ftp://engine"), "url: "),
        (of_url("http://user:key@engine"), "url: "),
        (of_url("http://engine?key=1"), "url: "),
        (
            ConnectionSettings {
                key_file: missing.clone(),
                ..of_url("http://engine")
            },
            "key_file: /nowhere",
        ),
        (
            ConnectionSettings {
                key_file: file.clone(),
                ..of_url("http://engine")
            },
            "key_file",
        ),
        (
            ConnectionSettings {
                ca_file: missing,
                ..of_url("http://engine")
            },
            "ca_file: /nowhere",
        ),
        (
            ConnectionSettings {
                ca_file: file,
                ..of_url("http://engine")
            },
            "ca_file: has no certificate",
        ),
    ] {
        let error = EngineConnection::new(&settings)
            .expect_err(field)
            .to_string();
        assert!(error.contains(field), "{error}: {field}");
    }
}
