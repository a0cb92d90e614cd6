//! A certificate authority for tests: makes certificates, sound and unsound, as PEM files in a folder.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};

/// A CA.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    /// Writes the CA's own certificate.
    pub(crate) fn write(&self, folder: &Path, name: &str) -> PathBuf {
        write(folder, name, &self.0.pem())
    }

    /// Writes a certificate for `names` and its key, as `NAME.pem` and `NAME.key`.
    pub(crate) fn issue(&self, folder: &Path, name: &str, names: &[&str]) -> (PathBuf, PathBuf) {
        self.issue_with(folder, name, names, |_| {})
    }

    /// One that expired long ago.
    pub(crate) fn issue_expired(
        &self,
        folder: &Path,
        name: &str,
        names: &[&str],
    ) -> (PathBuf, PathBuf) {
        self.issue_until(folder, name, names, 2002)
    }

    /// One that expires when `year` begins.
    pub(crate) fn issue_until(
        &self,
        folder: &Path,
        name: &str,
        names: &[&str],
        year: i32,
    ) -> (PathBuf, PathBuf) {
        let bounded = |params: &mut CertificateParams| {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(year, 1, 1);
        };
        self.issue_with(folder, name, names, bounded)
    }

    /// One that only servers may show.
    pub(crate) fn issue_for_servers(
        &self,
        folder: &Path,
        name: &str,
        names: &[&str],
    ) -> (PathBuf, PathBuf) {
        self.issue_with(folder, name, names, |params| {
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        })
    }

    fn issue_with(
        &self,
        folder: &Path,
        name: &str,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> (PathBuf, PathBuf) {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        // To be shown by servers and clients.
        let both = [
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.extended_key_usages = both.into();
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        let certificate = write(folder, &format!("{name}.pem"), &certificate.pem());
        let key = write(folder, &format!("{name}.key"), &key.serialize_pem());
        (certificate, key)
    }
}

/// Writes a file as a secret is swapped in: whole, or not at all.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    let new = folder.join(format!("{name}.new"));
    std::fs::write(&new, text).expect("written");
    std::fs::rename(new, &path).expect("renamed");
    path
}
