//! Who is let in, and what is told to whom if not.

use std::path::PathBuf;
use std::time::Duration;

use net::fault::is_tls_fault;
use net::tls::{TlsConfig, TlsMode};
use ops::process::Process;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::authority::Authority;
use super::log::Log;
use super::served::{Served, check, client as client_of, reported, with_tls};

/// Two CAs, and a folder for what they make.
struct World {
    ours: Authority,
    other: Authority,
    folder: tempfile::TempDir,
}

/// Certificate and key.
type Pair = (PathBuf, PathBuf);

impl World {
    fn new() -> Self {
        Self {
            ours: Authority::new("ours"),
            other: Authority::new("other"),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A service that shows `certificate`, and asks for one of ours if `mode` is mutual.
    fn service(&self, mode: TlsMode, certificate: &Pair) -> TlsConfig {
        TlsConfig {
            mode,
            cert_file: certificate.0.clone(),
            key_file: certificate.1.clone(),
            ca_file: self.ours.write(self.folder.path(), "ours.pem"),
            ..TlsConfig::default()
        }
    }

    /// A client that believes `authority`, and shows `certificate` if there is one.
    fn client(&self, authority: &Authority, certificate: Option<&Pair>) -> Process {
        let (cert_file, key_file) = certificate.cloned().unwrap_or_default();
        with_tls(&TlsConfig {
            ca_file: authority.write(self.folder.path(), "believed.pem"),
            cert_file,
            key_file,
            ..TlsConfig::default()
        })
    }
}

#[tokio::test]
async fn a_name_is_checked_wherever_its_address_was_found() {
    let world = World::new();
    let folder = world.folder.path();
    let names = &["verifier.test", "localhost"];
    let shown = world.ours.issue(folder, "service", names);
    let served = Served::start(with_tls(&world.service(TlsMode::Server, &shown))).await;
    let client = world.client(&world.ours, None);
    served.check("https", &client).await.unwrap();
    let of_name = async |name| check(&mut served.client_of(name, &client)).await;
    of_name("verifier.test").await.unwrap();
    let said = reported(&of_name("drafter.test").await.unwrap_err());
    let address = served.address.to_string();
    for part in ["of another name", "drafter.test", "verifier.test", &address] {
        assert!(said.contains(part), "{said}");
    }
    // An address is no name, unless the certificate is for it.
    let said = reported(&of_name("127.0.0.1").await.unwrap_err());
    assert!(said.contains("of another name"), "{said}");
}

#[tokio::test]
async fn servers_that_cannot_be_believed_are_not() {
    let world = World::new();
    let folder = world.folder.path();
    let names = &["localhost"];
    let sound = world.ours.issue(folder, "sound", names);
    let expired = world.ours.issue_expired(folder, "expired", names);
    for (shown, believed, on_client, on_server) in [
        (
            &sound,
            &world.other,
            "not among those in tls.ca_file",
            "does not know the CA of this side's certificate",
        ),
        (
            &expired,
            &world.ours,
            "the server's certificate has expired",
            "(tls.cert_file) has expired",
        ),
    ] {
        let log = Log::start();
        let served = Served::start(with_tls(&world.service(TlsMode::Server, shown))).await;
        let status = served.check("https", &world.client(believed, None)).await;
        let status = status.unwrap_err();
        assert!(
            reported(&status).contains(on_client),
            "{}",
            reported(&status)
        );
        assert!(is_tls_fault(&status) && status.code() == tonic::Code::Unavailable);
        let parts = ["WARN", "connection refused", on_server];
        log.wait_for(&parts).await;
    }
}

#[tokio::test]
async fn clients_are_let_in_with_a_certificate_of_the_ca_and_not_otherwise() {
    let world = World::new();
    let folder = world.folder.path();
    let names = &["localhost"];
    let shown = world.ours.issue(folder, "service", names);
    let sound = world.ours.issue(folder, "client", &["client.test"]);
    let stranger = world.other.issue(folder, "stranger", &["client.test"]);
    let expired = world.ours.issue_expired(folder, "late", &["client.test"]);
    let of_servers = world.ours.issue_for_servers(folder, "server", names);
    let config = world.service(TlsMode::Mutual, &shown);
    let served = Served::start(with_tls(&config)).await;
    let client = world.client(&world.ours, Some(&sound));
    served.check("https", &client).await.unwrap();
    for (certificate, on_client, on_server) in [
        (
            None,
            "asks for a certificate: set tls.cert_file",
            "showed no certificate",
        ),
        (
            Some(&stranger),
            "does not know the CA of this side's certificate",
            "a CA that is not among those in tls.ca_file",
        ),
        (
            Some(&expired),
            "this side's certificate (tls.cert_file) has expired",
            "the client's certificate has expired",
        ),
        (
            Some(&of_servers),
            "does not believe this side's certificate",
            "must have clientAuth",
        ),
    ] {
        let log = Log::start();
        let served = Served::start(with_tls(&config)).await;
        let client = world.client(&world.ours, certificate);
        let said = reported(&served.check("https", &client).await.unwrap_err());
        assert!(said.contains(on_client), "{said}");
        let parts = ["WARN", "connection refused", on_server];
        log.wait_for(&parts).await;
    }
}

#[tokio::test]
async fn sides_that_do_not_agree_on_tls_at_all_are_told_so() {
    let world = World::new();
    let shown = world.ours.issue(world.folder.path(), "s", &["localhost"]);
    let client = world.client(&world.ours, None);

    let log = Log::start();
    let with = Served::start(with_tls(&world.service(TlsMode::Server, &shown))).await;
    let said = reported(&with.check("http", &client).await.unwrap_err());
    assert!(said.contains("it speaks TLS (write https://)"), "{said}");
    log.wait_for(&["WARN", "its URL must begin with https://"])
        .await;

    let log = Log::start();
    let without = Served::start(Process::default()).await;
    let said = reported(&without.check("https", &client).await.unwrap_err());
    assert!(
        said.contains("the server does not speak TLS; write http://"),
        "{said}"
    );
    log.wait_for(&["WARN", "the client speaks TLS and this service does not"])
        .await;
    without.check("http", &client).await.unwrap();

    // Who hangs up at once has not said what it speaks.
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = other.local_addr().unwrap();
    tokio::spawn(async move { while other.accept().await.is_ok() {} });
    for scheme in ["http", "https"] {
        let url = format!("{scheme}://localhost:{}", address.port());
        let said = reported(&check(&mut client_of(&url, &client)).await.unwrap_err());
        assert!(said.contains("closed the connection"), "{said}");
        assert!(
            !said.contains("speak") && !said.contains("write http"),
            "{said}"
        );
    }

    // A server that is killed after it said something never spoke of TLS.
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", other.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut connection, _) = other.accept().await.unwrap();
        // An empty SETTINGS frame.
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        connection.write_all(&settings).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        // What is not read makes that a reset.
        drop(connection);
    });
    let said = reported(&check(&mut client_of(&url, &client)).await.unwrap_err());
    assert!(!said.contains("TLS"), "{said}");

    // Other servers end it with an alert: level fatal, protocol version.
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", other.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut connection, _) = other.accept().await.unwrap();
        let alert = connection.write_all(&[0x15, 3, 1, 0, 2, 2, 70]);
        alert.await.unwrap();
        let _ = connection.read_to_end(&mut Vec::new()).await;
    });
    let said = reported(&check(&mut client_of(&url, &client)).await.unwrap_err());
    assert!(
        said.contains("TLS alert: it speaks TLS (write https://)"),
        "{said}"
    );
}
