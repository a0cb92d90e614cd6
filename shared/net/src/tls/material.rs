//! Certificates and keys from files.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, Error, RootCertStore, ServerConfig};
use x509_cert::Certificate;
use x509_cert::der::Decode;

use super::{TlsConfig, TlsError, TlsMode};
use crate::reload::{FileError, contents};

/// The protocol that services speak with one another inside of TLS.
const ALPN: &[u8] = b"h2";

const SHOWS_CERTIFICATE: &str = "tls.mode says that this service shows a certificate";
const NEEDS_ROOTS: &str = "tls.mode = \"mutual\" needs the CAs that sign clients' certificates";

/// What handshakes are made with.
#[derive(Default)]
pub(super) struct Material {
    /// Where services speak TLS.
    pub(super) server: Option<Arc<ServerConfig>>,
    /// Where CAs are known.
    pub(super) client: Option<Arc<ClientConfig>>,
    /// Where a certificate is shown, and says so: when it expires, since 1970.
    pub(super) expires: Option<Duration>,
}

/// A certificate chain and its key.
type CertificateAndKey = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Reads the files of `config`.
///
/// # Errors
/// [`TlsError`] naming the setting and the file.
pub(super) fn read(config: &TlsConfig) -> Result<Material, TlsError> {
    made_of(config).map_err(|error| match error {
        TlsError::Unusable(Error::InconsistentKeys(_)) => {
            let problem = format!(
                "the key in it does not belong to the first certificate in tls.cert_file, {}; the chain must begin \
                 with the key's own certificate",
                config.cert_file.display()
            );
            FileError::new("tls.key_file", &config.key_file, problem).into()
        }
        error => error,
    })
}

/// Returns what [`read`] would refuse: what is not named, and if `with_files` what the files hold.
pub(super) fn check(config: &TlsConfig, with_files: bool) -> Vec<TlsError> {
    let unnamed = unnamed(config);
    if !with_files || !unnamed.is_empty() {
        return unnamed;
    }
    let alone = [identity(config).err(), roots(config).err().map(Into::into)];
    let alone: Vec<_> = alone.into_iter().flatten().collect();
    if alone.is_empty() {
        // Whether they fit one another.
        return read(config).err().into_iter().collect();
    }
    alone
}

/// Files that are needed and not named.
fn unnamed(config: &TlsConfig) -> Vec<TlsError> {
    let [has_cert, has_key, has_roots] =
        [&config.cert_file, &config.key_file, &config.ca_file].map(|file| is_named(file));
    let shows = config.mode != TlsMode::Off;
    let wanting = [
        (has_cert && !has_key, "key_file", "tls.cert_file is"),
        (!has_cert && has_key, "cert_file", "tls.key_file is"),
        (
            shows && !has_cert && !has_key,
            "cert_file",
            SHOWS_CERTIFICATE,
        ),
        (
            config.mode == TlsMode::Mutual && !has_roots,
            "ca_file",
            NEEDS_ROOTS,
        ),
    ];
    let wanting = wanting.into_iter().filter(|(is_wanting, ..)| *is_wanting);
    wanting
        .map(|(_, setting, why)| missing(setting, why))
        .collect()
}

fn made_of(config: &TlsConfig) -> Result<Material, TlsError> {
    if let Some(unnamed) = unnamed(config).into_iter().next() {
        return Err(unnamed);
    }
    let identity = identity(config)?;
    let roots = roots(config)?;
    let server = match (config.mode, &identity, &roots) {
        (TlsMode::Off, ..) => None,
        // Refused above; what is asked for is never left out silently.
        (_, None, _) => return Err(missing("cert_file", SHOWS_CERTIFICATE)),
        (TlsMode::Mutual, _, None) => return Err(missing("ca_file", NEEDS_ROOTS)),
        (TlsMode::Mutual, Some(identity), roots) => Some(server(identity, roots.clone())?),
        (TlsMode::Server, Some(identity), _) => Some(server(identity, None)?),
    };
    let client = match roots {
        Some(roots) => Some(client(identity.as_ref(), roots, ALPN)?),
        None => None,
    };
    let shown = identity.filter(|_| server.is_some() || client.is_some());
    let expires = shown.and_then(|(chain, _)| expiry(&chain));
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

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn server(
    (chain, key): &CertificateAndKey,
    clients: Option<Arc<RootCertStore>>,
) -> Result<Arc<ServerConfig>, Error> {
    let builder =
        ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(roots) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
            let verifier = verifier.map_err(|error| Error::General(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut server = builder.with_single_cert(chain.clone(), key.clone_key())?;
    server.alpn_protocols = vec![ALPN.to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(server))
}

/// Returns the settings of a client that believes servers whose certificates `roots` sign, and speaks `protocol` with
/// them.
pub(super) fn client(
    identity: Option<&CertificateAndKey>,
    roots: impl Into<Arc<RootCertStore>>,
    protocol: &[u8],
) -> Result<Arc<ClientConfig>, Error> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let mut client = match identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => builder.with_client_auth_cert(chain.clone(), key.clone_key())?,
    };
    client.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(client))
}

fn identity(config: &TlsConfig) -> Result<Option<CertificateAndKey>, TlsError> {
    let (cert_file, key_file) = (&config.cert_file, &config.key_file);
    if !is_named(cert_file) || !is_named(key_file) {
        return Ok(None);
    }
    let chain = certificates_of("tls.cert_file", cert_file)?;
    let setting = "tls.key_file";
    let key = PrivateKeyDer::from_pem_slice(&contents(setting, key_file)?).map_err(|_| {
        let problem =
            "no private key in PEM, expected one in PKCS#8, PKCS#1 or SEC1 that is not encrypted";
        FileError::new(setting, key_file, problem)
    })?;
    Ok(Some((chain, key)))
}

/// Returns the CAs that are believed, if there are any.
fn roots(config: &TlsConfig) -> Result<Option<Arc<RootCertStore>>, FileError> {
    if !is_named(&config.ca_file) {
        return Ok(None);
    }
    Ok(Some(Arc::new(roots_of("tls.ca_file", &config.ca_file)?)))
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

/// Returns the CAs in the `file` that `setting` names.
///
/// # Errors
/// What is wrong with them.
pub(super) fn roots_of(setting: &str, file: &Path) -> Result<RootCertStore, FileError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates_of(setting, file)? {
        roots.add(certificate).map_err(|error| {
            let problem = format!("a certificate in it is malformed: {error}");
            FileError::new(setting, file, problem)
        })?;
    }
    Ok(roots)
}

pub(super) fn certificates_of(
    setting: &str,
    file: &Path,
) -> Result<Vec<CertificateDer<'static>>, FileError> {
    let pem = contents(setting, file)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let problem = match certificates {
        Ok(certificates) if !certificates.is_empty() => return Ok(certificates),
        Ok(_) => "no certificate in PEM, expected -----BEGIN CERTIFICATE-----".to_owned(),
        Err(error) => format!("not PEM: {error}"),
    };
    Err(FileError::new(setting, file, problem))
}

fn missing(setting: &'static str, why: &'static str) -> TlsError {
    TlsError::Missing { setting, why }
}

fn is_named(file: &Path) -> bool {
    !file.as_os_str().is_empty()
}
