//! Where an engine is, whose certificates are believed, and the key that it is shown.

use std::fmt;
use std::path::PathBuf;

use ureq::http::Uri;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::error::EngineError;

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
    /// Whether the key would be read by whoever watches the network: it goes to another machine without TLS.
    pub fn shows_key(&self) -> bool {
        let Ok(uri) = self.url.parse::<Uri>() else {
            return false;
        };
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let address = host.parse::<std::net::IpAddr>();
        let is_here = address.map_or(host == "localhost", |address| address.is_loopback());
        self.key_file.is_some() && uri.scheme_str() == Some("http") && !is_here
    }

    /// Checks the address, and looks at no file.
    ///
    /// # Errors
    /// If it is none.
    pub fn check_url(&self) -> Result<(), EngineError> {
        self.checked_url().map(drop)
    }

    /// The address without what ends it.
    pub(crate) fn checked_url(&self) -> Result<String, EngineError> {
        let url = self.url.trim_end_matches('/').to_owned();
        let bad_url = |problem: &str| EngineError::Settings {
            field: "url",
            problem: problem.to_owned(),
        };
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

    /// Whose certificates are believed.
    pub(crate) fn tls(&self) -> Result<TlsConfig, EngineError> {
        let mut tls = TlsConfig::builder();
        if let Some(file) = &self.ca_file {
            tls = tls.root_certs(authorities(&read("ca_file", file)?)?);
        }
        Ok(tls.build())
    }

    pub(crate) fn authorization(&self) -> Result<Option<Authorization>, EngineError> {
        self.key_file.as_ref().map(bearer).transpose()
    }
}

/// The value of a header that is in no log.
pub(crate) struct Authorization(pub(crate) String);

impl fmt::Debug for Authorization {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Bearer …")
    }
}

fn read(field: &'static str, file: &PathBuf) -> Result<Vec<u8>, EngineError> {
    std::fs::read(file).map_err(|error| EngineError::Settings {
        field,
        problem: format!("{}: {error}", file.display()),
    })
}

fn authorities(pem: &[u8]) -> Result<RootCerts, EngineError> {
    let bad = |problem: &str| EngineError::Settings {
        field: "ca_file",
        problem: problem.to_owned(),
    };
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

fn bearer(file: &PathBuf) -> Result<Authorization, EngineError> {
    let field = "key_file";
    let bad = |problem: &str| EngineError::Settings {
        field,
        problem: problem.to_owned(),
    };
    let key = String::from_utf8(read(field, file)?).map_err(|_| bad("is no text"))?;
    let key = key.trim();
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(bad("must hold one key of visible ASCII characters"));
    }
    Ok(Authorization(format!("Bearer {key}")))
}
