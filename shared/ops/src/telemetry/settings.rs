//! Where traces and logs go: the configuration, and what the environment says where it is silent.

use std::path::PathBuf;
use std::time::Duration;

use opentelemetry_sdk::trace::Sampler;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;
use tonic::transport::Uri;

use super::TelemetryError;

/// Share of requests that are traced where nobody says.
const SAMPLE_RATIO: f64 = 0.1;

/// One round in so many has spans at the peers where nobody says.
const ROUND_EVERY: u32 = 16;

/// How spans and logs are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OtlpProtocol {
    /// OTLP over gRPC.
    #[serde(rename = "grpc")]
    Grpc,
    /// OTLP over HTTP, as protobuf.
    #[serde(rename = "http/protobuf")]
    HttpProtobuf,
}

/// What is sent to an OpenTelemetry collector, as a section of the configuration. What is absent or empty is
/// taken from the variables that OpenTelemetry defines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// URL of a collector, `http://HOST:PORT` or `https://HOST:PORT`. Empty is `OTEL_EXPORTER_OTLP_ENDPOINT`; where
    /// that is unset too nothing is sent.
    pub endpoint: String,
    /// Absent is `OTEL_EXPORTER_OTLP_PROTOCOL`, or gRPC.
    pub protocol: Option<OtlpProtocol>,
    /// Certificates in PEM of the CAs by which a collector at an `https` URL is believed. Empty is
    /// `OTEL_EXPORTER_OTLP_CERTIFICATE`, or the public CAs.
    pub ca_file: PathBuf,
    /// Share of requests that are traced, 0 to 1, but for those whose client has decided. Absent is
    /// `OTEL_TRACES_SAMPLER`, or one in ten.
    #[schemars(range(min = 0, max = 1))]
    pub sample_ratio: Option<f64>,
    /// Of a traced request the first round and then one in so many have spans at the peers; 0 is none.
    #[default(ROUND_EVERY)]
    pub round_every: u32,
    /// Whether prompts and outputs stand in spans.
    pub capture_text: bool,
    /// Whether log lines go to the collector too.
    pub logs: bool,
    /// Name of the process in traces. Empty is `OTEL_SERVICE_NAME`, or that of its role.
    pub service_name: String,
}

/// Where one kind of signal goes, and how. Headers, batches and attributes of the process are left to the
/// library, which reads their variables itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OtlpDestination {
    /// Path included.
    pub(super) uri: Uri,
    pub(super) protocol: OtlpProtocol,
    /// The CAs that are believed, and the key or variable that names their file; none are the public ones.
    pub(super) authorities: Option<(String, PathBuf)>,
    /// How long an export may take.
    pub(super) timeout: Duration,
}

/// How long an export may take where nobody says.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Returns where the `signal`, `traces` or `logs`, goes; nowhere if nobody says. What `config` leaves out, the signal's
/// own variable says, or the common one.
///
/// # Errors
/// Names the key or variable that cannot be used.
pub(super) fn destination(
    config: &TelemetryConfig,
    signal: &str,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Option<OtlpDestination>, TelemetryError> {
    let kind = signal.to_uppercase();
    let exporter = format!("OTEL_{kind}_EXPORTER");
    match variable(&exporter).as_deref() {
        Some("none") => return Ok(None),
        None | Some("otlp") => {}
        Some(other) => return Err(refused(&exporter, other, "expected otlp or none")),
    }
    let own = format!("OTEL_EXPORTER_OTLP_{kind}_");
    let either = |what: &str| {
        let mut names = [&own, "OTEL_EXPORTER_OTLP_"]
            .map(|start| format!("{start}{what}"))
            .into_iter();
        names.find_map(|name| variable(&name).map(|value| (name, value)))
    };
    let set = |key: &str, value: &str| {
        let is_set = !value.is_empty();
        is_set.then(|| (format!("telemetry.{key}"), value.to_owned()))
    };
    let Some((key, url)) = set("endpoint", &config.endpoint).or_else(|| either("ENDPOINT")) else {
        return Ok(None);
    };
    let uri = url
        .parse::<Uri>()
        .ok()
        .filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some());
    let expected = "write http://HOST:PORT or https://HOST:PORT of a collector";
    let mut uri = uri.ok_or_else(|| refused(&key, &url, expected))?;
    let protocol = match (config.protocol, either("PROTOCOL")) {
        (Some(protocol), _) => protocol,
        (None, None) => OtlpProtocol::Grpc,
        (None, Some((name, value))) => match value.as_str() {
            "grpc" => OtlpProtocol::Grpc,
            "http/protobuf" => OtlpProtocol::HttpProtobuf,
            other => return Err(refused(&name, other, "expected grpc or http/protobuf")),
        },
    };
    // The signal's own variable holds the whole URL.
    if protocol == OtlpProtocol::HttpProtobuf && !key.starts_with(&own) {
        let whole = format!("{}/v1/{signal}", url.trim_end_matches('/'));
        uri = whole.parse().map_err(|_| refused(&key, &url, expected))?;
    }
    let timeout = match either("TIMEOUT") {
        None => Ok(TIMEOUT),
        Some((name, text)) => (text.parse().map(Duration::from_millis))
            .map_err(|_| refused(&name, &text, "expected milliseconds")),
    };
    let authorities =
        set("ca_file", &config.ca_file.to_string_lossy()).or_else(|| either("CERTIFICATE"));
    Ok(Some(OtlpDestination {
        uri,
        protocol,
        authorities: authorities.map(|(key, file)| (key, file.into())),
        timeout: timeout?,
    }))
}

/// Returns which requests are traced; none where the SDK is to read it from the environment.
///
/// # Errors
/// Names the key or variable that cannot be used.
pub(super) fn sampler(
    config: &TelemetryConfig,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Option<Sampler>, TelemetryError> {
    let is_share = |ratio: &f64| (0.0..=1.0).contains(ratio);
    let ratio = config.sample_ratio.unwrap_or(SAMPLE_RATIO);
    if !is_share(&ratio) {
        let key = "telemetry.sample_ratio";
        return Err(refused(key, &ratio.to_string(), "expected 0 to 1"));
    }
    let (name, argument) = ("OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG");
    let Some(named) = variable(name).filter(|_| config.sample_ratio.is_none()) else {
        let root = Sampler::TraceIdRatioBased(ratio);
        return Ok(Some(Sampler::ParentBased(Box::new(root))));
    };
    let root = named.strip_prefix("parentbased_").unwrap_or(&named);
    if !["always_on", "always_off", "traceidratio"].contains(&root) {
        let expected =
            "expected always_on, always_off or traceidratio, or one of them after parentbased_";
        return Err(refused(name, &named, expected));
    }
    match variable(argument).filter(|_| root == "traceidratio") {
        Some(ratio) if !ratio.parse().is_ok_and(|ratio| is_share(&ratio)) => {
            Err(refused(argument, &ratio, "expected 0 to 1"))
        }
        _ => Ok(None),
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
