//! Section `coordinator.http` of the configuration: the OpenAI API.

use std::num::NonZeroU64;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use server::listen::OptionalListen;
use server::loopback::Trusted;

/// The port of the OpenAI API unless it is said.
const PORT: u16 = 8000;

/// The OpenAI API, as a section of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// Address to listen on, `IP:PORT`; `off`, or nothing, for no such port.
    pub listen: OptionalListen,
    /// Whether the one model that is served answers to any name: true, false, or auto, where the port listens on
    /// loopback alone.
    pub any_model: AnyModel,
    /// Names that a request may give as `Host` beside those of this machine, where the port listens on loopback alone: a
    /// proxy here passes them on.
    pub trusted_hosts: Vec<String>,
    /// Origins whose web pages browsers let read answers, `https://chat.example`; `*` is any page.
    pub cors_origins: Vec<String>,
    /// How long a connection stays open whose client asks for nothing, or takes nothing of its answers.
    pub idle_timeout_ms: NonZeroU64,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: OptionalListen::on_loopback(PORT),
            any_model: AnyModel::Auto,
            trusted_hosts: Vec::new(),
            cors_origins: Vec::new(),
            idle_timeout_ms: const { NonZeroU64::new(180_000).unwrap() },
        }
    }
}

impl HttpConfig {
    /// How long a connection stays open whose client does nothing.
    pub(crate) fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.idle_timeout_ms.get())
    }

    /// Whom the port answers beside this machine, where it listens on loopback alone.
    pub(crate) fn trusted(&self) -> Trusted {
        Trusted {
            hosts: self.trusted_hosts.clone(),
            origins: self.cors_origins.clone(),
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
        hosts.chain(origins).collect()
    }
}

/// Whether `text` is a host, with a port or without.
fn is_authority(text: &str) -> bool {
    let parsed = text.parse::<axum::http::uri::Authority>();
    parsed.is_ok_and(|authority| !authority.host().is_empty() && !text.contains(['@', '*']))
}

/// Whether `text` is what browsers send as an origin, or stands for any.
fn is_origin(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let parts = text.split_once("://");
    text == "*" || parts.is_some_and(|(scheme, host)| is_scheme(scheme) && is_authority(host))
}

/// Whether the one model that is served answers to any name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Written", into = "Written")]
pub enum AnyModel {
    /// It does where nobody but this machine asks.
    #[default]
    Auto,
    /// It does.
    Yes,
    /// It does not: a model that is not served is an error.
    No,
}

/// The same as it is written in a file.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected true, false or auto")]
enum Written {
    Flag(bool),
    Word(#[schemars(extend("enum" = ["auto"]))] String),
}

impl AnyModel {
    /// Whether it does on a port that `is_local` or not.
    pub(crate) fn holds(self, is_local: bool) -> bool {
        match self {
            Self::Auto => is_local,
            Self::Yes => true,
            Self::No => false,
        }
    }
}

impl TryFrom<Written> for AnyModel {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Flag(true) => Ok(Self::Yes),
            Written::Flag(false) => Ok(Self::No),
            Written::Word(word) if word == "auto" => Ok(Self::Auto),
            Written::Word(word) => Err(format!("{word:?}, expected true, false or auto")),
        }
    }
}

impl From<AnyModel> for Written {
    fn from(any: AnyModel) -> Self {
        match any {
            AnyModel::Auto => Self::Word("auto".to_owned()),
            AnyModel::Yes => Self::Flag(true),
            AnyModel::No => Self::Flag(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn any_model_is_true_false_or_auto() {
        let read = |value| serde_json::from_value::<AnyModel>(value);
        for (written, any) in [
            (json!("auto"), AnyModel::Auto),
            (json!(true), AnyModel::Yes),
            (json!(false), AnyModel::No),
        ] {
            assert_eq!(read(written.clone()).ok(), Some(any));
            assert_eq!(serde_json::to_value(any).ok(), Some(written));
        }
        for bad in [json!("yes"), json!(1), json!(null)] {
            let error = read(bad).expect_err("refused").to_string();
            assert!(error.contains("expected true, false or auto"), "{error}");
        }
        let local = [AnyModel::Auto, AnyModel::Yes, AnyModel::No].map(|any| any.holds(true));
        let open = [AnyModel::Auto, AnyModel::Yes, AnyModel::No].map(|any| any.holds(false));
        assert_eq!(local, [true, true, false]);
        assert_eq!(open, [false, true, false]);
    }

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
}
