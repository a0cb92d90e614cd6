//! Where the doctor dials a service: there, and by the name, by which its clients do.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use net::channel::{self, ChannelConfig, ChannelError, PeerChannel, Trust};
use net::tls::{TlsMode, certificates};
use ops::process::Process;

use crate::check::ServeRole;
use crate::cluster::reachable;
use crate::config::Config;

/// How long one answer may take, the connection included.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// A service to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dialled {
    /// The URL by which its certificate is checked.
    url: String,
    /// The address that is connected to, if not the one behind the URL's host.
    address: Option<SocketAddr>,
}

impl Dialled {
    /// Returns the service that clients reach at `url`.
    pub(super) fn of_url(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            address: None,
        }
    }

    /// Returns the service that a process of `role` runs with `config` at `address`, which `key` sets.
    pub(super) fn own(config: &Config, role: ServeRole, key: &str, address: SocketAddr) -> Self {
        let address = reachable(address);
        if !is_encrypted(config, role, key) {
            return Self::of_url(&format!("http://{address}"));
        }
        let shown = certificates(&config.tls).into_iter();
        let mut own = shown.filter(|certificate| certificate.setting == "tls.cert_file");
        let hosts = own.next().map(|first| first.hosts).unwrap_or_default();
        let host = host_of(&hosts, address.ip());
        Self {
            url: format!("https://{host}:{}", address.port()),
            address: Some(address),
        }
    }

    /// Returns a channel to the service for `process`.
    ///
    /// # Errors
    /// If it cannot be asked with the settings of TLS and tokens.
    pub(super) fn channel(&self, process: &Process) -> Result<PeerChannel, ChannelError> {
        let config = ChannelConfig {
            connect_timeout_ms: PATIENCE.as_millis() as u64,
        };
        let uri = channel::parse(&self.url, Trust::of(&process.credentials))?;
        Ok(channel::connect_to(uri, self.address, &config, &process.credentials).0)
    }
}

/// Returns whether the service whose address is `key` speaks TLS. The admin port never does; nor do a drafter and a
/// verifier whose coordinator is in their process.
fn is_encrypted(config: &Config, role: ServeRole, key: &str) -> bool {
    let is_within = role == ServeRole::All && !key.starts_with("coordinator.");
    config.tls.mode != TlsMode::Off && key != "admin.listen" && !is_within
}

/// Returns the host of a URL by which a certificate for `hosts` is believed: the address itself if it is one of them,
/// otherwise the first of them.
fn host_of(hosts: &[String], address: IpAddr) -> String {
    let plain = address.to_string();
    let host = match hosts.first() {
        Some(first) if !hosts.contains(&plain) => first.replacen('*', "any", 1),
        _ => plain,
    };
    if host.contains(':') {
        format!("[{host}]")
    } else {
        host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_dialled_is_one_that_the_certificate_is_for() {
        for (hosts, address, expected) in [
            ("verifier.example", "127.0.0.1", "verifier.example"),
            ("*.example", "127.0.0.1", "any.example"),
            ("verifier.example 127.0.0.1", "127.0.0.1", "127.0.0.1"),
            ("10.0.0.7", "127.0.0.1", "10.0.0.7"),
            ("", "127.0.0.1", "127.0.0.1"),
            ("", "::1", "[::1]"),
            ("fe80::1", "::1", "[fe80::1]"),
        ] {
            let hosts: Vec<_> = hosts.split_whitespace().map(str::to_owned).collect();
            let address = address.parse().expect("an address");
            assert_eq!(host_of(&hosts, address), expected, "{hosts:?}");
        }
    }

    #[test]
    fn what_serves_its_own_process_alone_is_dialled_in_clear() {
        let mut config = Config::default();
        config.tls.mode = TlsMode::Server;
        for (role, key, expected) in [
            (ServeRole::All, "coordinator.listen", true),
            (ServeRole::All, "verifier.listen", false),
            (ServeRole::Verifier, "verifier.listen", true),
            (ServeRole::Verifier, "admin.listen", false),
        ] {
            assert_eq!(is_encrypted(&config, role, key), expected, "{role:?} {key}");
        }
    }
}
