//! Tokens on every route of a port, and in no log.

use std::path::PathBuf;

use net::Credentials;
use net::auth::{Auth, AuthConfig};
use net::channel::ChannelConfig;
use net::tls::{TlsConfig, TlsMode};
use ops::process::Process;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;

use super::authority::{Authority, write};
use super::log::Log;
use super::served::{Served, client, process};

const TOKEN: &str = "sesame-0123456789abcdef";

fn tokens(file: PathBuf) -> AuthConfig {
    AuthConfig {
        peer_token_file: file,
        ..AuthConfig::default()
    }
}

#[tokio::test]
async fn every_route_asks_for_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let knows = tokens(write(folder.path(), "tokens", TOKEN));
    let guesses = tokens(write(folder.path(), "guess", "mellon-0123456789abcdef"));
    let of = |auth: &AuthConfig| Process {
        credentials: Credentials {
            auth: Auth::of_peer(auth).unwrap(),
            ..Credentials::default()
        },
        ..Process::default()
    };
    let served = Served::start(of(&knows)).await;
    let url = served.url("http");
    let nobody = Process::default();
    for (process, said) in [
        (&of(&knows), None),
        (&of(&guesses), Some("is not known")),
        (&nobody, Some("no token was shown")),
    ] {
        let mut health = client(&url, process);
        let checked = health.check(HealthCheckRequest::default()).await;
        let watched = health.watch(HealthCheckRequest::default()).await;
        let channel =
            net::channel::connect(&url, &ChannelConfig::default(), &process.credentials).unwrap();
        let mut reflection = ServerReflectionClient::new(channel.clone());
        let requested = ServerReflectionRequest {
            message_request: Some(MessageRequest::ListServices(String::new())),
            ..Default::default()
        };
        let requested = tokio_stream::once(requested);
        let reflected = reflection.server_reflection_info(requested).await;
        let outcomes = [checked.map(drop), watched.map(drop), reflected.map(drop)];
        for (route, outcome) in outcomes.into_iter().enumerate() {
            match said {
                None => outcome.unwrap(),
                Some(said) => {
                    let status = outcome.unwrap_err();
                    assert_eq!(status.code(), Code::Unauthenticated, "route {route}");
                    let message = status.message();
                    assert!(
                        message.contains(said) && message.contains("auth.peer_token_file"),
                        "{message}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn no_log_holds_the_token_however_much_is_logged() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("ours");
    let (cert_file, key_file) = authority.issue(folder.path(), "service", &["localhost"]);
    let tls = TlsConfig {
        mode: TlsMode::Mutual,
        cert_file,
        key_file: key_file.clone(),
        ca_file: authority.write(folder.path(), "ca.pem"),
        ..TlsConfig::default()
    };
    let knows = tokens(write(folder.path(), "tokens", TOKEN));
    let guess = "mellon-0123456789abcdef";
    let guesses = tokens(write(folder.path(), "guess", guess));
    let log = Log::start();
    let of = |auth: &AuthConfig| process(&tls, Auth::of_peer(auth).unwrap());
    let served = Served::start(of(&knows)).await;
    served.check("https", &of(&knows)).await.unwrap();
    served.check("https", &of(&guesses)).await.unwrap_err();
    let clear = Process {
        credentials: Credentials {
            auth: Auth::of_peer(&knows).unwrap(),
            ..Credentials::default()
        },
        ..Process::default()
    };
    let in_clear = Served::start(clear.clone()).await;
    in_clear.check("http", &clear).await.unwrap();
    let text = log.text();
    // What is looked for is what is logged at all: h2's frames, rustls' handshakes.
    assert!(text.contains("TRACE") && text.contains("the token shown is not known"));
    assert!(!text.contains(TOKEN) && !text.contains(guess));
    let key = std::fs::read_to_string(key_file).unwrap();
    let key = key.lines().nth(1).unwrap();
    assert!(!text.contains(key));
}
