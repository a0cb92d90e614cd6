//! Serving gRPC from a bound listener until told to stop, then draining within a grace.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::pin::pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio_stream::StreamExt;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::health::Health;
use crate::severable::Severable;
use crate::transport::{
    CONNECTION_WINDOW_BYTES, KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, STREAM_WINDOW_BYTES,
};

/// How often a service's own health is looked at.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// Limits of a gRPC server, as a section of a service's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Streams a client may have open on one connection. A coordinator carries all its sessions on
    /// one connection to each peer.
    pub max_streams_per_connection: NonZeroU32,
    /// How long open streams may go on after the order to stop, before they are cut.
    pub drain_grace_ms: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            max_streams_per_connection: const { NonZeroU32::new(1_024).unwrap() },
            drain_grace_ms: 10_000,
        }
    }
}

impl ServerConfig {
    /// Returns [`drain_grace_ms`](Self::drain_grace_ms) as a duration.
    pub fn drain_grace(&self) -> Duration {
        Duration::from_millis(self.drain_grace_ms)
    }
}

/// Why a server stopped before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listener has no address: it is not a bound TCP socket.
    #[error("the listener has no address: {0}")]
    Address(#[source] std::io::Error),

    /// What the service rests on has failed; the log says why.
    #[error("the service on {address} can do no more work, see the log")]
    Unhealthy {
        /// Where it was listening.
        address: SocketAddr,
    },

    /// The gRPC server failed.
    #[error("serving on {address} failed: {source}")]
    Transport {
        /// Where it was listening.
        address: SocketAddr,
        /// What tonic said.
        source: tonic::transport::Error,
    },
}

/// Serves `routes`, and gRPC health beside them, until `shutdown` completes or the service itself
/// begins to [drain](Health::drain).
///
/// Then health turns to NOT_SERVING, no connection is accepted any more, and what is open may go on for the grace of `config`. No connection
/// outlives this future: what is left at its end is cut, also when the future is dropped.
///
/// # Errors
/// [`ServeError`] if the server fails before it is told to stop.
pub async fn serve(
    routes: Routes,
    listener: TcpListener,
    config: &ServerConfig,
    health: &Health,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let address = listener.local_addr().map_err(ServeError::Address)?;
    let failed = |source| ServeError::Transport { address, source };

    // tonic serves each connection in a task of its own; dropping its future leaves those running.
    let severed = CancellationToken::new();
    let _sever = severed.clone().drop_guard();
    let incoming = TcpIncoming::from(listener)
        .with_nodelay(Some(true))
        .map(move |accepted| accepted.map(|stream| Severable::new(stream, severed.clone())));

    let mut serving = pin!(
        builder(config)
            .add_routes(health.add_to(routes))
            .serve_with_incoming_shutdown(incoming, health.draining())
    );
    tracing::info!(%address, "serving");
    tokio::select! {
        ended = &mut serving => return ended.map_err(failed),
        () = shutdown => {}
        // The service gave up by itself, its engine having failed.
        () = health.draining() => {}
    }

    let grace = config.drain_grace();
    tracing::info!(%address, grace_ms = config.drain_grace_ms, "draining");
    health.drain().await;
    if let Ok(ended) = tokio::time::timeout(grace, &mut serving).await {
        tracing::info!(%address, "drained");
        return ended.map_err(failed);
    }
    tracing::warn!(%address, "drain grace is over; cutting the streams still open");
    Ok(())
}

/// Like [`serve`], as long as `is_healthy` holds. Once it does not, the service drains as if told to
/// stop, and ends with an error, so that whoever supervises the process starts it anew.
///
/// # Errors
/// [`ServeError`] if the server fails before it is told to stop, or is not healthy.
pub async fn serve_while_healthy(
    routes: Routes,
    listener: TcpListener,
    config: &ServerConfig,
    health: &Health,
    shutdown: impl Future<Output = ()>,
    is_healthy: impl Fn() -> bool,
) -> Result<(), ServeError> {
    let address = listener.local_addr().map_err(ServeError::Address)?;
    let failing = async {
        while is_healthy() {
            tokio::time::sleep(HEARTBEAT).await;
        }
    };
    let stop = async {
        tokio::select! {
            () = shutdown => {}
            () = failing => tracing::error!(%address, "not healthy any more"),
        }
    };
    serve(routes, listener, config, health, stop).await?;
    if is_healthy() {
        Ok(())
    } else {
        Err(ServeError::Unhealthy { address })
    }
}

fn builder(config: &ServerConfig) -> Server {
    let max_streams = config.max_streams_per_connection.get();
    Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(max_streams)
        // The default of 20 takes a client that cancels all its sessions at once for an attacker,
        // and closes the connection that every other session of that client is on.
        .http2_max_pending_accept_reset_streams(Some(max_streams as usize))
}

#[cfg(test)]
mod tests;
