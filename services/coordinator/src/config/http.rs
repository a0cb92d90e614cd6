//! Section `coordinator.http` of the configuration: the OpenAI API.

use std::num::NonZeroU64;

use net::listen::OptionalListen;
use ops::config::Switch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The port of the OpenAI API where the configuration names none.
const PORT: u16 = 8000;

/// Longest idle time of a connection: a day, in milliseconds.
const MAX_IDLE_MS: u64 = 24 * 60 * 60 * 1_000;

/// The OpenAI API, as a section of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// Address to listen on, `IP:PORT`; `off`, or nothing, for no such port.
    pub listen: OptionalListen,
    /// Whether there is a page at `/`.
    pub page: bool,
    /// Whether the one model that is served answers to any name: true, false, or auto, where the port listens on
    /// loopback alone.
    pub any_model: Switch,
    /// Names that a request may give as `Host` beside those of this machine, where the port listens on loopback alone: a
    /// proxy here passes them on.
    pub trusted_hosts: Vec<String>,
    /// Origins whose web pages browsers let read answers, `https://chat.example`; `*` is any page.
    pub cors_origins: Vec<String>,
    /// Longest time for which a connection stays open whose client asks for nothing, or takes nothing of its answers; a
    /// day at most.
    #[schemars(range(max = MAX_IDLE_MS))]
    pub idle_timeout_ms: NonZeroU64,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: OptionalListen::on_loopback(PORT),
            page: true,
            any_model: Switch::Auto,
            trusted_hosts: Vec::new(),
            cors_origins: Vec::new(),
            idle_timeout_ms: const { NonZeroU64::new(180_000).unwrap() },
        }
    }
}

impl HttpConfig {
    /// Returns whether the one model that is served answers to any name, on a port that only this machine reaches if
    /// `is_local`.
    pub(crate) fn answers_to_any_name(&self, is_local: bool) -> bool {
        match self.any_model {
            Switch::Auto => is_local,
            Switch::On => true,
            Switch::Off => false,
        }
    }

    /// Returns each key whose value cannot be used, and what is wrong with it.
    pub(super) fn problems(&self) -> Vec<(String, String)> {
        let hosts = self.trusted_hosts.iter().enumerate();
        let hosts = hosts
            .filter(|(_, host)| !is_authority(host))
            .map(|(at, host)| {
                let problem = format!("{host:?} is no host, expected NAME or NAME:PORT");
                (format!("http.trusted_hosts.{at}"), problem)
            });
        let origins = self.cors_origins.iter().enumerate();
        let origins = origins
            .filter(|(_, origin)| !is_origin(origin))
            .map(|(at, origin)| {
                let problem = format!(
                    "{origin:?} is no origin, expected SCHEME://NAME or SCHEME://NAME:PORT with nothing behind, or *"
                );
                (format!("http.cors_origins.{at}"), problem)
            });
        let idle = self.idle_timeout_ms.get();
        let idle = (idle > MAX_IDLE_MS).then(|| {
            let problem = format!("{idle} is out of range, expected 1 to {MAX_IDLE_MS}");
            ("http.idle_timeout_ms".to_owned(), problem)
        });
        hosts.chain(origins).chain(idle).collect()
    }
}

/// Returns whether `text` is a host, with a port or without.
fn is_authority(text: &str) -> bool {
    let parsed = text.parse::<axum::http::uri::Authority>();
    parsed.is_ok_and(|authority| !authority.host().is_empty() && !text.contains(['@', '*']))
}

/// Returns whether `text` is what browsers send as an origin, or `*` for any.
fn is_origin(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let parts = text.split_once("://");
    text == "*" || parts.is_some_and(|(scheme, host)| is_scheme(scheme) && is_authority(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_origins_that_no_client_could_send_are_named() {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let config = HttpConfig {
            trusted_hosts: texts(&["llm.example", "llm.example:8443", "[::1]:80"]),
            cors_origins: texts(&[
                "https://chat.example",
                "http://10.0.0.1:3000",
                "tauri://localhost",
                "*",
            ]),
            ..HttpConfig::default()
        };
        assert_eq!(config.problems(), []);
        let config = HttpConfig {
            trusted_hosts: texts(&[
                "https://llm.example",
                "llm.example/",
                "",
                "*.example",
                "a b",
            ]),
            cors_origins: texts(&[
                "chat.example",
                "https://chat.example/",
                "https://",
                "null",
                "",
            ]),
            ..HttpConfig::default()
        };
        let keys: Vec<_> = config.problems().into_iter().map(|(key, _)| key).collect();
        let expected = ["trusted_hosts", "cors_origins"]
            .map(|list| (0..5).map(move |at| format!("http.{list}.{at}")));
        assert_eq!(keys, expected.into_iter().flatten().collect::<Vec<_>>());
    }

    #[test]
    fn a_connection_idles_for_a_day_at_most() {
        for (ms, problems) in [
            (1, 0),
            (MAX_IDLE_MS, 0),
            (MAX_IDLE_MS + 1, 1),
            (u64::MAX, 1),
        ] {
            let config = HttpConfig {
                idle_timeout_ms: NonZeroU64::new(ms).expect("not zero"),
                ..HttpConfig::default()
            };
            assert_eq!(config.problems().len(), problems, "{ms}");
        }
    }

    #[test]
    fn any_name_is_answered_on_loopback_unless_the_setting_decides() {
        let answers = |any_model| {
            let config = HttpConfig {
                any_model,
                ..HttpConfig::default()
            };
            [true, false].map(|is_local| config.answers_to_any_name(is_local))
        };
        assert_eq!(answers(Switch::Auto), [true, false]);
        assert_eq!(answers(Switch::On), [true; 2]);
        assert_eq!(answers(Switch::Off), [false; 2]);
    }
}
