//! Logs, one line an event, on stderr (stdout belongs to what the product prints); and what of logs and
//! traces goes to a collector.

mod export;
mod filter;
mod lines;
mod settings;

use std::io::{self, IsTerminal};
use std::time::Duration;

use net::tls::TlsError;
use opentelemetry::KeyValue;
use opentelemetry_appender_tracing::layer::{OpenTelemetryTracingBridge, TracingSpanAttributes};
use opentelemetry_otlp::ExporterBuildError;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracerProvider};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use crate::trace::{TraceOptions, Traces};
use lines::JsonLines;

pub use filter::{FilterError, LogFilter, LogLevels};
pub use lines::error_line;
pub use settings::{OtlpProtocol, TelemetryConfig};

/// How long a process that ends waits for its last spans and log records to be taken.
const FLUSH: Duration = Duration::from_secs(3);

/// The attribute that tells replicas of a service apart.
const INSTANCE: &str = "service.instance.id";

/// Most events of one span: rounds of a long output. The SDK's default would be over after 128 of them.
const EVENTS: u32 = 4_096;

/// How log lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people; in colour on a terminal.
    #[default]
    Text,
    /// One JSON object a line, for collectors.
    Json,
}

/// What is logged and how, as a section of a service's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// How lines are written.
    pub format: LogFormat,
    /// Which events are logged: `info,verifier=debug`.
    pub filter: LogFilter,
}

/// Why logs or traces could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// A setting, or the variable that stands in for it, cannot be used.
    #[error("{key}: {value:?} cannot be used, {expected}")]
    Setting {
        /// The key or the variable.
        key: String,
        /// What it says.
        value: String,
        /// What it may say.
        expected: &'static str,
    },

    /// The CAs by which a collector is to be believed cannot be used.
    #[error(transparent)]
    Authorities(#[from] TlsError),

    /// What the exporter reads itself cannot be used.
    #[error("telemetry: {0}")]
    Exporter(#[from] ExporterBuildError),

    /// The process has a logger already.
    #[error("logging is already set up: {0}")]
    Installed(#[from] TryInitError),
}

impl TelemetryError {
    /// Returns the key or the variable at fault; the section where no single one is.
    pub fn key(&self) -> &str {
        match self {
            Self::Setting { key, .. } => key,
            Self::Authorities(TlsError::File(file)) => &file.setting,
            _ => "telemetry",
        }
    }
}

/// Returns what [`start`] would refuse of `config`, and of the environment where that is silent. The CAs of a collector
/// are read if `with_files`.
pub fn check(config: &TelemetryConfig, with_files: bool) -> Vec<TelemetryError> {
    let environment = |name: &str| std::env::var(name).ok();
    let variable = |name: &str| set_variable(&environment, name);
    if is_disabled(&variable) {
        return Vec::new();
    }
    let sent = |signal| {
        let destination = settings::destination(config, signal, &variable)?;
        if let Some(destination) = destination.filter(|_| with_files) {
            export::connector(&destination, b"h2")?;
        }
        Ok(())
    };
    let mut outcomes = vec![
        settings::sampler(config, &variable).map(drop),
        sent("traces"),
    ];
    if config.logs {
        outcomes.push(sent("logs"));
    }
    outcomes.into_iter().filter_map(Result::err).collect()
}

/// Returns a variable of the environment. OpenTelemetry takes an empty one for one that is not set.
fn set_variable(environment: &impl Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    environment(name).filter(|value| !value.is_empty())
}

/// Returns whether the environment says that nothing is sent.
fn is_disabled(variable: &impl Fn(&str) -> Option<String>) -> bool {
    let disabled = variable("OTEL_SDK_DISABLED");
    disabled.is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// Sets up the process's logger. Only a `main` should call this or [`start`], and once.
///
/// # Errors
/// [`TelemetryError`] if a logger is there already.
pub fn init(config: &LogConfig) -> Result<(), TelemetryError> {
    install(config, None).map(drop)
}

/// Sets up the process's logger, and what is sent to a collector. `role` names the process where neither
/// `telemetry` nor the environment does.
///
/// # Errors
/// [`TelemetryError`] naming the setting or variable that cannot be used.
///
/// # Panics
/// Outside a Tokio runtime.
pub fn start(
    log: &LogConfig,
    telemetry: &TelemetryConfig,
    role: &str,
) -> Result<Telemetry, TelemetryError> {
    let mut started = Telemetry::new(telemetry, role, &|name| std::env::var(name).ok())?;
    started.levels = install(log, started.logger.as_ref())?;
    Ok(started)
}

/// What a process sends to a collector.
#[derive(Debug, Default)]
pub struct Telemetry {
    tracer: Option<SdkTracerProvider>,
    logger: Option<SdkLoggerProvider>,
    /// What the services of the process trace with.
    pub traces: Traces,
    /// Which events are logged.
    pub levels: LogLevels,
}

impl Telemetry {
    /// Returns the same without a logger of the process: for tests, and for measurements within one process.
    ///
    /// # Errors
    /// [`TelemetryError`] naming the setting or variable that cannot be used.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn new(
        config: &TelemetryConfig,
        role: &str,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Result<Self, TelemetryError> {
        let variable = |name: &str| set_variable(environment, name);
        if is_disabled(&variable) {
            return Ok(Self::default());
        }
        let named = Some(config.service_name.clone()).filter(|name| !name.is_empty());
        let resource = resource(named.or_else(|| variable("OTEL_SERVICE_NAME")), role);
        let sampler = settings::sampler(config, &variable)?;
        let destination = |signal| settings::destination(config, signal, &variable);
        let mut started = Self::default();
        if let Some(destination) = destination("traces")? {
            let mut provider = SdkTracerProvider::builder();
            if let Some(sampler) = sampler {
                provider = provider.with_sampler(sampler);
            }
            let provider = provider
                .with_batch_exporter(export::spans(&destination)?)
                .with_max_events_per_span(EVENTS)
                .with_resource(resource.clone())
                .build();
            let options = TraceOptions {
                round_every: config.round_every,
                capture_text: config.capture_text,
            };
            started.traces = Traces::new(provider.clone(), options);
            started.tracer = Some(provider);
        }
        if config.logs
            && let Some(destination) = destination("logs")?
        {
            let provider = SdkLoggerProvider::builder()
                .with_batch_exporter(export::logs(&destination)?)
                .with_resource(resource);
            started.logger = Some(provider.build());
        }
        Ok(started)
    }

    /// Returns how long [`Telemetry::flush`] takes at most.
    pub fn flush_limit(&self) -> Duration {
        if self.tracer.is_some() || self.logger.is_some() {
            FLUSH
        } else {
            Duration::ZERO
        }
    }

    /// Sends what is left, and waits for it a moment.
    pub async fn flush(self) {
        let Self { tracer, logger, .. } = self;
        // The SDK blocks until it is done.
        let spans = move || tracer.map(|tracer| tracer.shutdown_with_timeout(FLUSH));
        let logs = move || logger.map(|logger| logger.shutdown_with_timeout(FLUSH));
        let (spans, logs) = (spawn_blocking(spans), spawn_blocking(logs));
        for flushing in [spans, logs] {
            if let Ok(Some(Err(error))) = flushing.await {
                tracing::warn!(%error, "the last spans or log records may be lost");
            }
        }
    }
}

/// Returns what is told of the process: what the environment says of it, and in any case a name, and what tells it from
/// other replicas.
fn resource(service_name: Option<String>, role: &str) -> Resource {
    let instance = RandomIdGenerator::default().new_trace_id().to_string();
    let resource = Resource::builder_empty()
        .with_attribute(KeyValue::new(INSTANCE, instance))
        .with_service_name(format!("outrider-{role}"))
        // What the environment tells is stronger than what stands before it.
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_detector(Box::new(EnvResourceDetector::new()))
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    match service_name {
        Some(name) => resource.with_service_name(name).build(),
        None => resource.build(),
    }
}

fn install(
    config: &LogConfig,
    logger: Option<&SdkLoggerProvider>,
) -> Result<LogLevels, TelemetryError> {
    let mut levels = LogLevels::default();
    let mut lines = fmt::layer().with_writer(io::stderr);
    if !io::stderr().is_terminal() {
        lines.set_ansi(false);
    }
    let lines = match config.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines
            .fmt_fields(JsonFields::new())
            .event_format(JsonLines)
            .boxed(),
    };
    let lines = lines.with_filter(levels.add(&config.filter));
    let bridge = logger.map(|logger| {
        let bridge = OpenTelemetryTracingBridge::builder(logger)
            .with_tracing_span_attributes(TracingSpanAttributes::allowlist(["request_id"]));
        // What is said while log records are sent must not become log records.
        let wanted = (levels.add(&config.filter))
            .and(filter_fn(|metadata| !is_of_export(metadata.target())));
        bridge.build().with_filter(wanted)
    });
    tracing_subscriber::registry()
        .with(lines)
        .with(bridge)
        .try_init()?;
    Ok(levels)
}

/// Returns whether `target` has a part in sending telemetry.
fn is_of_export(target: &str) -> bool {
    let root = target.split("::").next().unwrap_or_default();
    let sends = ["h2", "hyper", "hyper_util", "tonic", "tower"].contains(&root);
    sends || root.starts_with("opentelemetry") || target.starts_with(module_path!())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_one_role_can_be_told_apart() {
        let instance = || {
            let resource = resource(None, "drafter");
            let name = resource.get(&"service.name".into()).expect("a name");
            assert_eq!(name.as_str(), "outrider-drafter");
            let instance = resource.get(&INSTANCE.into()).expect("an instance");
            instance.to_string()
        };
        assert_eq!(instance().len(), 32);
        assert_ne!(instance(), instance());
    }

    #[test]
    fn what_is_disabled_or_left_empty_sends_nothing() {
        let somewhere = TelemetryConfig {
            endpoint: "http://here:4317".to_owned(),
            ..TelemetryConfig::default()
        };
        for (config, variable) in [
            (somewhere, ("OTEL_SDK_DISABLED", "True")),
            (
                TelemetryConfig::default(),
                ("OTEL_EXPORTER_OTLP_ENDPOINT", ""),
            ),
        ] {
            let environment = |name: &str| (name == variable.0).then(|| variable.1.to_owned());
            let telemetry = Telemetry::new(&config, "drafter", &environment).expect("in order");
            assert!(telemetry.tracer.is_none() && telemetry.logger.is_none());
        }
    }

    #[test]
    fn what_is_said_of_sending_is_not_sent() {
        for target in [
            "h2::codec",
            "hyper_util::client",
            "tonic::transport",
            "opentelemetry_sdk",
            "ops::telemetry::export",
        ] {
            assert!(is_of_export(target), "{target}");
        }
        for target in ["ops::lifecycle", "coordinator::driver", "h2o", ""] {
            assert!(!is_of_export(target), "{target}");
        }
    }

    #[test]
    fn a_second_logger_is_an_error() {
        let config = LogConfig {
            filter: "off".parse().expect("a level"),
            ..LogConfig::default()
        };
        init(&config).unwrap();
        assert!(matches!(init(&config), Err(TelemetryError::Installed(_))));
    }
}
