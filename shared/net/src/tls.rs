//! TLS between services and with clients.
//!
//! One section of the configuration describes both directions: the certificate that a service shows to
//! whoever connects (and, where it is asked for one, to whom it connects), and the CA certificates by
//! which it believes others. Files are [read again](TlsConfig::reload_seconds) when they change; open
//! connections go on with what they began with.

mod explain;
mod facts;
mod material;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;
use tokio_rustls::{TlsAcceptor, TlsConnector};

pub(crate) use explain::{Side, explain, is_hung_up, is_tls_spoken};
pub use facts::{CertificateFacts, certificates};

use crate::reload::{FileError, Reloaded, Reloads};
use material::Material;

/// Whether a service speaks TLS to those who connect to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TlsMode {
    /// In clear.
    #[default]
    Off,
    /// It shows its certificate.
    Server,
    /// It shows its certificate, and asks for one of a known CA.
    Mutual,
}

/// Certificates, as a section of a process's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct TlsConfig {
    /// What those who connect to this process's services meet. Where the process connects to others, their
    /// URLs decide: `https://` or `http://`.
    pub mode: TlsMode,
    /// Certificate chain in PEM, this side's own certificate first. Shown to those who connect, and to
    /// those connected to if they ask.
    pub cert_file: PathBuf,
    /// Private key of that certificate in PEM: PKCS#8, PKCS#1 or SEC1, not encrypted.
    pub key_file: PathBuf,
    /// Certificates in PEM of the CAs that are believed: of servers, and in mode `mutual` of clients.
    pub ca_file: PathBuf,
    /// How often the files are looked at for changes; 0 is never, but on SIGHUP.
    #[default(30)]
    pub reload_seconds: u64,
}

impl TlsConfig {
    /// Returns what [`Tls::load`] would refuse: files that are needed and not named, and if `with_files` those that
    /// cannot be read or do not fit one another.
    pub fn check(&self, with_files: bool) -> Vec<TlsError> {
        material::check(self, with_files)
    }

    /// Logs a warning where a service speaks in clear though it has a certificate, which was meant for
    /// somebody.
    pub fn warn_of_unshown_certificate(&self) {
        if self.mode == TlsMode::Off && !self.cert_file.as_os_str().is_empty() {
            tracing::warn!(
                "tls.cert_file is set and tls.mode is off: this service speaks in clear; set tls.mode = \
                 \"server\" or \"mutual\""
            );
        }
    }
}

/// The process's certificates, and whom it believes. Clones share them; the default has none. `Debug` says nothing of what
/// is behind it, which holds private keys.
#[derive(Clone, Debug, Default)]
pub struct Tls(Arc<Reloaded<Material>>);

impl Tls {
    /// Reads the files that `config` names, and goes on watching them.
    ///
    /// # Errors
    /// [`TlsError`] naming the setting, the file and what to do.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn load(config: &TlsConfig) -> Result<Self, TlsError> {
        let named = [&config.cert_file, &config.key_file, &config.ca_file];
        let files: Vec<_> = named
            .into_iter()
            .filter(|file| !file.as_os_str().is_empty())
            .cloned()
            .collect();
        if config.mode == TlsMode::Off && files.is_empty() {
            return Ok(Self::default());
        }
        let interval = Duration::from_secs(config.reload_seconds);
        let config = config.clone();
        let read = move || material::read(&config);
        Reloaded::start("TLS certificates", files, interval, read).map(Self)
    }

    /// Returns the TLS of a client that shows no certificate and speaks `protocol` (ALPN). It trusts servers by the
    /// CAs in a file, which stands behind the setting that names it, or by the public CAs.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub(crate) fn of_client(
        authorities: Option<(&str, &Path)>,
        protocol: &[u8],
    ) -> Result<Self, TlsError> {
        let roots = match authorities {
            Some((setting, file)) => material::roots_of(setting, file)?,
            None => webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect(),
        };
        let material = Material {
            client: Some(material::client(None, roots, protocol)?),
            ..Material::default()
        };
        Ok(Self(Arc::new(Reloaded::fixed(material))))
    }

    /// Returns when the certificate that is shown now expires, since 1970; none if none is shown.
    pub fn expires(&self) -> Option<Duration> {
        self.0.get().expires
    }

    /// Has `reloads` read its files again when told to.
    pub fn add_to(&self, reloads: &Reloads) {
        reloads.add(&self.0);
    }

    /// Returns whether servers' certificates can be checked, so that `https://` can be connected to.
    pub fn is_believing(&self) -> bool {
        self.connector().is_some()
    }

    /// Returns what answers a handshake of a client that speaks HTTP/1.1 or HTTP/2; none where services speak in clear.
    pub(crate) fn acceptor(&self) -> Option<TlsAcceptor> {
        self.0.get().server.clone().map(TlsAcceptor::from)
    }

    /// Returns what begins a handshake now; none where no CA is known.
    pub(crate) fn connector(&self) -> Option<TlsConnector> {
        self.0.get().client.clone().map(TlsConnector::from)
    }
}

/// Why the section `tls` of a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is needed that is not named.
    #[error("tls.{setting} is not set, and {why}")]
    Missing {
        /// The key in section `tls`.
        setting: &'static str,
        /// What needs it.
        why: &'static str,
    },

    /// A file cannot be read, or does not hold what it should, or belongs to another.
    #[error(transparent)]
    File(#[from] FileError),

    /// TLS refuses the certificates for another reason.
    #[error("tls: the certificates cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

impl TlsError {
    /// Returns the setting at fault, `tls.key`; the section where no single one is.
    pub fn key(&self) -> String {
        match self {
            Self::Missing { setting, .. } => format!("tls.{setting}"),
            Self::File(file) => file.setting.clone(),
            Self::Unusable(_) => "tls".to_owned(),
        }
    }
}
