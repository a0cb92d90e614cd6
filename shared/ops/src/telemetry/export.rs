//! Sending spans and log records to a collector, beside the requests they tell of.
//!
//! The SDK's batch processors gather them in bounded queues and send them from threads of their own: what
//! finds no room is dropped, and no request waits for a collector.

use std::fmt::Debug;
use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use net::connector::Connector;
use net::log_throttle::LogThrottle;
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_otlp::{
    LogExporter, SpanExporter, WithExportConfig, WithHttpConfig, WithTonicConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::LogBatch;
use opentelemetry_sdk::trace::SpanData;
use tokio::runtime::Handle;
use tonic::transport::{Channel, Endpoint, Uri};

use super::TelemetryError;
use super::settings::{OtlpDestination, OtlpProtocol};

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
    failures: LogThrottle,
}

/// Builds an exporter of the library: of spans and of logs they are alike, but share no trait.
macro_rules! exporter {
    ($exporter:ty, $destination:expr) => {
        match $destination.protocol {
            OtlpProtocol::Grpc => <$exporter>::builder()
                .with_tonic()
                .with_channel(channel($destination)?)
                .build(),
            OtlpProtocol::HttpProtobuf => <$exporter>::builder()
                .with_http()
                .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
                .with_http_client(http($destination)?)
                .with_endpoint($destination.uri.to_string())
                .build(),
        }
    };
}

/// Returns an exporter of spans.
///
/// # Errors
/// If the destination's CAs, or the variables that the exporter reads itself, cannot be used.
pub(super) fn spans(
    destination: &OtlpDestination,
) -> Result<Exporting<SpanExporter>, TelemetryError> {
    let exporter = exporter!(SpanExporter, destination)?;
    Ok(Exporting::new(exporter, "spans", &destination.uri))
}

/// Returns an exporter of log records.
///
/// # Errors
/// As [`spans`].
pub(super) fn logs(
    destination: &OtlpDestination,
) -> Result<Exporting<LogExporter>, TelemetryError> {
    let exporter = exporter!(LogExporter, destination)?;
    Ok(Exporting::new(exporter, "logs", &destination.uri))
}

impl<E> Exporting<E> {
    fn new(exporter: E, what: &'static str, url: &Uri) -> Self {
        Self {
            exporter,
            what,
            url: url.to_string(),
            runtime: Handle::current(),
            failures: LogThrottle::every(SILENCE),
        }
    }

    /// Awaits the `export` of `count` items where Tokio is.
    async fn run(&self, count: u64, export: impl Future<Output = OTelSdkResult>) -> OTelSdkResult {
        let mut export = pin!(export);
        let exported = poll_fn(|context| {
            let _entered = self.runtime.enter();
            export.as_mut().poll(context)
        });
        let exported = exported.await;
        if let Err(error) = &exported
            && let Some(before) = self.failures.passes_many(count)
        {
            let (what, url, lost) = (self.what, &self.url, before + count);
            tracing::warn!(url, %error, lost, "the collector takes no {what}");
        }
        exported
    }
}

impl opentelemetry_sdk::trace::SpanExporter for Exporting<SpanExporter> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len() as u64;
        self.run(count, self.exporter.export(batch)).await
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl opentelemetry_sdk::logs::LogExporter for Exporting<LogExporter> {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        let count = batch.iter().count() as u64;
        self.run(count, self.exporter.export(batch)).await
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// Speaks gRPC with the collector. It connects with its first export and again after every loss.
///
/// # Errors
/// If the CAs cannot be used.
///
/// # Panics
/// Outside a Tokio runtime.
pub(super) fn channel(destination: &OtlpDestination) -> Result<Channel, TelemetryError> {
    let endpoint = Endpoint::from(destination.uri.clone())
        .connect_timeout(destination.timeout)
        .timeout(destination.timeout);
    Ok(endpoint.connect_with_connector_lazy(connector(destination, b"h2")?))
}

/// Speaks HTTP with it.
///
/// # Errors
/// As [`channel`].
pub(super) fn http(
    destination: &OtlpDestination,
) -> Result<HyperClient<Connector>, TelemetryError> {
    let connector = connector(destination, b"http/1.1")?;
    Ok(HyperClient::new(connector, destination.timeout, None))
}

/// Returns what opens connections to it.
///
/// # Errors
/// If the CAs cannot be used.
pub(super) fn connector(
    destination: &OtlpDestination,
    protocol: &'static [u8],
) -> Result<Connector, TelemetryError> {
    let authorities = destination.authorities.as_ref();
    let authorities = authorities.map(|(key, file)| (&**key, &**file));
    let (uri, timeout) = (&destination.uri, destination.timeout);
    Ok(Connector::to_server(uri, authorities, protocol, timeout)?)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};
    use std::sync::Arc;

    use opentelemetry_sdk::error::OTelSdkError;

    use super::*;

    #[test]
    fn a_collector_that_takes_nothing_is_told_of_at_once_and_then_seldom() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        let exporting = Exporting {
            exporter: (),
            what: "spans",
            url: "http://collector:4317".to_owned(),
            runtime: runtime.handle().clone(),
            failures: LogThrottle::every(SILENCE),
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
            runtime.block_on(tokio::time::advance(SILENCE));
            export(5, fails());
        });
        let mut text = String::new();
        (&*log).rewind().unwrap();
        (&*log).read_to_string(&mut text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let reported = "the collector takes no spans";
        assert_eq!(lines.len(), 2, "{text}");
        for (line, lost) in lines.iter().zip(["lost=2", "lost=12"]) {
            let parts = ["WARN", reported, &exporting.url, "refused", lost];
            assert!(parts.iter().all(|part| line.contains(part)), "{line}");
        }
    }
}
