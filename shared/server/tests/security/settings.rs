//! Certificates that cannot be used are named when they are read.

use std::path::{Path, PathBuf};

use server::tls::{Tls, TlsConfig, TlsMode, install_provider};

use super::authority::{Authority, write};

/// A configuration of these files, by their names in `folder`; an empty name is none.
fn config(folder: &Path, mode: TlsMode, [cert, key, ca]: [&str; 3]) -> TlsConfig {
    let file = |name: &str| match name {
        "" => PathBuf::new(),
        name => folder.join(name),
    };
    TlsConfig {
        mode,
        cert_file: file(cert),
        key_file: file(key),
        ca_file: file(ca),
        reload_seconds: 0,
    }
}

/// A folder of files, sound and unsound.
fn files() -> tempfile::TempDir {
    install_provider();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let authority = Authority::new("ours");
    authority.write(path, "ca.pem");
    authority.issue(path, "service", &["localhost"]);
    authority.issue(path, "other", &["localhost"]);
    write(path, "text.pem", "nothing of the kind\n");
    let begun = "-----BEGIN CERTIFICATE-----\nAAAA\n";
    write(path, "cut.pem", begun);
    write(
        path,
        "odd.pem",
        &format!("{begun}-----END CERTIFICATE-----\n"),
    );
    folder
}

#[tokio::test]
async fn settings_that_need_one_another_are_named() {
    let folder = files();
    for (mode, names, said) in [
        (TlsMode::Server, ["", "", ""], "tls.cert_file is not set"),
        (
            TlsMode::Server,
            ["service.pem", "", ""],
            "tls.key_file is not set",
        ),
        (
            TlsMode::Off,
            ["", "service.key", ""],
            "tls.cert_file is not set",
        ),
        (
            TlsMode::Mutual,
            ["service.pem", "service.key", ""],
            "tls.ca_file is not set",
        ),
    ] {
        let error = Tls::load(&config(folder.path(), mode, names)).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[tokio::test]
async fn each_wrong_file_is_named_with_what_is_wrong() {
    let folder = files();
    let no_certificate = "no certificate in PEM";
    for (names, setting, said) in [
        (
            ["gone.pem", "service.key", ""],
            "cert_file",
            "gone.pem cannot be read",
        ),
        (
            ["service.pem", "gone.key", ""],
            "key_file",
            "gone.key cannot be read",
        ),
        (["", "", "gone.pem"], "ca_file", "gone.pem cannot be read"),
        (["text.pem", "service.key", ""], "cert_file", no_certificate),
        (["cut.pem", "service.key", ""], "cert_file", "not PEM"),
        (
            ["service.key", "service.key", ""],
            "cert_file",
            no_certificate,
        ),
        (
            ["service.pem", "service.pem", ""],
            "key_file",
            "no private key in PEM",
        ),
        (
            ["service.pem", "other.key", ""],
            "key_file",
            "does not belong to the first certificate",
        ),
        (["", "", "odd.pem"], "ca_file", "malformed"),
        (["", "", "service.key"], "ca_file", no_certificate),
    ] {
        let mode = match names {
            ["", "", _] => TlsMode::Off,
            _ => TlsMode::Server,
        };
        let error = Tls::load(&config(folder.path(), mode, names)).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains(&format!("tls.{setting}")) && error.contains(said),
            "{error}"
        );
    }
}

#[tokio::test]
async fn what_is_sound_is_read_and_printed_nowhere() {
    let folder = files();
    let names = ["service.pem", "service.key", "ca.pem"];
    let tls = Tls::load(&config(folder.path(), TlsMode::Mutual, names)).unwrap();
    assert!(tls.is_serving() && tls.is_believing());
    assert!(!format!("{tls:?}").contains("PRIVATE"), "{tls:?}");
    let client = Tls::load(&config(folder.path(), TlsMode::Off, ["", "", "ca.pem"])).unwrap();
    assert!(!client.is_serving() && client.is_believing());
}
