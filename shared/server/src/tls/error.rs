//! Why certificates cannot be used.

use std::path::PathBuf;

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

    /// A file cannot be read, or does not hold what it should.
    #[error(transparent)]
    File(#[from] FileError),

    /// Key and certificate are of two pairs.
    #[error(
        "tls.key_file: the key in {} does not belong to the first certificate in tls.cert_file, {}; the chain \
         must begin with the key's own certificate",
        key_file.display(),
        cert_file.display()
    )]
    KeyMismatch {
        /// The key's file.
        key_file: PathBuf,
        /// The certificate's file.
        cert_file: PathBuf,
    },

    /// TLS refuses the certificates for another reason.
    #[error("tls: the certificates cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}
