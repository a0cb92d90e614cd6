//! Certificates that are replaced while connections are open.

use std::time::Duration;

use net::tls::{TlsConfig, TlsMode};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;

use super::authority::{Authority, write};
use super::log::Log;
use super::served::{Served, check, client, reported, with_tls};

/// Far longer than a file is left unread.
const LIMIT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn new_connections_see_the_new_certificate_and_open_streams_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let (cert_file, key_file) = old.issue(folder.path(), "service", &["localhost"]);
    let served = Served::start(with_tls(&TlsConfig {
        mode: TlsMode::Server,
        cert_file: cert_file.clone(),
        key_file,
        reload_seconds: 1,
        ..TlsConfig::default()
    }))
    .await;
    let believing = |ca_file| {
        with_tls(&TlsConfig {
            ca_file,
            reload_seconds: 1,
            ..TlsConfig::default()
        })
    };
    let of_old = believing(old.write(folder.path(), "old.pem"));
    let of_new = believing(new.write(folder.path(), "new.pem"));
    let url = served.url("https");
    let mut holder = client(&url, &of_old);
    let stream = holder.watch(HealthCheckRequest::default()).await.unwrap();
    let mut stream = stream.into_inner();
    let first = stream.message().await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::Serving);
    check(&mut client(&url, &of_new)).await.unwrap_err();

    // Certificate and key are not replaced at the same moment.
    let log = Log::start();
    new.issue(folder.path(), "service", &["localhost"]);
    let until = tokio::time::Instant::now() + LIMIT;
    while let Err(status) = check(&mut client(&url, &of_new)).await {
        let said = reported(&status);
        assert!(tokio::time::Instant::now() < until, "{said}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    log.wait_for(&["INFO", "TLS certificates read again"]).await;
    let refused = reported(&check(&mut client(&url, &of_old)).await.unwrap_err());
    assert!(refused.contains("tls.ca_file"), "{refused}");

    // What cannot be used changes nothing, and is told.
    write(folder.path(), "service.pem", "no certificate\n");
    let parts = ["WARN", "cannot be used as they are now", "service.pem"];
    log.wait_for(&parts).await;
    check(&mut client(&url, &of_new)).await.unwrap();

    // The client's side: the file that named the old CA names the new one now.
    new.write(folder.path(), "old.pem");
    let until = tokio::time::Instant::now() + LIMIT;
    while check(&mut client(&url, &of_old)).await.is_err() {
        assert!(tokio::time::Instant::now() < until, "{}", log.text());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    // The stream of the first connection knows of nothing.
    served.health.drain();
    let next = tokio::time::timeout(LIMIT, stream.message()).await;
    let next = next.unwrap().unwrap().unwrap();
    assert_eq!(next.status(), ServingStatus::NotServing);
}
