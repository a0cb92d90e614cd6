//! Serving HTTP/1.1 and HTTP/2 on a port of its own, beside a gRPC service and for as long as it.
//!
//! Connections come in as those of gRPC do, through the same [`Gate`]: bounded in number, in the time to their first
//! bytes, and in what of their requests is held. Beyond that, each must send the headers of its requests in time, those
//! of the first one sooner, and take its answers. What an answer holds is bounded by whoever writes it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::time::{sleep, sleep_until, timeout};
use tokio_stream::StreamExt;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{ServiceExt, service_fn};

use crate::incoming::{IncomingConnections, OpenedConnection, PortProtocol, silence};
use crate::listen::ServerConfig;
use crate::log_throttle::LogThrottle;
use crate::receiving::Gate;
use crate::slots::{Activity, Working};
use crate::tls::Tls;
use crate::{KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, MAX_HEADER_BYTES};

/// Longest time between asking a connection to close and cutting it.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(5);

/// Most bytes of the headers of an HTTP/1 request.
pub const MAX_HTTP1_HEADER_BYTES: usize = 64 << 10;

/// Flow-control window of an HTTP/2 connection and of each of its streams, in bytes.
pub const WINDOW_BYTES: u32 = 1 << 20;

/// Send buffer of an HTTP/2 stream, in bytes.
pub const SEND_BUFFER_BYTES: usize = 64 << 10;

/// The routes of a port, and the limit of their requests.
pub struct HttpRoutes {
    /// The routes.
    pub router: Router,
    /// Most bytes of a request's body.
    pub max_request_bytes: usize,
    /// Longest time for which a connection waits for a client that neither sends a request nor reads its answers. The
    /// headers of a further request on a connection of HTTP/1 must come in this time, those of the first one within
    /// [`OPENING_TIMEOUT`](crate::OPENING_TIMEOUT) of its first bytes.
    pub idle_timeout: Duration,
}

/// Serves `front` on `listener`, behind `gate`, until `draining` completes. Then, after the delay of
/// `config`, no connection is accepted any more, and what is open may go on until the end of the grace. No connection
/// outlives this future.
pub async fn serve(
    front: HttpRoutes,
    listener: TcpListener,
    config: &ServerConfig,
    gate: Gate,
    tls: Tls,
    draining: impl Future<Output = ()>,
) {
    let severed = CancellationToken::new();
    let _sever = severed.clone().drop_guard();
    let mut incoming = IncomingConnections::new(
        listener,
        PortProtocol::Http,
        tls,
        config,
        gate.clone(),
        severed,
    );
    let connections = Arc::new(HttpConnections {
        front,
        gate,
        max_streams: config.max_streams_per_connection.get(),
        closing: CancellationToken::new(),
        open: TaskTracker::new(),
        failed: LogThrottle::default(),
    });
    let delay = Duration::from_millis(config.drain_delay_ms);
    let drained = async {
        draining.await;
        sleep(delay).await;
    };
    let accepting = async {
        while let Some(Ok(opened)) = incoming.next().await {
            let serving = Arc::clone(&connections).serve(opened);
            connections.open.spawn(serving);
        }
    };
    tokio::select! {
        () = accepting => {}
        () = drained => {}
    }
    drop(incoming);
    connections.closing.cancel();
    connections.open.close();
    let left = config.drain_grace().saturating_sub(delay);
    if timeout(left, connections.open.wait()).await.is_err() {
        tracing::warn!("drain grace is over; cutting the HTTP connections still open");
    }
}

/// The connections of one port.
struct HttpConnections {
    front: HttpRoutes,
    gate: Gate,
    max_streams: u32,
    /// Cancelled when each is to end after what it is about.
    closing: CancellationToken,
    open: TaskTracker,
    failed: LogThrottle,
}

impl HttpConnections {
    /// Serves one connection to its end, or until it is cut.
    async fn serve(self: Arc<Self>, opened: OpenedConnection) {
        let client = opened.context.info.remote_addr();
        let cut = opened.cut();
        let served = tokio::select! {
            served = serve_connection(opened, Arc::clone(&self)) => served,
            () = cut => return,
        };
        if let Err(fault) = served
            && let Some(others) = self.failed.passes()
        {
            tracing::debug!(?client, fault, others, "HTTP connection ended early");
        }
    }
}

/// Serves one connection to its end; once all of its port are `closing`, to the end of what is under way on it.
async fn serve_connection(
    opened: OpenedConnection,
    port: Arc<HttpConnections>,
) -> Result<(), String> {
    let connection = opened.context.clone();
    let activity = Arc::clone(&connection.activity);
    let (idle_timeout, closing) = (port.front.idle_timeout, port.closing.clone());
    let server = builder(connection.speaks_http2, port.max_streams, idle_timeout);
    let speaks_http1 = !connection.speaks_http2;
    let requested = CancellationToken::new();
    let silent = silence(requested.clone());
    let service = service_fn(move |request: Request<_>| {
        requested.cancel();
        let working = connection.activity.begin();
        let (most, request) = (port.front.max_request_bytes, request.map(Body::new));
        let request = port.gate.bound_request(&connection, most, request);
        let answering = port.front.router.clone().oneshot(request);
        async move {
            let response = answering.await?;
            Ok::<_, std::convert::Infallible>(response.map(|body| ResponseBody::new(body, working)))
        }
    });
    let serving = server.serve_connection(TokioIo::new(opened), TowerToHyperService::new(service));
    let mut serving = std::pin::pin!(serving);
    let served = tokio::select! {
        served = &mut serving => served,
        () = closing.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
        () = abandoned(&activity, idle_timeout) => {
            serving.as_mut().graceful_shutdown();
            timeout(GOODBYE_TIMEOUT, serving).await.unwrap_or(Ok(()))
        }
        () = silent, if speaks_http1 => return Err("no request in time".to_owned()),
    };
    served.map_err(|error| error.to_string())
}

/// Returns a connection builder for HTTP/2 or HTTP/1.
fn builder(
    speaks_http2: bool,
    max_streams: u32,
    idle_timeout: Duration,
) -> auto::Builder<TokioExecutor> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(idle_timeout)
        .max_buf_size(MAX_HTTP1_HEADER_BYTES);
    server
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .max_header_list_size(MAX_HEADER_BYTES)
        .max_concurrent_streams(max_streams)
        // As many as a client may cancel at once; more are an attack.
        .max_pending_accept_reset_streams(max_streams as usize)
        .max_local_error_reset_streams(max_streams as usize)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_send_buf_size(SEND_BUFFER_BYTES);
    if speaks_http2 {
        server.http2_only()
    } else {
        server.http1_only()
    }
}

/// Completes once the connection has waited for its client for as long as `idle_timeout`.
async fn abandoned(activity: &Activity, idle_timeout: Duration) {
    loop {
        match activity.waiting_since() {
            Some(since) if since.elapsed() >= idle_timeout => return,
            // An end beyond what the clock can tell never comes.
            Some(since) => match since.checked_add(idle_timeout) {
                Some(end) => sleep_until(end).await,
                None => std::future::pending().await,
            },
            None => sleep(idle_timeout).await,
        }
    }
}

/// A body on its way to a client.
struct ResponseBody {
    body: Body,
    working: Working,
}

impl ResponseBody {
    /// Wraps `body`; the request of `working` ends when it is dropped.
    fn new(body: Body, mut working: Working) -> Self {
        working.awaits(false);
        Self { body, working }
    }
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        // hyper polls for the next frame once the client has read enough of those before it.
        self.working.awaits(polled.is_pending());
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
