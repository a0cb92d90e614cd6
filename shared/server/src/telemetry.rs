//! Logs: one line an event, on stderr. Stdout belongs to what the product prints.

use std::io::{self, IsTerminal};

use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::util::TryInitError;

/// How log lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people; in colour on a terminal.
    #[default]
    Text,
    /// One JSON object a line, for collectors.
    Json,
}

/// What is logged and how, as a section of a service's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// How lines are written.
    pub format: LogFormat,
    /// Which events are logged, in the syntax of `RUST_LOG`: `info,verifier=debug`.
    pub filter: String,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            format: LogFormat::Text,
            filter: "info".to_owned(),
        }
    }
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is not in the syntax of `RUST_LOG`.
    #[error("log filter {filter:?} does not parse: {source}")]
    Filter {
        /// The filter as it was given.
        filter: String,
        /// What is wrong with it.
        source: ParseError,
    },

    /// The process has a logger already.
    #[error("logging is already set up: {0}")]
    Installed(#[from] TryInitError),
}

/// Sets up the process's logger. Only a `main` should call this, and once.
///
/// # Errors
/// [`TelemetryError`] if the filter does not parse or a logger is there already.
pub fn init(config: &LogConfig) -> Result<(), TelemetryError> {
    use tracing_subscriber::util::SubscriberInitExt;

    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter(&config.filter)?)
        .with_writer(io::stderr)
        .with_ansi(wants_colour());
    match config.format {
        LogFormat::Text => lines.finish().try_init()?,
        LogFormat::Json => lines.json().flatten_event(true).finish().try_init()?,
    }
    Ok(())
}

fn filter(text: &str) -> Result<EnvFilter, TelemetryError> {
    EnvFilter::try_new(text).map_err(|source| TelemetryError::Filter {
        filter: text.to_owned(),
        source,
    })
}

fn wants_colour() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stderr().is_terminal() && !refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_does_not_parse_is_quoted() {
        let error = filter("info,verifier=loud").unwrap_err();
        assert!(
            error.to_string().contains("\"info,verifier=loud\""),
            "{error}"
        );
        assert!(filter("info,verifier=debug").is_ok());
    }

    #[test]
    fn a_second_logger_is_an_error_and_not_a_panic() {
        let config = LogConfig {
            filter: "off".to_owned(),
            ..LogConfig::default()
        };
        init(&config).unwrap();
        assert!(matches!(init(&config), Err(TelemetryError::Installed(_))));
    }
}
