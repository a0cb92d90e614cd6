//! An OpenTelemetry collector on a loopback port, and what it was sent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use net::listen::ServerConfig;
use net::receiving::Described;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use ops::health::Health;
use ops::lifecycle::serve;
use ops::process::Process;
use tokio::net::TcpListener;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// A span, and where it comes from.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// `service.name`.
    pub(super) service: String,
    pub(super) span: Span,
}

/// Takes spans over gRPC.
#[derive(Clone, Default)]
pub(super) struct Collector {
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Collector {
    /// Starts one; it lives as long as the test.
    pub(super) async fn start() -> (Self, SocketAddr) {
        let collector = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let service = TraceServiceServer::new(collector.clone());
        let serving = Server::builder()
            .add_service(service)
            .serve_with_incoming(TcpIncoming::from(listener));
        tokio::spawn(serving);
        (collector, address)
    }

    /// Takes spans over TLS on `listener`, with the certificates of `process`.
    pub(super) async fn serve(self, listener: TcpListener, process: Process) {
        let services = Described {
            routes: Routes::new(TraceServiceServer::new(self)),
            ..Described::default()
        };
        let health = Health::new("collector", &process);
        let (config, forever) = (ServerConfig::default(), std::future::pending());
        let served = serve(
            services,
            listener,
            &config,
            &process,
            &health,
            forever,
            || true,
        );
        served.await.expect("it serves");
    }

    /// Everything that came, in the order in which it began.
    pub(super) fn spans(&self) -> Spans {
        let mut spans = self.seen.lock().expect("no panic").clone();
        spans.sort_by_key(|seen| (seen.span.start_time_unix_nano, seen.span.end_time_unix_nano));
        Spans(spans)
    }
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut seen = self.seen.lock().expect("no panic");
        for resource in request.into_inner().resource_spans {
            let attributes = resource.resource.unwrap_or_default().attributes;
            let service = text(&attributes, "service.name").unwrap_or_default();
            for span in resource
                .scope_spans
                .into_iter()
                .flat_map(|scope| scope.spans)
            {
                let service = service.clone();
                seen.push(Seen { service, span });
            }
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// Spans that were collected.
pub(super) struct Spans(pub(super) Vec<Seen>);

impl Spans {
    /// The only one of this name.
    pub(super) fn one(&self, name: &str) -> &Seen {
        let found = self.all(name);
        assert_eq!(found.len(), 1, "{name}: {:?}", self.names());
        found[0]
    }

    /// All of this name.
    pub(super) fn all(&self, name: &str) -> Vec<&Seen> {
        let named = self.0.iter().filter(|seen| seen.span.name == name);
        named.collect()
    }

    /// Those within `parent`.
    pub(super) fn within(&self, parent: &Seen) -> Vec<&Seen> {
        let children = self.0.iter();
        let is_child = |seen: &&Seen| seen.span.parent_span_id == parent.span.span_id;
        children.filter(is_child).collect()
    }

    /// Names of those within `parent`.
    pub(super) fn names_within(&self, parent: &Seen) -> Vec<&str> {
        let children = self.within(parent).into_iter();
        children.map(|seen| seen.span.name.as_str()).collect()
    }

    fn names(&self) -> Vec<(&str, &str)> {
        let names = self.0.iter();
        names
            .map(|seen| (seen.service.as_str(), seen.span.name.as_str()))
            .collect()
    }
}

impl Seen {
    pub(super) fn int(&self, key: &str) -> Option<i64> {
        int(&self.span.attributes, key)
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        text(&self.span.attributes, key)
    }

    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        value(&self.span.attributes, key)
    }

    /// The attributes of its events of this name.
    pub(super) fn events(&self, name: &str) -> Vec<&[KeyValue]> {
        let events = self.span.events.iter();
        let named = events.filter(|event| event.name == name);
        named.map(|event| event.attributes.as_slice()).collect()
    }

    /// Whether it failed.
    pub(super) fn has_failed(&self) -> bool {
        self.span
            .status
            .as_ref()
            .is_some_and(|status| status.code == 2)
    }

    /// Every text in it.
    pub(super) fn texts(&self) -> String {
        format!("{:?}", self.span)
    }
}

pub(super) fn int(attributes: &[KeyValue], key: &str) -> Option<i64> {
    match value(attributes, key)? {
        Value::IntValue(value) => Some(*value),
        other => panic!("{key} is no number: {other:?}"),
    }
}

pub(super) fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    match value(attributes, key)? {
        Value::StringValue(value) => Some(value.clone()),
        other => panic!("{key} is no text: {other:?}"),
    }
}

fn value<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    let mut found = attributes.iter().filter(|attribute| attribute.key == key);
    let first = found.next()?;
    assert!(found.next().is_none(), "{key} is told twice");
    let AnyValue { value } = first.value.as_ref()?;
    value.as_ref()
}
