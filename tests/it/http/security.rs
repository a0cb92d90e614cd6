//! Hostile, large and slow requests over HTTP, TLS, and many streams at once.

use std::sync::Arc;

use net::Credentials;
use net::tls::{Tls, TlsConfig, TlsMode};
use ops::process::Process;
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::{serving, serving_in};
use crate::security::authority::Authority;

/// The largest body.
const MOST: usize = 4 << 20;

fn head(length: usize) -> String {
    format!(
        "POST /tokenize HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )
}

#[tokio::test]
async fn hostile_json_is_refused_and_bounded() {
    let serving = serving(|_| {}).await;
    let post = async |body: &str| {
        let headers = "content-type: application/json\r\n";
        serving.post_with("/v1/completions", headers, body).await
    };
    for (body, param) in [
        (
            r#"{"prompt": "x", "max_tokens": 1e400}"#.to_owned(),
            "max_tokens",
        ),
        (
            r#"{"prompt": "x", "max_tokens": 1e300}"#.to_owned(),
            "max_tokens",
        ),
        (
            r#"{"prompt": "x", "max_tokens": 18446744073709551616}"#.to_owned(),
            "max_tokens",
        ),
        (
            r#"{"prompt": "x", "seed": 18446744073709551616}"#.to_owned(),
            "seed",
        ),
        (
            format!(
                r#"{{"prompt": "x", "max_tokens": {}}}"#,
                "9".repeat(1 << 20)
            ),
            "max_tokens",
        ),
        (
            format!(r#"{{"prompt": {}}}"#, r#"{"a":"#.repeat(1 << 18)),
            "body",
        ),
        (
            format!(r#"{{"prompt": [{}]}}"#, vec!["[1]"; 1 << 16].join(",")),
            "prompt",
        ),
    ] {
        post(&body).await.refused(400, Some(param));
    }
    // If a key stands twice, its last value counts.
    let twice = r#"{"prompt": "x", "temperature": -1, "temperature": 0, "max_tokens": 1}"#;
    assert_eq!(post(twice).await.status, 200);
    assert_eq!(
        serving.completion(json!({})).await.status,
        200,
        "nothing was lost"
    );
}

#[tokio::test]
async fn a_body_of_four_mebibytes_is_read_and_one_byte_more_is_not() {
    let serving = serving(|_| {}).await;
    for (length, status) in [(MOST, 200), (MOST + 1, 413)] {
        // A text of that length would be more than the context holds.
        let short = r#"{"prompt": "x"}"#;
        let body = short.to_owned() + &" ".repeat(length - short.len());
        assert_eq!(body.len(), length);
        let reply = serving
            .exchange(format!("{}{body}", head(length)).as_bytes())
            .await;
        assert_eq!(reply.status, status, "{length}: {:?}", reply.headers);
    }
}

#[tokio::test]
async fn metrics_are_the_admin_ports() {
    let serving = serving(|_| {}).await;
    for path in ["/metrics", "/livez", "/readyz"] {
        serving.get(path).await.refused(404, None);
    }
}

#[tokio::test]
async fn it_speaks_tls_where_grpc_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let ours = Authority::new("ours");
    let (cert_file, key_file) = ours.issue(folder.path(), "service", &["localhost"]);
    let ca_file = ours.write(folder.path(), "ca.pem");
    let tls = TlsConfig {
        mode: TlsMode::Server,
        cert_file,
        key_file,
        ca_file: ca_file.clone(),
        ..TlsConfig::default()
    };
    let process = Process {
        credentials: Credentials {
            tls: Tls::load(&tls).expect("certificates"),
            ..Credentials::default()
        },
        ..Process::default()
    };
    let serving = serving_in(process, |_| {}).await;
    let pem = std::fs::read(ca_file).expect("a certificate");
    let mut roots = RootCertStore::empty();
    for certificate in rustls_pem(&pem) {
        roots.add(certificate).expect("an authority");
    }
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let connection = TcpStream::connect(serving.http)
        .await
        .expect("a connection");
    let name = ServerName::try_from("localhost").expect("a name");
    let mut secured = connector
        .connect(name, connection)
        .await
        .expect("a handshake");
    let request = b"GET /version HTTP/1.0\r\nhost: localhost\r\n\r\n";
    secured.write_all(request).await.expect("written");
    let mut answer = String::new();
    let _ = secured.read_to_string(&mut answer).await;
    assert!(
        answer.starts_with("HTTP/1.0 200 ") && answer.contains("version"),
        "{answer}"
    );
    // A client in clear gets no answer.
    assert_eq!(serving.get("/version").await.status, 0);
}

fn rustls_pem(pem: &[u8]) -> Vec<rustls::pki_types::CertificateDer<'static>> {
    use rustls::pki_types::pem::PemObject;
    let certificates = rustls::pki_types::CertificateDer::pem_slice_iter(pem);
    certificates
        .map(|certificate| certificate.expect("PEM"))
        .collect()
}

/// Streams beside each other lose nothing and mix nothing up.
#[tokio::test]
async fn many_streams_at_once_are_each_whole_and_in_order() {
    const STREAMS: usize = 200;
    const KINDS: usize = 10;
    let serving = serving(|_| {}).await;
    let body = |kind: usize| json!({ "prompt": "Once upon a time", "max_tokens": 12, "seed": kind, "temperature": 1, "ignore_eos": true, "stream": true });
    let mut expected = Vec::new();
    for kind in 0..KINDS {
        expected.push(text(&serving.post("/v1/completions", &body(kind)).await));
    }
    let all = (0..STREAMS).map(async |index| {
        let reply = serving.post("/v1/completions", &body(index % KINDS)).await;
        assert!(reply.body.trim_end().ends_with("data: [DONE]"), "{reply:?}");
        assert_eq!(text(&reply), expected[index % KINDS]);
    });
    futures_util::future::join_all(all).await;
}

fn text(reply: &super::Reply) -> String {
    let events = reply.events();
    let texts = events
        .iter()
        .filter_map(|event| event["choices"][0]["text"].as_str());
    texts.collect()
}
