//! Why certificates cannot be used.

use crate::reload::FileError;

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
    /// The setting at fault, `tls.key`; the section where no single one is.
    pub fn key(&self) -> String {
        match self {
            Self::Missing { setting, .. } => format!("tls.{setting}"),
            Self::File(file) => file.setting().to_owned(),
            Self::Unusable(_) => "tls".to_owned(),
        }
    }
}
