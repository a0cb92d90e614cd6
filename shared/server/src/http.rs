//! Serving HTTP/1.1 and HTTP/2 on a port of its own, beside a gRPC service and for as long as it.
//!
//! Connections are bounded in number, and what each must do in time: a TLS handshake where the process speaks TLS, and
//! the headers of a request. Bodies and answers are bounded by whoever reads and writes them.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::health::Health;
use crate::lifecycle::ServerConfig;
use crate::log_throttle::LogThrottle;
use crate::tls::Tls;
use crate::transport::{KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, MAX_HEADER_BYTES};

/// How long a TLS handshake may take, the headers of a request, and the pause between two requests on a connection of
/// HTTP/1.1.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long nothing is accepted after the system could not: it has no more files, and needs time.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves `router` on `listener` until the service of `health` drains. Then, after the delay of `config`, no
/// connection is accepted any more, and what is open may go on until the end of the grace. No connection outlives
/// this future.
pub async fn serve(
    router: Router,
    listener: TcpListener,
    config: &ServerConfig,
    tls: Tls,
    health: &Health,
) {
    let connections = Connections {
        router,
        tls,
        max_streams: config.max_streams_per_connection.get(),
        permits: Arc::new(Semaphore::new(config.max_connections.get())),
        most: config.max_connections.get(),
        closing: CancellationToken::new(),
        severed: CancellationToken::new(),
        open: TaskTracker::new(),
        full: LogThrottle::default(),
        failed: Arc::default(),
    };
    let _sever = connections.severed.clone().drop_guard();
    let delay = Duration::from_millis(config.drain_delay_ms);
    let drained = async {
        health.draining().await;
        tokio::time::sleep(delay).await;
    };
    tokio::select! {
        () = connections.accept_all(&listener) => {}
        () = drained => {}
    }
    drop(listener);
    connections.closing.cancel();
    connections.open.close();
    let left = config.drain_grace().saturating_sub(delay);
    if timeout(left, connections.open.wait()).await.is_err() {
        tracing::warn!("drain grace is over; cutting the HTTP connections still open");
    }
}

/// The connections of one port.
struct Connections {
    router: Router,
    tls: Tls,
    max_streams: u32,
    /// One permit a connection.
    permits: Arc<Semaphore>,
    most: usize,
    /// Cancelled when each is to end after what it is about.
    closing: CancellationToken,
    /// Cancelled when each is to end at once.
    severed: CancellationToken,
    open: TaskTracker,
    full: LogThrottle,
    failed: Arc<LogThrottle>,
}

impl Connections {
    /// Accepts connections without end.
    async fn accept_all(&self, listener: &TcpListener) {
        loop {
            match listener.accept().await {
                Ok((connection, client)) => self.admit(connection, client),
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Serves a connection in a task of its own, unless there are too many.
    fn admit(&self, connection: TcpStream, client: SocketAddr) {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            if let Some(others) = self.full.passes() {
                tracing::warn!(
                    %client,
                    most = self.most,
                    others,
                    "HTTP connection closed: server.max_connections are open; `others` were closed since the last \
                     such line"
                );
            }
            return;
        };
        let router = self.router.clone();
        let (acceptor, max_streams) = (self.tls.http_acceptor(), self.max_streams);
        let (closing, severed) = (self.closing.clone(), self.severed.clone());
        let failed = Arc::clone(&self.failed);
        self.open.spawn(async move {
            let served = serve_connection(connection, acceptor, router, max_streams, closing);
            let served = severed.run_until_cancelled(served).await;
            if let Some(Err(fault)) = served
                && let Some(others) = failed.passes()
            {
                tracing::debug!(%client, fault, others, "HTTP connection ended early");
            }
            drop(permit);
        });
    }
}

/// Serves one connection to its end; once `closing` is cancelled, to the end of what is under way on it.
async fn serve_connection(
    connection: TcpStream,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    max_streams: u32,
    closing: CancellationToken,
) -> Result<(), String> {
    connection
        .set_nodelay(true)
        .map_err(|error| error.to_string())?;
    let transport = match acceptor {
        None => Either::Left(connection),
        Some(acceptor) => {
            let accepted = timeout(HEADER_TIMEOUT, acceptor.accept(connection)).await;
            let late = |_| "no TLS handshake in time".to_owned();
            let accepted = accepted.map_err(late)?;
            Either::Right(accepted.map_err(|error| format!("TLS handshake: {error}"))?)
        }
    };
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEADER_BYTES.max(64 << 10) as usize);
    server
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .max_header_list_size(MAX_HEADER_BYTES)
        .max_concurrent_streams(max_streams);
    let serving =
        server.serve_connection(TokioIo::new(transport), TowerToHyperService::new(router));
    let mut serving = pin!(serving);
    let served = tokio::select! {
        served = &mut serving => served,
        () = closing.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    served.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
