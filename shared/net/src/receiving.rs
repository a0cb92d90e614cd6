//! Requests on their way in, the one gate of all ports: how long one may take to come, and how many bytes of them are
//! held at once.
//!
//! Over gRPC a call that takes one message is handed on once its request has ended, so nothing is decoded of what never
//! ends; over HTTP so is every request. Until then its bytes count as they come: for its connection and for all ports
//! of the gate. They are given back when the service has the request, over HTTP when it lets the bytes go, or when the
//! request ends. gRPC calls that take a stream of messages are their service's own to bound.

mod budget;
mod message;
mod whole;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body as _;
use tonic::body::Body;
use tonic::codegen::http::header::EXPECT;
use tonic::codegen::http::{Request, Version};
use tonic::service::Routes;
use tonic::transport::server::TcpConnectInfo;
use tower::util::MapRequestLayer;

use crate::fault::beneath;
use crate::listen::ServerConfig;
use crate::slots::Activity;
pub(crate) use budget::ByteBudget;
pub use budget::{RETRY_AFTER, ReceiveError, SMALL_REQUEST_BYTES};
use budget::{RequestBuffer, Reservation};
use message::MessageBody;
use whole::WholeBody;
pub use whole::{DISCARD_TIMEOUT, MAX_DISCARDED_BYTES, MAX_DISCARDED_CHUNKS};

/// Size in bytes of the budget of small requests, used when large ones have used up that of all connections.
pub const MAX_SMALL_BYTES: usize = 16 << 20;

/// Services, and which of their methods take a stream of messages.
#[derive(Debug, Default)]
pub struct Described {
    /// The services.
    pub routes: Routes,
    /// Paths of requests.
    pub client_streaming: Arc<[&'static str]>,
    /// The gate that is shared with another port, if one is.
    pub gate: Option<Gate>,
}

/// What requests carry of the connection that they came on.
#[derive(Clone, Debug)]
pub struct ConnectionContext {
    pub(crate) info: TcpConnectInfo,
    /// The budget of its requests' bytes.
    pub(crate) received: ByteBudget,
    /// What it waits for.
    pub(crate) activity: Arc<Activity>,
    /// Whether the client began with HTTP/2's preface.
    pub(crate) speaks_http2: bool,
}

/// Bounds the requests of all connections of the ports that share it; clones share the budgets.
#[derive(Clone, Debug)]
pub struct Gate {
    timeout: Duration,
    most_of_connection: usize,
    all: ByteBudget,
    small: ByteBudget,
}

impl Gate {
    /// Creates a gate with the bounds of `config`.
    pub fn new(config: &ServerConfig) -> Self {
        Self {
            timeout: Duration::from_millis(config.receive_timeout_ms.get()),
            most_of_connection: config.max_receiving_bytes_per_connection.get(),
            all: ByteBudget::new(
                "server.max_receiving_bytes",
                config.max_receiving_bytes.get(),
            ),
            small: ByteBudget::new("small requests", MAX_SMALL_BYTES),
        }
    }

    /// Creates the budget of one connection.
    pub(crate) fn of_connection(&self) -> ByteBudget {
        let setting = "server.max_receiving_bytes_per_connection";
        ByteBudget::new(setting, self.most_of_connection)
    }

    fn held(&self, received: ByteBudget) -> RequestBuffer {
        let budgets = [received, self.all.clone()];
        RequestBuffer::new(Reservation::new(budgets, self.small.clone()), self.timeout)
    }

    /// Returns the layer that bounds gRPC calls, except those to `client_streaming`, which take streams of messages.
    pub fn before_services(
        self,
        client_streaming: Arc<[&'static str]>,
    ) -> MapRequestLayer<impl Fn(Request<Body>) -> Request<Body> + Clone + Send + 'static> {
        MapRequestLayer::new(move |request| self.bound_call(&client_streaming, request))
    }

    fn bound_call(
        &self,
        client_streaming: &[&'static str],
        mut request: Request<Body>,
    ) -> Request<Body> {
        let connection = request.extensions_mut().remove::<ConnectionContext>();
        let received = match connection {
            Some(connection) => {
                // What tells a request's remote address.
                request.extensions_mut().insert(connection.info);
                connection.received
            }
            // Every connection of a server has it.
            None => self.all.clone(),
        };
        if client_streaming.contains(&request.uri().path()) {
            return request;
        }
        let held = self.held(received);
        request.map(|body| Body::new(MessageBody::new(body, held)))
    }

    /// Bounds the body of an HTTP request that came on `connection`, to at most `most` bytes.
    pub(crate) fn bound_request(
        &self,
        connection: &ConnectionContext,
        most: usize,
        mut request: Request<axum::body::Body>,
    ) -> Request<axum::body::Body> {
        request.extensions_mut().insert(connection.info.clone());
        if request.body().is_end_stream() {
            return request;
        }
        let held = self.held(connection.received.clone());
        // HTTP/2 can end a stream and keep its connection; and who awaits leave to send its body sees the refusal.
        let is_discarded =
            request.version() < Version::HTTP_2 && !request.headers().contains_key(EXPECT);
        request.map(|body| axum::body::Body::new(WholeBody::new(body, held, most, is_discarded)))
    }
}

/// Reads a body that a [`Gate`] bounds. Its bytes count until their last slice is dropped.
///
/// # Errors
/// [`ReceiveError`], with the gate's reason.
pub async fn whole(body: axum::body::Body) -> Result<Bytes, ReceiveError> {
    let read = axum::body::to_bytes(body, usize::MAX).await;
    read.map_err(|error| {
        let refused = beneath(&error).find_map(|cause| cause.downcast_ref::<ReceiveError>());
        refused.cloned().unwrap_or(ReceiveError::CutShort)
    })
}
