//! Certificates and keys from files.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, Error, RootCertStore, ServerConfig};
use x509_cert::Certificate;
use x509_cert::der::Decode;

use super::{TlsConfig, TlsError, TlsMode};

/// The one protocol that services speak inside of TLS.
const ALPN: &[u8] = b"h2";

/// What handshakes are made with.
pub(super) struct Material {
    /// Where services speak TLS.
    pub(super) server: Option<Arc<ServerConfig>>,
    /// Where CAs are known.
    pub(super) client: Option<Arc<ClientConfig>>,
    /// Where a certificate is shown, and says so: when it expires, since 1970.
    pub(super) expires: Option<Duration>,
}

/// A certificate chain and its key.
type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Reads the files of `config`.
///
/// # Errors
/// [`TlsError`] naming the setting and the file.
pub(super) fn read(
    config: &TlsConfig,
    provider: &Arc<CryptoProvider>,
) -> Result<Material, TlsError> {
    let identity = identity(config)?;
    let roots = roots(config)?.map(Arc::new);
    let server = match (config.mode, &identity) {
        (TlsMode::Off, _) => None,
        (_, None) => {
            let why = "tls.mode says that this service shows a certificate";
            let setting = "cert_file";
            return Err(TlsError::Missing { setting, why });
        }
        (mode, Some(identity)) => {
            let clients = match (mode, &roots) {
                (TlsMode::Mutual, None) => {
                    let why = "tls.mode = \"mutual\" needs the CAs that sign clients' certificates";
                    let setting = "ca_file";
                    return Err(TlsError::Missing { setting, why });
                }
                (TlsMode::Mutual, Some(roots)) => Some(Arc::clone(roots)),
                _ => None,
            };
            Some(server(config, identity, clients, provider)?)
        }
    };
    let client = roots
        .map(|roots| client(config, identity.as_ref(), roots, provider))
        .transpose()?;
    let is_shown = server.is_some() || client.is_some();
    let expires = identity
        .as_ref()
        .filter(|_| is_shown)
        .and_then(|(chain, _)| expiry(chain));
    if expires.is_some_and(is_past) {
        tracing::warn!(
            "tls.cert_file: a certificate in {} has expired; whoever needs it to believe this process \
             refuses the connection",
            config.cert_file.display()
        );
    }
    Ok(Material {
        server,
        client,
        expires,
    })
}

fn server(
    config: &TlsConfig,
    identity: &Identity,
    clients: Option<Arc<RootCertStore>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let builder = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(&error, config))?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(roots) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider));
            let verifier = verifier
                .build()
                .map_err(|error| TlsError::Unusable(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let (chain, key) = identity;
    let mut server = builder
        .with_single_cert(chain.clone(), key.clone_key())
        .map_err(|error| refused(&error, config))?;
    server.alpn_protocols = vec![ALPN.to_vec()];
    Ok(Arc::new(server))
}

fn client(
    config: &TlsConfig,
    identity: Option<&Identity>,
    roots: Arc<RootCertStore>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<ClientConfig>, TlsError> {
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(&error, config))?
        .with_root_certificates(roots);
    let mut client = match identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => builder
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(|error| refused(&error, config))?,
    };
    client.alpn_protocols = vec![ALPN.to_vec()];
    Ok(Arc::new(client))
}

fn identity(config: &TlsConfig) -> Result<Option<Identity>, TlsError> {
    let missing = |setting, why| Err(TlsError::Missing { setting, why });
    match (is_named(&config.cert_file), is_named(&config.key_file)) {
        (false, false) => return Ok(None),
        (true, false) => return missing("key_file", "tls.cert_file is"),
        (false, true) => return missing("cert_file", "tls.key_file is"),
        (true, true) => {}
    }
    let chain = certificates_of(&contents("cert_file", &config.cert_file)?);
    let chain = chain.map_err(malformed("cert_file", &config.cert_file))?;
    let pem = contents("key_file", &config.key_file)?;
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| TlsError::Contents {
        setting: "key_file",
        file: config.key_file.clone(),
        problem:
            "no private key in PEM, expected one in PKCS#8, PKCS#1 or SEC1 that is not encrypted"
                .to_owned(),
    })?;
    Ok(Some((chain, key)))
}

/// When the first certificate of `chain` expires that does, since 1970.
fn expiry(chain: &[CertificateDer]) -> Option<Duration> {
    let ends = chain.iter().filter_map(|certificate| {
        let certificate = Certificate::from_der(certificate).ok()?;
        let validity = certificate.tbs_certificate().validity();
        Some(validity.not_after.to_unix_duration())
    });
    ends.min()
}

fn is_past(since_1970: Duration) -> bool {
    SystemTime::UNIX_EPOCH
        .elapsed()
        .is_ok_and(|now| since_1970 < now)
}

fn roots(config: &TlsConfig) -> Result<Option<RootCertStore>, TlsError> {
    if !is_named(&config.ca_file) {
        return Ok(None);
    }
    let setting = "ca_file";
    let roots = roots_of(&contents(setting, &config.ca_file)?);
    roots.map(Some).map_err(malformed(setting, &config.ca_file))
}

/// The CAs in a file, of which `pem` are the contents.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn roots_of(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates_of(pem)? {
        let added = roots.add(certificate);
        added.map_err(|error| format!("a certificate in it is malformed: {error}"))?;
    }
    Ok(roots)
}

fn certificates_of(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|error| format!("not PEM: {error}"))?;
    if certificates.is_empty() {
        return Err("no certificate in PEM, expected -----BEGIN CERTIFICATE-----".to_owned());
    }
    Ok(certificates)
}

fn malformed(setting: &'static str, file: &Path) -> impl FnOnce(String) -> TlsError {
    move |problem| TlsError::Contents {
        setting,
        file: file.to_owned(),
        problem,
    }
}

fn contents(setting: &'static str, file: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(file).map_err(|source| TlsError::Unreadable {
        setting,
        file: file.to_owned(),
        source,
    })
}

fn is_named(file: &Path) -> bool {
    !file.as_os_str().is_empty()
}

fn refused(error: &Error, config: &TlsConfig) -> TlsError {
    match error {
        Error::InconsistentKeys(_) => TlsError::KeyMismatch {
            key_file: config.key_file.clone(),
            cert_file: config.cert_file.clone(),
        },
        error => TlsError::Unusable(error.to_string()),
    }
}
