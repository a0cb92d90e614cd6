//! Sending spans and log records to a collector, beside the requests they tell of.
//!
//! The SDK's batch processors gather them in bounded queues and send them from threads of their own: what
//! finds no room is dropped, and no request waits for a collector.

use std::fmt::Debug;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use opentelemetry_otlp::{
    ExporterBuildError, LogExporter, SpanExporter, WithExportConfig, WithHttpConfig,
    WithTonicConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::logs::LogBatch;
use opentelemetry_sdk::trace::SpanData;
use tokio::runtime::Handle;

use super::settings::{Destination, Protocol};
use super::{TelemetryError, connection};

/// How often it is said that a collector takes nothing.
const SILENCE: Duration = Duration::from_secs(60);

/// An exporter that says now and then that it cannot export. It runs where Tokio's clock is known, which the
/// SDK's own threads are not.
#[derive(Debug)]
pub(super) struct Exporting<E> {
    exporter: E,
    what: &'static str,
    url: String,
    runtime: Handle,
    failures: Mutex<Failures>,
}

#[derive(Debug, Default)]
struct Failures {
    told: Option<Instant>,
    /// Spans or records lost since then.
    lost: usize,
}

/// An exporter of spans.
///
/// # Errors
/// If the destination's CAs, or the variables that the exporter reads itself, cannot be used.
pub(super) fn spans(destination: &Destination) -> Result<Exporting<SpanExporter>, TelemetryError> {
    let exporter = match destination.protocol {
        Protocol::Grpc => SpanExporter::builder()
            .with_tonic()
            .with_channel(connection::channel(destination)?)
            .build(),
        Protocol::HttpProtobuf => SpanExporter::builder()
            .with_http()
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_http_client(connection::http(destination)?)
            .with_endpoint(&destination.url)
            .build(),
    };
    Exporting::new(exporter, "spans", destination)
}

/// An exporter of log records.
///
/// # Errors
/// As [`spans`].
pub(super) fn logs(destination: &Destination) -> Result<Exporting<LogExporter>, TelemetryError> {
    let exporter = match destination.protocol {
        Protocol::Grpc => LogExporter::builder()
            .with_tonic()
            .with_channel(connection::channel(destination)?)
            .build(),
        Protocol::HttpProtobuf => LogExporter::builder()
            .with_http()
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_http_client(connection::http(destination)?)
            .with_endpoint(&destination.url)
            .build(),
    };
    Exporting::new(exporter, "logs", destination)
}

impl<E> Exporting<E> {
    fn new(
        exporter: Result<E, ExporterBuildError>,
        what: &'static str,
        destination: &Destination,
    ) -> Result<Self, TelemetryError> {
        Ok(Self {
            exporter: exporter?,
            what,
            url: destination.url.clone(),
            runtime: Handle::current(),
            failures: Mutex::default(),
        })
    }

    /// Awaits the `export` of `count` items where Tokio is.
    async fn run(
        &self,
        count: usize,
        export: impl Future<Output = OTelSdkResult>,
    ) -> OTelSdkResult {
        let mut export = pin!(export);
        let exported = poll_fn(|context| {
            let _entered = self.runtime.enter();
            export.as_mut().poll(context)
        });
        let exported = exported.await;
        if let Err(error) = &exported {
            self.tell(count, error);
        }
        exported
    }

    fn tell(&self, count: usize, error: &OTelSdkError) {
        // Two numbers are as good after a panic as before.
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.lost += count;
        if failures.told.is_some_and(|told| told.elapsed() < SILENCE) {
            return;
        }
        failures.told = Some(Instant::now());
        let lost = std::mem::take(&mut failures.lost);
        let (what, url) = (self.what, &self.url);
        tracing::warn!(url, %error, lost, "the collector takes no {what}");
    }
}

impl opentelemetry_sdk::trace::SpanExporter for Exporting<SpanExporter> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len();
        self.run(count, self.exporter.export(batch)).await
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl opentelemetry_sdk::logs::LogExporter for Exporting<LogExporter> {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        let count = batch.iter().count();
        self.run(count, self.exporter.export(batch)).await
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_collector_that_takes_nothing_is_told_of_at_once_and_then_seldom() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.unwrap();
        let exporting = Exporting {
            exporter: (),
            what: "spans",
            url: "http://collector:4317".to_owned(),
            runtime: runtime.handle().clone(),
            failures: Mutex::default(),
        };
        let log = Arc::new(tempfile::tempfile().unwrap());
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(Arc::clone(&log))
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let export = |count, outcome: OTelSdkResult| {
                let _ = runtime.block_on(exporting.run(count, async { outcome }));
            };
            let fails = || Err(OTelSdkError::InternalFailure("refused".to_owned()));
            export(1, Ok(()));
            for count in [2, 3, 4] {
                export(count, fails());
            }
            let long_ago = Instant::now().checked_sub(SILENCE);
            exporting.failures.lock().unwrap().told = long_ago;
            export(5, fails());
        });
        let mut text = String::new();
        (&*log).rewind().unwrap();
        (&*log).read_to_string(&mut text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let told = "the collector takes no spans";
        assert_eq!(lines.len(), 2, "{text}");
        for (line, lost) in lines.iter().zip(["lost=2", "lost=12"]) {
            let parts = ["WARN", told, &exporting.url, "refused", lost];
            assert!(parts.iter().all(|part| line.contains(part)), "{line}");
        }
    }
}
