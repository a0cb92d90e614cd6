//! Where traces and logs go: the configuration, and what the environment says where it is silent.

mod destination;

use std::path::PathBuf;

use opentelemetry_sdk::trace::Sampler;
use serde::{Deserialize, Serialize};

use super::TelemetryError;
use destination::{LOGS, Signal, TRACES, destination};

pub(super) use destination::Destination;

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
    /// URL of a collector, `http://HOST:PORT` or `https://HOST:PORT`. Empty is `OTEL_EXPORTER_OTLP_ENDPOINT`; where that is unset too
    /// nothing is sent.
    pub endpoint: String,
    /// Absent is `OTEL_EXPORTER_OTLP_PROTOCOL`, or gRPC.
    pub protocol: Option<Protocol>,
    /// Certificates in PEM of the CAs by which a collector at an `https` URL is believed. Empty is
    /// `OTEL_EXPORTER_OTLP_CERTIFICATE`, or the public CAs.
    pub ca_file: PathBuf,
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
            ca_file: PathBuf::new(),
            sample_ratio: None,
            round_every: ROUND_EVERY,
            capture_text: false,
            logs: false,
            service_name: String::new(),
        }
    }
}

/// The settings in effect. Headers, batches and attributes of the process are left to the exporter, which
/// reads their variables itself.
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
