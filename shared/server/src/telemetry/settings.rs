//! Where traces and logs go: the configuration, and what the environment says where it is silent.

use opentelemetry_sdk::trace::Sampler;
use serde::{Deserialize, Serialize};

use super::TelemetryError;

/// Share of requests that are traced where nobody says.
const SAMPLE_RATIO: f64 = 0.1;

/// One round in so many has spans at the peers where nobody says.
const ROUND_EVERY: u32 = 16;

/// How spans and logs are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// OTLP over gRPC.
    #[serde(rename = "grpc")]
    Grpc,
    /// OTLP over HTTP, as protobuf.
    #[serde(rename = "http/protobuf")]
    HttpProtobuf,
}

/// What is sent to an OpenTelemetry collector, as a section of the configuration. What is absent or empty is
/// taken from the variables that OpenTelemetry defines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// URL of a collector, `http://HOST:PORT`. Empty is `OTEL_EXPORTER_OTLP_ENDPOINT`; where that is unset too
    /// nothing is sent.
    pub endpoint: String,
    /// Absent is `OTEL_EXPORTER_OTLP_PROTOCOL`, or gRPC.
    pub protocol: Option<Protocol>,
    /// Share of requests that are traced, 0 to 1, but for those whose client has decided. Absent is
    /// `OTEL_TRACES_SAMPLER`, or one in ten.
    pub sample_ratio: Option<f64>,
    /// Of a traced request the first round and then one in so many have spans at the peers; 0 is none.
    pub round_every: u32,
    /// Whether prompts and outputs stand in spans.
    pub capture_text: bool,
    /// Whether log lines go to the collector too.
    pub logs: bool,
    /// Name of the process in traces. Empty is `OTEL_SERVICE_NAME`, or that of its role.
    pub service_name: String,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            endpoint: String::new(),
            protocol: None,
            sample_ratio: None,
            round_every: ROUND_EVERY,
            capture_text: false,
            logs: false,
            service_name: String::new(),
        }
    }
}

/// Where one kind of signal goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    /// The whole URL, path included.
    pub(super) url: String,
    pub(super) protocol: Protocol,
}

/// A kind of signal: its name in variables, and its path over HTTP.
#[derive(Clone, Copy)]
struct Signal {
    name: &'static str,
    path: &'static str,
}

const TRACES: Signal = Signal {
    name: "TRACES",
    path: "v1/traces",
};
const LOGS: Signal = Signal {
    name: "LOGS",
    path: "v1/logs",
};

/// The settings in effect. Headers, time limits, batches and attributes of the process are left to the
/// exporter, which reads their variables itself.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) traces: Option<Destination>,
    pub(super) logs: Option<Destination>,
    pub(super) sampler: Sampler,
    /// None where the environment names the process.
    pub(super) service_name: Option<String>,
}

impl Settings {
    /// Reads `config`, and where it says nothing the variables that `environment` gives.
    ///
    /// # Errors
    /// Names the key or variable that cannot be used.
    pub(super) fn resolve(
        config: &TelemetryConfig,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Result<Self, TelemetryError> {
        // OpenTelemetry takes an empty variable for one that is not set.
        let variable = |name: &str| environment(name).filter(|value| !value.is_empty());
        let disabled = variable("OTEL_SDK_DISABLED");
        let is_disabled = disabled.is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let destination = |signal: Signal| {
            if is_disabled {
                return Ok(None);
            }
            destination(config, signal, &variable)
        };
        let named = Some(config.service_name.clone()).filter(|name| !name.is_empty());
        Ok(Self {
            traces: destination(TRACES)?,
            logs: if config.logs {
                destination(LOGS)?
            } else {
                None
            },
            sampler: sampler(config, &variable)?,
            service_name: named.or_else(|| variable("OTEL_SERVICE_NAME")),
        })
    }
}

fn destination(
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
    let own = format!("OTEL_EXPORTER_OTLP_{}_ENDPOINT", signal.name);
    let (key, url) = if !config.endpoint.is_empty() {
        ("telemetry.endpoint", config.endpoint.clone())
    } else if let Some(whole) = variable(&own) {
        // The one variable that holds the whole URL.
        check_url(&own, &whole)?;
        return Ok(Some(Destination {
            url: whole,
            protocol,
        }));
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
    Ok(Some(Destination { url, protocol }))
}

fn check_url(key: &str, url: &str) -> Result<(), TelemetryError> {
    let uri = url.parse::<tonic::transport::Uri>();
    let is_http = uri.is_ok_and(|uri| uri.scheme_str() == Some("http") && uri.host().is_some());
    if is_http {
        return Ok(());
    }
    let expected = "write http://HOST:PORT of a collector; what goes further is its affair";
    Err(refused(key, url, expected))
}

fn protocol(
    config: &TelemetryConfig,
    signal: Signal,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Protocol, TelemetryError> {
    if let Some(protocol) = config.protocol {
        return Ok(protocol);
    }
    let own = format!("OTEL_EXPORTER_OTLP_{}_PROTOCOL", signal.name);
    for name in [own.as_str(), "OTEL_EXPORTER_OTLP_PROTOCOL"] {
        match variable(name).as_deref() {
            None => {}
            Some("grpc") => return Ok(Protocol::Grpc),
            Some("http/protobuf") => return Ok(Protocol::HttpProtobuf),
            Some(other) => return Err(refused(name, other, "expected grpc or http/protobuf")),
        }
    }
    Ok(Protocol::Grpc)
}

fn sampler(
    config: &TelemetryConfig,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Sampler, TelemetryError> {
    let following = |root| Ok(Sampler::ParentBased(Box::new(root)));
    if let Some(ratio) = config.sample_ratio {
        if !(0.0..=1.0).contains(&ratio) {
            let ratio = ratio.to_string();
            return Err(refused("telemetry.sample_ratio", &ratio, "expected 0 to 1"));
        }
        return following(Sampler::TraceIdRatioBased(ratio));
    }
    let ratio = || {
        let name = "OTEL_TRACES_SAMPLER_ARG";
        let Some(text) = variable(name) else {
            return Ok(1.0);
        };
        let ratio = text
            .parse()
            .ok()
            .filter(|ratio| (0.0..=1.0).contains(ratio));
        ratio.ok_or_else(|| refused(name, &text, "expected 0 to 1"))
    };
    let name = "OTEL_TRACES_SAMPLER";
    match variable(name).as_deref() {
        None => following(Sampler::TraceIdRatioBased(SAMPLE_RATIO)),
        Some("always_on") => Ok(Sampler::AlwaysOn),
        Some("always_off") => Ok(Sampler::AlwaysOff),
        Some("traceidratio") => Ok(Sampler::TraceIdRatioBased(ratio()?)),
        Some("parentbased_always_on") => following(Sampler::AlwaysOn),
        Some("parentbased_always_off") => following(Sampler::AlwaysOff),
        Some("parentbased_traceidratio") => following(Sampler::TraceIdRatioBased(ratio()?)),
        Some(other) => Err(refused(
            name,
            other,
            "expected always_on, always_off or traceidratio, or one of them after parentbased_",
        )),
    }
}

fn refused(key: &str, value: &str, expected: &'static str) -> TelemetryError {
    TelemetryError::Setting {
        key: key.to_owned(),
        value: value.to_owned(),
        expected,
    }
}

#[cfg(test)]
mod tests;
