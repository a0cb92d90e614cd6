//! By which CAs the hub is believed.

use std::path::PathBuf;

use ureq::tls::{Certificate, PemItem, RootCerts, parse_pem};

use super::HubError;

/// Where CAs are named, the first that is set; `SSL_CERT_FILE` and `SSL_CERT_DIR` come after them.
const VARIABLES: [&str; 2] = ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"];

/// A file of CAs that takes the place of all others, and the variable that names it; as in the Python library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaFile {
    pub(super) path: PathBuf,
    pub(super) variable: &'static str,
}

impl CaFile {
    /// The file that a variable names, if one does.
    pub(super) fn named(path: impl Fn(&str) -> Option<PathBuf>) -> Option<Self> {
        let mut named = VARIABLES
            .into_iter()
            .filter_map(|variable| path(variable).map(|path| Self { path, variable }));
        named.next()
    }
}

/// Returns the CAs of `file`; without one those of `SSL_CERT_FILE`, of `SSL_CERT_DIR`, or of the system, and where that
/// has none the public ones that are built in.
///
/// # Errors
/// If the file cannot be read, or holds no certificate.
pub(super) fn roots(file: Option<&CaFile>) -> Result<RootCerts, HubError> {
    if let Some(CaFile { path, variable }) = file {
        let pem = std::fs::read(path).map_err(HubError::io(path))?;
        let certificates = parse_pem(&pem).filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        });
        let certificates: Vec<Certificate<'static>> = certificates.collect();
        if certificates.is_empty() {
            let problem = format!("names {}, which has no certificate in PEM", path.display());
            return Err(HubError::setting(*variable, problem));
        }
        return Ok(certificates.into());
    }
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "certificates of CAs that cannot be read");
    }
    let named = std::env::var_os("SSL_CERT_FILE").filter(|path| !path.is_empty());
    if let Some(path) = named.filter(|_| found.certs.is_empty()) {
        let problem = format!("names {}, which has no certificate in PEM", path.display());
        return Err(HubError::setting("SSL_CERT_FILE", problem));
    }
    if found.certs.is_empty() {
        return Ok(RootCerts::WebPki);
    }
    let certificates = found.certs.iter();
    let certificates = certificates.map(|der| Certificate::from_der(der).to_owned());
    Ok(certificates.collect::<Vec<_>>().into())
}

/// Warns of variables for proxies that have no effect.
pub(super) fn warn_of_proxies(variable: impl Fn(&str) -> Option<String>) {
    const NAMES: [&str; 6] = [
        "ALL_PROXY",
        "all_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "HTTP_PROXY",
        "http_proxy",
    ];
    for name in NAMES {
        let Some(why) = variable(name).and_then(|value| unusable(&value)) else {
            continue;
        };
        tracing::warn!(variable = name, "{why}: it is ignored");
    }
}

/// Returns why a proxy of this address cannot be used; none if it can.
fn unusable(address: &str) -> Option<&'static str> {
    if address.trim().is_empty() {
        return None;
    }
    if address
        .trim_start()
        .to_ascii_lowercase()
        .starts_with("socks")
    {
        return Some("proxies of the SOCKS kind are not supported");
    }
    let is_address = ureq::Proxy::new(address).is_ok();
    (!is_address).then_some("no address of a proxy")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_cas_is_named_by_the_variables_of_the_python_library() {
        let named = |set: &[&str]| {
            CaFile::named(|name| set.contains(&name).then(|| PathBuf::from(name)))
                .map(|file| file.variable)
        };
        assert_eq!(named(&[]), None);
        assert_eq!(named(&["CURL_CA_BUNDLE"]), Some("CURL_CA_BUNDLE"));
        assert_eq!(named(&VARIABLES), Some("REQUESTS_CA_BUNDLE"));
    }

    #[test]
    fn a_file_without_certificates_is_refused_by_the_variables_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ca.pem");
        let file = CaFile {
            path: path.clone(),
            variable: "REQUESTS_CA_BUNDLE",
        };
        let refused = |file: &CaFile| roots(Some(file)).expect_err("refused").to_string();
        assert!(refused(&file).contains("ca.pem"), "{}", refused(&file));
        std::fs::write(&path, "nothing").expect("written");
        let said = refused(&file);
        assert!(
            said.contains("REQUESTS_CA_BUNDLE") && said.contains("no certificate"),
            "{said}"
        );
    }

    #[test]
    fn proxies_that_have_no_effect_are_told() {
        for (address, expected) in [
            ("", None),
            ("http://proxy:3128", None),
            ("proxy:3128", None),
            (
                "socks5://proxy:1080",
                Some("proxies of the SOCKS kind are not supported"),
            ),
            ("http://pro xy:1", Some("no address of a proxy")),
        ] {
            assert_eq!(unusable(address), expected, "{address}");
        }
    }
}
