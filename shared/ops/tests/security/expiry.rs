//! When the certificate that is shown expires, as it is told.

use std::time::Duration;

use net::Credentials;
use net::auth::Auth;
use net::tls::{Tls, TlsConfig, TlsMode};
use ops::metrics::Metrics;
use ops::process::Process;

use super::authority::Authority;
use super::log::Log;
use super::served::with_tls;

/// Midnight before the first of January 2040 and 2060, UTC, in seconds since 1970.
const YEAR_2040: f64 = 2_208_988_800.0;
const YEAR_2060: f64 = 2_840_140_800.0;

fn reported(metrics: &Metrics) -> Option<f64> {
    let text = metrics.encode().unwrap();
    let name = "outrider_tls_certificate_expiry_time_seconds{} ";
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.parse().unwrap())
}

/// Returns a process whose metrics tell of these certificates.
fn watched(tls: &TlsConfig) -> Process {
    let (tls, auth) = (Tls::load(tls).unwrap(), Auth::default());
    Process::default().with_credentials(Credentials { tls, auth })
}

#[tokio::test]
async fn the_end_of_the_certificate_in_use_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("ca");
    let issue = |year| authority.issue_until(folder.path(), "service", &["localhost"], year);
    let (cert_file, key_file) = issue(2040);
    let config = TlsConfig {
        mode: TlsMode::Server,
        cert_file,
        key_file,
        reload_seconds: 1,
        ..TlsConfig::default()
    };
    let process = watched(&config);
    assert_eq!(reported(&process.metrics), Some(YEAR_2040));

    // Years from 2050 on are written in another way.
    issue(2060);
    for _ in 0..200 {
        if reported(&process.metrics) == Some(YEAR_2060) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(reported(&process.metrics), Some(YEAR_2060));

    // Of a chain that counts which ends first.
    let (last, _) = authority.issue_until(folder.path(), "other", &["other"], 2040);
    let chain = [&config.cert_file, &last].map(|file| std::fs::read_to_string(file).unwrap());
    std::fs::write(&config.cert_file, chain.concat()).unwrap();
    let process = watched(&config);
    assert_eq!(reported(&process.metrics), Some(YEAR_2040));
}

#[tokio::test]
async fn who_shows_no_certificate_tells_of_none() {
    let folder = tempfile::tempdir().unwrap();
    let ca_file = Authority::new("ca").write(folder.path(), "ca.pem");
    let client = TlsConfig {
        ca_file,
        ..TlsConfig::default()
    };
    let (cert_file, key_file) =
        Authority::new("ca").issue(folder.path(), "unshown", &["localhost"]);
    // Neither served with nor believed with: for nobody.
    let unshown = TlsConfig {
        cert_file,
        key_file,
        ..TlsConfig::default()
    };
    for config in [&unshown, &TlsConfig::default(), &client] {
        assert_eq!(reported(&watched(config).metrics), None);
    }
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let (cert_file, key_file) =
        Authority::new("ca").issue_expired(folder.path(), "old", &["localhost"]);
    let log = Log::start();
    with_tls(&TlsConfig {
        mode: TlsMode::Server,
        cert_file,
        key_file,
        ..TlsConfig::default()
    });
    log.wait_for(&["WARN", "tls.cert_file", "old.pem has expired"])
        .await;
}
