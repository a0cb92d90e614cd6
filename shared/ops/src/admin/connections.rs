//! Connections to the admin port, bounded in number and in time: who asks here is a probe, a scraper or an operator,
//! and must be answered however many others hold connections open.

use std::collections::VecDeque;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use net::incoming::silence;
use net::log_throttle::LogThrottle;
use net::{KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, MAX_HEADER_BYTES};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tower::{ServiceExt, service_fn};

/// Most connections at a time. Beyond it the oldest is closed: whoever is answered has long gone, and a scraper that
/// keeps its connection makes another.
pub const MAX_CONNECTIONS: usize = 64;

/// Requests that one connection may have under way.
pub const MAX_STREAMS: u32 = 16;

/// How long the headers of a request may take over HTTP/1.1, and the pause before the next one on its connection.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// What may come of a request, and of all requests of a connection, before it is read.
const WINDOW_BYTES: u32 = 64 << 10;

/// How long nothing is accepted after the system could not: it has no more files, and needs time.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves `router` on `listener` without end. Connections end with this future.
pub(super) async fn serve(router: Router, listener: TcpListener) {
    // The oldest first.
    let mut open = VecDeque::new();
    let full = LogThrottle::default();
    loop {
        let (connection, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "the admin port cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        open.retain(|connection: &AbortOnDropHandle<()>| !connection.is_finished());
        if open.len() >= MAX_CONNECTIONS {
            drop(open.pop_front());
            if let Some(others) = full.passes() {
                tracing::warn!(
                    %client,
                    most = MAX_CONNECTIONS,
                    others,
                    "the oldest connection to the admin port was closed for a new one; `others` were since the last \
                     such line"
                );
            }
        }
        let serving = tokio::spawn(serve_connection(connection, router.clone()));
        open.push_back(AbortOnDropHandle::new(serving));
    }
}

/// Serves one connection to its end, if a request comes on it in time.
async fn serve_connection(connection: TcpStream, router: Router) {
    // Small answers go out at once; without it they go out all the same.
    let _ = connection.set_nodelay(true);
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEADER_BYTES as usize);
    server
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_header_list_size(MAX_HEADER_BYTES)
        .max_concurrent_streams(MAX_STREAMS);
    let asked = CancellationToken::new();
    let asking = asked.clone();
    let service = service_fn(move |request: Request<_>| {
        asking.cancel();
        router.clone().oneshot(request)
    });
    let serving =
        server.serve_connection(TokioIo::new(connection), TowerToHyperService::new(service));
    tokio::select! {
        // However it ended: nobody waits for anything on it any more.
        _ = serving => {}
        () = silence(asked) => {}
    }
}
