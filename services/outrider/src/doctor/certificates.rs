//! When certificates expire, and which names they are for.

use std::time::{Duration, SystemTime};

use net::tls::{CertificateFacts, TlsConfig};

use super::report::Findings;

const DAY: u64 = 24 * 60 * 60;

/// Days before a certificate expires from which on it is warned of.
const SOON: u64 = 14;

/// Returns what is found of the files in section `tls`. That one cannot be read is told with the configuration.
pub(super) fn findings(config: &TlsConfig) -> Findings {
    let mut findings = Findings::of("certificates");
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    for certificate in net::tls::certificates(config) {
        judge(&mut findings, &certificate, now);
    }
    if findings.is_empty() {
        findings.info("none: services speak in clear, and https:// is not connected to");
    }
    findings
}

fn judge(findings: &mut Findings, certificate: &CertificateFacts, now: Duration) {
    let CertificateFacts { setting, names, .. } = certificate;
    let who = format!("{setting}: {names}");
    let days = |from: Duration, to: Duration| to.saturating_sub(from).as_secs() / DAY;
    if now < certificate.not_before {
        let days = days(now, certificate.not_before);
        findings.error(
            format!("{who} is not valid yet, for {days} days more"),
            "compare the clock of this machine with that of the CA's",
        );
    } else if certificate.not_after < now {
        let days = days(certificate.not_after, now);
        findings.error(
            format!("{who} expired {days} days ago"),
            format!(
                "renew it and replace the file; it is read again every {} seconds",
                certificate.reload_seconds
            ),
        );
    } else {
        let days = days(now, certificate.not_after);
        let message = format!("{who} expires in {days} days");
        if days < SOON {
            findings.warning(
                message,
                "renew it; the file is read again without a restart",
            );
        } else {
            findings.ok(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::FindingLevel;
    use super::*;

    #[test]
    fn a_certificate_is_good_from_its_beginning_to_its_end() {
        let day = |day: u64| Duration::from_secs(day * DAY);
        let certificate = CertificateFacts {
            setting: "tls.cert_file",
            names: "verifier".to_owned(),
            hosts: Vec::new(),
            not_before: day(100),
            not_after: day(200),
            reload_seconds: 30,
        };
        let level = |now| {
            let mut findings = Findings::of("certificates");
            judge(&mut findings, &certificate, day(now));
            findings.found[0].level
        };
        assert_eq!(level(99), FindingLevel::Error);
        assert_eq!(level(100), FindingLevel::Ok);
        assert_eq!(level(186), FindingLevel::Ok);
        assert_eq!(level(187), FindingLevel::Warning);
        assert_eq!(level(201), FindingLevel::Error);
    }
}
