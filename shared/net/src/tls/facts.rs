//! What certificates say of themselves.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::TlsConfig;
use super::material::certificates_of;

/// What a certificate says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The setting that names its file.
    pub setting: &'static str,
    /// Whom it is for: host names and addresses, or else its subject.
    pub names: String,
    /// Host names and addresses that it is for.
    pub hosts: Vec<String>,
    /// When it begins to be valid, since 1970.
    pub not_before: Duration,
    /// When it expires, since 1970.
    pub not_after: Duration,
    /// How often its file is read again.
    pub reload_seconds: u64,
}

/// Returns the certificates that `config` names; files that cannot be read are passed over.
pub fn certificates(config: &TlsConfig) -> Vec<CertificateFacts> {
    let files = [
        ("tls.cert_file", &config.cert_file),
        ("tls.ca_file", &config.ca_file),
    ];
    let named = files
        .into_iter()
        .filter(|(_, file)| !file.as_os_str().is_empty());
    named
        .flat_map(|(setting, file)| in_file(setting, file, config.reload_seconds))
        .collect()
}

fn in_file(setting: &'static str, file: &Path, reload_seconds: u64) -> Vec<CertificateFacts> {
    let certificates = certificates_of(setting, file).unwrap_or_default();
    let shown = certificates.iter().filter_map(|der: &CertificateDer<'_>| {
        let certificate = Certificate::from_der(der).ok()?;
        let body = certificate.tbs_certificate();
        let hosts = hosts(&certificate);
        Some(CertificateFacts {
            setting,
            names: if hosts.is_empty() {
                body.subject().to_string()
            } else {
                hosts.join(", ")
            },
            hosts,
            not_before: body.validity().not_before.to_unix_duration(),
            not_after: body.validity().not_after.to_unix_duration(),
            reload_seconds,
        })
    });
    shown.collect()
}

/// Returns the host names and addresses that it is for; none if it names none.
fn hosts(certificate: &Certificate) -> Vec<String> {
    let found = certificate
        .tbs_certificate()
        .get_extension::<SubjectAltName>();
    let Ok(Some((_, SubjectAltName(names)))) = found else {
        return Vec::new();
    };
    let hosts = names.iter().filter_map(|name| match name {
        GeneralName::DnsName(name) => Some(name.as_str().to_owned()),
        GeneralName::IpAddress(bytes) => address(bytes.as_bytes()),
        _ => None,
    });
    hosts.collect()
}

fn address(bytes: &[u8]) -> Option<String> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let v6 = || <[u8; 16]>::try_from(bytes).map(IpAddr::from);
    Some(v4.or_else(|_| v6()).ok()?.to_string())
}
