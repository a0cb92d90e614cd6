//! Where one kind of signal goes, and how.

use std::path::PathBuf;
use std::time::Duration;

use super::{Protocol, TelemetryConfig, TelemetryError, refused};

/// How long an export may take where nobody says.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where one kind of signal goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Destination {
    /// The whole URL, path included.
    pub(in super::super) url: String,
    pub(in super::super) protocol: Protocol,
    /// The CAs that are believed; none are the public ones.
    pub(in super::super) authorities: Option<Authorities>,
    /// How long an export may take.
    pub(in super::super) timeout: Duration,
}

/// CAs that somebody chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Authorities {
    /// The key or variable that names the file.
    pub(in super::super) key: String,
    pub(in super::super) file: PathBuf,
}

/// A kind of signal: its name in variables, and its path over HTTP.
#[derive(Clone, Copy)]
pub(super) struct Signal {
    name: &'static str,
    path: &'static str,
}

pub(super) const TRACES: Signal = Signal {
    name: "TRACES",
    path: "v1/traces",
};
pub(super) const LOGS: Signal = Signal {
    name: "LOGS",
    path: "v1/logs",
};

/// Where `signal` goes; nowhere if nobody says.
///
/// # Errors
/// Names the key or variable that cannot be used.
pub(super) fn destination(
    config: &TelemetryConfig,
    signal: Signal,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Option<Destination>, TelemetryError> {
    let exporter = format!("OTEL_{}_EXPORTER", signal.name);
    match variable(&exporter).as_deref() {
        Some("none") => return Ok(None),
        None | Some("otlp") => {}
        Some(other) => return Err(refused(&exporter, other, "expected otlp or none")),
    }
    let protocol = protocol(config, signal, variable)?;
    let to = |url| {
        Ok(Some(Destination {
            url,
            protocol,
            authorities: authorities(config, signal, variable),
            timeout: timeout(signal, variable)?,
        }))
    };
    let own = format!("OTEL_EXPORTER_OTLP_{}_ENDPOINT", signal.name);
    let (key, url) = if !config.endpoint.is_empty() {
        ("telemetry.endpoint", config.endpoint.clone())
    } else if let Some(whole) = variable(&own) {
        // The one variable that holds the whole URL.
        check_url(&own, &whole)?;
        return to(whole);
    } else if let Some(base) = variable("OTEL_EXPORTER_OTLP_ENDPOINT") {
        ("OTEL_EXPORTER_OTLP_ENDPOINT", base)
    } else {
        return Ok(None);
    };
    check_url(key, &url)?;
    let url = match protocol {
        Protocol::Grpc => url,
        Protocol::HttpProtobuf => format!("{}/{}", url.trim_end_matches('/'), signal.path),
    };
    to(url)
}

fn check_url(key: &str, url: &str) -> Result<(), TelemetryError> {
    let uri = url.parse::<tonic::transport::Uri>();
    let is_known = uri.is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
    });
    if is_known {
        return Ok(());
    }
    let expected = "write http://HOST:PORT or https://HOST:PORT of a collector";
    Err(refused(key, url, expected))
}

/// Value of the first that is set of a signal's own variable and the common one, and which it is.
fn exporter_variable(
    signal: Signal,
    what: &str,
    variable: &impl Fn(&str) -> Option<String>,
) -> Option<(String, String)> {
    let own = format!("OTEL_EXPORTER_OTLP_{}_{what}", signal.name);
    let names = [own, format!("OTEL_EXPORTER_OTLP_{what}")];
    names
        .into_iter()
        .find_map(|name| variable(&name).map(|value| (name, value)))
}

fn authorities(
    config: &TelemetryConfig,
    signal: Signal,
    variable: &impl Fn(&str) -> Option<String>,
) -> Option<Authorities> {
    if !config.ca_file.as_os_str().is_empty() {
        return Some(Authorities {
            key: "telemetry.ca_file".to_owned(),
            file: config.ca_file.clone(),
        });
    }
    let (key, file) = exporter_variable(signal, "CERTIFICATE", variable)?;
    let file = file.into();
    Some(Authorities { key, file })
}

fn timeout(
    signal: Signal,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Duration, TelemetryError> {
    let Some((name, text)) = exporter_variable(signal, "TIMEOUT", variable) else {
        return Ok(TIMEOUT);
    };
    let milliseconds = text.parse();
    milliseconds
        .map(Duration::from_millis)
        .map_err(|_| refused(&name, &text, "expected milliseconds"))
}

fn protocol(
    config: &TelemetryConfig,
    signal: Signal,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Protocol, TelemetryError> {
    if let Some(protocol) = config.protocol {
        return Ok(protocol);
    }
    let Some((name, value)) = exporter_variable(signal, "PROTOCOL", variable) else {
        return Ok(Protocol::Grpc);
    };
    match value.as_str() {
        "grpc" => Ok(Protocol::Grpc),
        "http/protobuf" => Ok(Protocol::HttpProtobuf),
        other => Err(refused(&name, other, "expected grpc or http/protobuf")),
    }
}
