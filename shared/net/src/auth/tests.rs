use std::num::NonZeroU32;
use std::path::PathBuf;

use tonic::codegen::http::{Extensions, HeaderMap, HeaderValue};
use tonic::service::Interceptor;
use tonic::transport::server::TcpConnectInfo;
use tonic::{Code, Request};

use super::*;
use crate::tests::logged;

const FIRST: &str = "first-token-0123456789";
const SECOND: &str = "second-token-0123456789";

/// Returns a file of that text, in a folder that lives as long as the returned guard.
fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn coordinator(tokens: PathBuf) -> Result<Auth, FileError> {
    let config = AuthConfig {
        client_tokens_file: tokens,
        reload_seconds: 0,
        ..AuthConfig::default()
    };
    Auth::of_coordinator(&config)
}

fn headers(authorization: Option<&str>) -> HeaderMap {
    let value = authorization.map(|value| HeaderValue::from_str(value).unwrap());
    let shown = value.map(|value| ("authorization".parse().unwrap(), value));
    shown.into_iter().collect()
}

/// Returns who is let in with `authorization`, or the status of one who is not.
fn client(auth: &Auth, authorization: Option<&str>) -> Result<Option<TokenHolder>, tonic::Status> {
    let mut headers = headers(authorization);
    let checked = auth.guard().check(&mut headers, &Extensions::new());
    assert!(headers.is_empty(), "the token is taken");
    checked.map_err(|refusal| refusal.status)
}

/// Returns the tenant of a request that is let in, or the status of one that is not.
fn requested(auth: &Auth, authorization: Option<&str>) -> Result<Option<String>, tonic::Status> {
    let client = client(auth, authorization)?;
    Ok(client.and_then(|client| client.tenant.as_deref().map(str::to_owned)))
}

#[test]
fn the_log_tells_who_was_refused_and_nothing_of_what_was_shown() {
    let (_folder, path) = file(FIRST);
    let auth = coordinator(path).unwrap();
    let mut extensions = Extensions::new();
    extensions.insert(TcpConnectInfo {
        local_addr: None,
        remote_addr: Some(([192, 0, 2, 7], 4_321).into()),
    });
    let guard = auth.guard();
    let log = logged(|| {
        let mut headers = headers(Some(&format!("Bearer {SECOND}")));
        assert!(guard.check(&mut headers, &extensions).is_err());
    });
    for told in ["192.0.2.7:4321", "the token shown is not known"] {
        assert!(log.contains(told), "{log}");
    }
    assert!(!log.contains(SECOND), "{log}");
}

#[test]
fn every_token_of_the_file_is_let_in_under_its_name() {
    let text = format!("# those who may\n\n{FIRST}\r\n  acme   {SECOND}  \n");
    let (_folder, path) = file(&text);
    let auth = coordinator(path).unwrap();
    let tenant = requested(&auth, Some(&format!("Bearer {FIRST}"))).unwrap();
    assert_eq!(tenant, None);
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let tenant = requested(&auth, Some(&format!("{scheme} {SECOND}"))).unwrap();
        assert_eq!(tenant.as_deref(), Some("acme"));
    }
}

#[test]
fn a_token_may_have_a_limit_and_keeps_its_number_when_its_file_is_read_again() {
    let clients = |text: &str| {
        let (_folder, path) = file(text);
        let auth = coordinator(path).unwrap();
        [FIRST, SECOND].map(|token| {
            let client = client(&auth, Some(&format!("Bearer {token}")));
            client.unwrap().expect("a client")
        })
    };
    let [first, second] = clients(&format!(
        "{FIRST} requests=3\nacme {SECOND} tpm=900 requests=1 rpm=60\n"
    ));
    let rates = |client: &TokenHolder| {
        [client.rates.requests, client.rates.tokens].map(|it| it.map(NonZeroU32::get))
    };
    assert_eq!(rates(&first), [None, None]);
    assert_eq!(rates(&second), [Some(60), Some(900)]);
    let limits = [&first, &second].map(|client| client.max_requests.map(NonZeroU32::get));
    assert_eq!(limits, [Some(3), Some(1)]);
    assert_ne!(first.token, second.token);
    let again = clients(&format!("other {SECOND}\n{FIRST}\n"));
    assert_eq!(
        [again[0].token, again[1].token],
        [first.token, second.token]
    );
    assert_eq!(again[0].max_requests, None);
    for line in [
        format!("{FIRST} requests=0"),
        format!("{FIRST} requests=x"),
        format!("{FIRST} rpm=0"),
        format!("{FIRST} tpm=-1"),
        format!("{FIRST} tpm=1.5"),
        format!("{FIRST} tpm=9999999999"),
        format!("{FIRST} rpm=1 rpm=2"),
        "rpm=1".to_owned(),
        format!("a b {FIRST}"),
    ] {
        let (_folder, path) = file(&line);
        let refused = coordinator(path).expect_err("refused").to_string();
        assert!(
            refused.contains("line 1") && !refused.contains(FIRST),
            "{refused}"
        );
    }
}

#[test]
fn whoever_shows_no_token_or_another_is_told_so_and_not_what_was_shown() {
    let (_folder, path) = file(&format!("{FIRST}\nacme {SECOND}\n"));
    let auth = coordinator(path).unwrap();
    let shorter = &FIRST[..FIRST.len() - 1];
    for (authorization, said) in [
        (None, "no token was shown"),
        (Some("Bearer".to_owned()), "not of the kind Bearer"),
        (Some(format!("Basic {FIRST}")), "not of the kind Bearer"),
        (Some("Bearer ".to_owned()), "not known"),
        (Some(format!("Bearer {shorter}")), "not known"),
        (Some(format!("Bearer {FIRST}0")), "not known"),
        (Some(format!("Bearer acme {SECOND}")), "not known"),
    ] {
        let status = requested(&auth, authorization.as_deref()).unwrap_err();
        assert_eq!(status.code(), Code::Unauthenticated);
        let message = status.message();
        assert!(
            message.contains(said) && message.contains("auth.client_tokens_file"),
            "{message}"
        );
        assert!(
            !message.contains(shorter) && !message.contains(SECOND),
            "{message}"
        );
    }
}

#[test]
fn without_a_file_everyone_is_let_in_and_nothing_is_shown() {
    let auth = Auth::of_coordinator(&AuthConfig::default()).unwrap();
    assert_eq!(requested(&auth, None).unwrap(), None);
    let sent = auth.shown().call(Request::new(())).unwrap();
    assert!(sent.metadata().is_empty());
    assert!(!auth.must_be_hidden());
}

#[test]
fn the_first_token_is_shown_and_printed_nowhere() {
    let (_folder, path) = file(&format!("coordinator {FIRST}\n{SECOND}\n"));
    let config = AuthConfig {
        peer_token_file: path,
        reload_seconds: 0,
        ..AuthConfig::default()
    };
    let auth = Auth::of_coordinator(&config).unwrap();
    let sent = auth.shown().call(Request::new(())).unwrap();
    let header = sent.metadata().get("authorization").unwrap();
    assert_eq!(header.to_str().unwrap(), format!("Bearer {FIRST}"));
    let printed = format!("{sent:?} {auth:?} {:?} {:?}", auth.shown(), auth.guard());
    assert!(!printed.contains("-token-"), "{printed}");
    assert!(auth.must_be_hidden());
    assert!(!auth.in_clear(true).must_be_hidden());
}

#[tokio::test]
async fn a_token_can_be_replaced_while_others_hold() {
    let (_folder, path) = file(&format!("{FIRST}\n"));
    let config = AuthConfig {
        peer_token_file: path.clone(),
        reload_seconds: 1,
        ..AuthConfig::default()
    };
    let auth = Auth::of_peer(&config).unwrap();
    let accepts = |token: &str| requested(&auth, Some(&format!("Bearer {token}"))).is_ok();
    assert!(accepts(FIRST) && !accepts(SECOND));
    std::fs::write(&path, format!("{FIRST}\n{SECOND}\n")).unwrap();
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
    while !accepts(SECOND) {
        assert!(tokio::time::Instant::now() < deadline, "never read again");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(accepts(FIRST), "both, until the old one is taken out");
}

#[test]
fn what_is_no_file_of_tokens_names_the_line_and_never_the_token() {
    let [long, name] = ["x", "n"].map(|letter| letter.repeat(257));
    let named = format!("{name} FIRST");
    for (text, said) in [
        ("", "holds no token"),
        ("# nothing\n\n", "holds no token"),
        (
            "FIRST\nshort-token-0\n",
            "line 2: a token of 13 characters, expected 16 to 256",
        ),
        (long.as_str(), "line 1: a token of 257"),
        ("a b FIRST", "line 1: more than two words"),
        ("FIRSTé", "line 1: the token has characters"),
        (named.as_str(), "line 1: a name of 257"),
        (
            "a FIRST\nb FIRST",
            "line 2: this token stands in an earlier line",
        ),
    ] {
        let (_folder, path) = file(&text.replace("FIRST", FIRST));
        let error = coordinator(path.clone()).unwrap_err().to_string();
        let path = path.display().to_string();
        for part in [said, "auth.client_tokens_file", &path] {
            assert!(error.contains(part), "{error}");
        }
        assert!(!error.contains("-token-"), "{error}");
    }
    let error = coordinator("no/such/file".into()).unwrap_err().to_string();
    assert!(error.contains("no/such/file: cannot be read"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn answers_to_wrong_tokens_are_put_off_and_to_no_others() {
    let (_folder, path) = file(FIRST);
    let auth = coordinator(path).unwrap();
    let mut extensions = Extensions::new();
    extensions.insert(TcpConnectInfo {
        local_addr: None,
        remote_addr: Some("10.0.0.1:1".parse().unwrap()),
    });
    let took = async |authorization: Option<String>| {
        let began = tokio::time::Instant::now();
        // Each port has a guard of its own, and they know of the same guesses.
        let guard = auth.guard();
        match guard.check(&mut headers(authorization.as_deref()), &extensions) {
            Ok(_) => assert!(authorization.unwrap().ends_with(FIRST)),
            Err(refusal) => assert_eq!(refusal.answer().await.code(), Code::Unauthenticated),
        }
        began.elapsed()
    };
    let mut longest = std::time::Duration::ZERO;
    for _ in 0..20 {
        let wrong = took(Some(format!("Bearer {SECOND}"))).await;
        assert!(wrong >= longest && wrong > std::time::Duration::ZERO);
        longest = wrong;
        for other in [Some(format!("Bearer {FIRST}")), None] {
            assert_eq!(took(other).await, std::time::Duration::ZERO);
        }
    }
    assert_eq!(longest, MAX_PAUSE);
}
