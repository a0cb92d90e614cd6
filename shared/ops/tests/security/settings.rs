//! Certificates that cannot be used are named when they are read.

use std::path::{Path, PathBuf};

use net::tls::{Tls, TlsConfig, TlsMode};

use super::authority::{Authority, write};

/// A configuration of these files, by their names in `folder`: `cert key ca`, each of them `-` where there is none.
fn config(folder: &Path, mode: TlsMode, names: &str) -> TlsConfig {
    let file = |name: &str| match name {
        "-" => PathBuf::new(),
        name => folder.join(name),
    };
    let mut files = names.split(' ').map(file);
    let mut next = || files.next().expect("three names");
    TlsConfig {
        mode,
        cert_file: next(),
        key_file: next(),
        ca_file: next(),
        reload_seconds: 0,
    }
}

/// Checks that each is refused: `cert key ca | part | part`.
fn each_is_refused(folder: &Path, mode: TlsMode, table: &[&str]) {
    for line in table {
        let (names, parts) = line.split_once(" | ").expect("what is said");
        let error = Tls::load(&config(folder, mode, names))
            .unwrap_err()
            .to_string();
        let said = parts.split(" | ").all(|part| error.contains(part));
        assert!(said, "{line}: {error}");
    }
}

/// A folder of files, sound and unsound.
fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let authority = Authority::new("ours");
    authority.write(path, "ca.pem");
    authority.issue(path, "service", &["localhost"]);
    authority.issue(path, "other", &["localhost"]);
    write(path, "text.pem", "nothing of the kind\n");
    let started = "-----BEGIN CERTIFICATE-----\nAAAA\n";
    write(path, "cut.pem", started);
    let odd = format!("{started}-----END CERTIFICATE-----\n");
    write(path, "odd.pem", &odd);
    folder
}

#[tokio::test]
async fn settings_that_need_one_another_are_named() {
    let folder = files();
    let of_server = [
        "- - - | tls.cert_file is not set",
        "service.pem - - | tls.key_file is not set",
    ];
    each_is_refused(folder.path(), TlsMode::Server, &of_server);
    each_is_refused(
        folder.path(),
        TlsMode::Off,
        &["- service.key - | tls.cert_file is not set"],
    );
    let without_ca = ["service.pem service.key - | tls.ca_file is not set"];
    each_is_refused(folder.path(), TlsMode::Mutual, &without_ca);
}

#[tokio::test]
async fn each_wrong_file_is_named_with_what_is_wrong() {
    let folder = files();
    let pairs = [
        "gone.pem service.key - | tls.cert_file | gone.pem: cannot be read",
        "service.pem gone.key - | tls.key_file | gone.key: cannot be read",
        "text.pem service.key - | tls.cert_file | no certificate in PEM",
        "cut.pem service.key - | tls.cert_file | not PEM",
        "service.key service.key - | tls.cert_file | no certificate in PEM",
        "service.pem service.pem - | tls.key_file | no private key in PEM",
        "service.pem other.key - | tls.key_file | does not belong to the first certificate",
    ];
    each_is_refused(folder.path(), TlsMode::Server, &pairs);
    let authorities = [
        "- - gone.pem | tls.ca_file | gone.pem: cannot be read",
        "- - odd.pem | tls.ca_file | malformed",
        "- - service.key | tls.ca_file | no certificate in PEM",
    ];
    each_is_refused(folder.path(), TlsMode::Off, &authorities);
}

#[tokio::test]
async fn what_is_sound_is_read_and_printed_nowhere() {
    let folder = files();
    let all = config(
        folder.path(),
        TlsMode::Mutual,
        "service.pem service.key ca.pem",
    );
    let tls = Tls::load(&all).unwrap();
    assert!(tls.is_believing());
    assert!(!format!("{tls:?}").contains("PRIVATE"), "{tls:?}");
    let client = Tls::load(&config(folder.path(), TlsMode::Off, "- - ca.pem")).unwrap();
    assert!(client.is_believing());
}
