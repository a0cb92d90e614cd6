//! Where an engine is, whose certificates are believed, and the key that it is shown.

use std::path::PathBuf;

use ureq::http::{HeaderValue, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::error::ScoringError;

/// Where an engine is, and how it is spoken to.
#[derive(Clone, Debug, Default)]
pub struct ConnectionSettings {
    /// Where it is: `http://` or `https://`, a host, and a path before its routes if it has one.
    pub url: String,
    /// A file of PEM certificates, one of which must have signed the engine's; none takes those of the public web.
    pub ca_file: Option<PathBuf>,
    /// A file with the key that is sent as `Authorization: Bearer`.
    pub key_file: Option<PathBuf>,
}

impl ConnectionSettings {
    /// Returns whether the key would be read by whoever watches the network: it goes to another machine without TLS.
    pub fn shows_key(&self) -> bool {
        let Ok(uri) = self.url.parse::<Uri>() else {
            return false;
        };
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let address = host.parse::<std::net::IpAddr>();
        let is_here = address.map_or(host == "localhost", |address| address.is_loopback());
        self.key_file.is_some() && uri.scheme_str() == Some("http") && !is_here
    }

    /// Returns the address without slashes at its end. No file is looked at.
    ///
    /// # Errors
    /// If it is none.
    pub fn checked_url(&self) -> Result<String, ScoringError> {
        let url = self.url.trim_end_matches('/').to_owned();
        let bad_url = |problem| bad("url", problem);
        let uri: Uri = url.parse().map_err(|_| bad_url("is no URL"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(bad_url("must begin with http:// or https://"));
        }
        let authority = uri.authority().ok_or_else(|| bad_url("has no host"))?;
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(bad_url("must have neither a user nor a query"));
        }
        Ok(url)
    }

    /// Returns the TLS settings, with the certificate authorities that are trusted.
    pub(crate) fn tls(&self) -> Result<TlsConfig, ScoringError> {
        let mut tls = TlsConfig::builder();
        if let Some(file) = &self.ca_file {
            tls = tls.root_certs(authorities(&read("ca_file", file)?)?);
        }
        Ok(tls.build())
    }

    /// Returns the value of the header `Authorization`, which is in no log.
    pub(crate) fn authorization(&self) -> Result<Option<HeaderValue>, ScoringError> {
        self.key_file.as_ref().map(bearer).transpose()
    }
}

fn read(field: &'static str, file: &PathBuf) -> Result<Vec<u8>, ScoringError> {
    std::fs::read(file).map_err(|error| bad(field, format!("{}: {error}", file.display())))
}

/// Returns the error of the setting `field`.
fn bad(field: &'static str, problem: impl Into<String>) -> ScoringError {
    ScoringError::Settings {
        field,
        problem: problem.into(),
    }
}

fn authorities(pem: &[u8]) -> Result<RootCerts, ScoringError> {
    let bad = |problem| bad("ca_file", problem);
    let mut found: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => found.push(certificate),
            Ok(_) => {}
            Err(_) => return Err(bad("is no PEM file")),
        }
    }
    if found.is_empty() {
        return Err(bad("has no certificate"));
    }
    Ok(RootCerts::new_with_certs(&found))
}

fn bearer(file: &PathBuf) -> Result<HeaderValue, ScoringError> {
    let bad = |problem| bad("key_file", problem);
    let key = String::from_utf8(read("key_file", file)?).map_err(|_| bad("is no text"))?;
    let (key, problem) = (key.trim(), "must hold one key of visible ASCII characters");
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(bad(problem));
    }
    let mut value = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| bad(problem))?;
    value.set_sensitive(true);
    Ok(value)
}
