//! Requests on their way in: how long one may take to come, and how many bytes of them are held at once.
//!
//! A call that takes one message is handed on once its request has ended, so nothing is decoded of what never ends.
//! Until then its bytes count: for its connection and for the server in all; they are given back when the service
//! has the request, or the request ends. Calls that take a stream of messages are their service's own to bound.

mod body;
mod budget;

use std::sync::Arc;
use std::time::Duration;

use tonic::body::Body;
use tonic::codegen::http::Request;
use tonic::service::Routes;
use tonic::transport::server::TcpConnectInfo;
use tower::util::MapRequestLayer;

use crate::lifecycle::config::ServerConfig;
use body::ReceivedBody;
pub(crate) use budget::Budget;
use budget::Share;

/// How long a client should wait for whose request there is no room.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Services, and which of their methods take a stream of messages.
#[derive(Debug)]
pub struct Described {
    pub(crate) routes: Routes,
    /// Paths of requests.
    pub(crate) client_streaming: Arc<[&'static str]>,
}

/// Services none of whose methods takes a stream of messages.
impl From<Routes> for Described {
    fn from(routes: Routes) -> Self {
        Self {
            routes,
            client_streaming: Arc::default(),
        }
    }
}

/// What is known of a connection beside each of its requests.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) info: TcpConnectInfo,
    /// Bytes of its requests.
    pub(crate) received: Budget,
}

/// Bounds the requests of all connections of a server.
#[derive(Clone, Debug)]
pub(crate) struct ReceivingLayer {
    timeout: Duration,
    all: Budget,
    client_streaming: Arc<[&'static str]>,
}

impl ReceivingLayer {
    pub(crate) fn new(config: &ServerConfig, client_streaming: Arc<[&'static str]>) -> Self {
        Self {
            timeout: Duration::from_millis(config.receive_timeout_ms.get()),
            all: Budget::new(
                "server.max_receiving_bytes",
                config.max_receiving_bytes.get(),
            ),
            client_streaming,
        }
    }

    /// What counts the bytes of one connection.
    pub(crate) fn of_connection(most: usize) -> Budget {
        let setting = "server.max_receiving_bytes_per_connection";
        Budget::new(setting, most)
    }

    /// What stands before all services.
    pub(crate) fn layer(
        self,
    ) -> MapRequestLayer<impl Fn(Request<Body>) -> Request<Body> + Clone + Send + 'static> {
        MapRequestLayer::new(move |request| self.bound(request))
    }

    fn bound(&self, mut request: Request<Body>) -> Request<Body> {
        let connection = request.extensions_mut().remove::<Connection>();
        let received = match connection {
            Some(connection) => {
                // What tells a request's remote address.
                request.extensions_mut().insert(connection.info);
                connection.received
            }
            // Every connection of a server has it.
            None => self.all.clone(),
        };
        if self.client_streaming.contains(&request.uri().path()) {
            return request;
        }
        let share = Share::new([received, self.all.clone()]);
        let timeout = self.timeout;
        request.map(|body| Body::new(ReceivedBody::new(body, share, timeout)))
    }
}
