//! Serving gRPC from a bound listener until told to stop, then draining within a grace.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::pin::pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::service::InterceptorLayer;
use tonic::transport::Server;

use crate::health::Health;
use crate::incoming::Incoming;
use crate::process::Process;
use crate::receiving::{Described, ReceivingLayer};
use crate::transport::{
    CONNECTION_WINDOW_BYTES, KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, MAX_HEADER_BYTES,
    STREAM_WINDOW_BYTES,
};

/// How often a service's own health is looked at.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// How long before the end of its grace a service asks what is still open to end by itself; a quarter
/// of a grace shorter than four times this.
const LAST_CALL: Duration = Duration::from_secs(1);

/// Limits of a gRPC server, as a section of a service's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Connections that may be open at a time; more are closed at once.
    pub max_connections: NonZeroUsize,
    /// Streams a client may have open on one connection. A coordinator carries all its sessions on
    /// one connection to each peer.
    pub max_streams_per_connection: NonZeroU32,
    /// How long a request of one message may take to come, from its headers to its end, in ms.
    pub receive_timeout_ms: NonZeroU64,
    /// Bytes of such requests held at once for one connection, until their service has them.
    pub max_receiving_bytes_per_connection: NonZeroUsize,
    /// Bytes of such requests held at once for all connections.
    pub max_receiving_bytes: NonZeroUsize,
    /// How long connections are still accepted after the order to stop, while whoever watches the
    /// readiness learns that it fell.
    pub drain_delay_ms: u64,
    /// How long open streams may go on after the order to stop, before they are cut; drain_delay_ms
    /// is part of it.
    pub drain_grace_ms: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            max_connections: const { NonZeroUsize::new(1_024).unwrap() },
            max_streams_per_connection: const { NonZeroU32::new(1_024).unwrap() },
            receive_timeout_ms: const { NonZeroU64::new(10_000).unwrap() },
            max_receiving_bytes_per_connection: const { NonZeroUsize::new(32 << 20).unwrap() },
            max_receiving_bytes: const { NonZeroUsize::new(256 << 20).unwrap() },
            drain_delay_ms: 100,
            drain_grace_ms: 10_000,
        }
    }
}

impl ServerConfig {
    /// Returns [`drain_grace_ms`](Self::drain_grace_ms) as a duration.
    pub fn drain_grace(&self) -> Duration {
        Duration::from_millis(self.drain_grace_ms)
    }

    pub(crate) fn receive_timeout(&self) -> Duration {
        Duration::from_millis(self.receive_timeout_ms.get())
    }

    fn drain_delay(&self) -> Duration {
        Duration::from_millis(self.drain_delay_ms)
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

/// Serves `services`, and gRPC health beside them, until `shutdown` completes or the service itself
/// begins to [drain](Health::drain). All of them ask for a token where `process` does, and are reached by TLS
/// where it speaks that.
///
/// Then health turns to NOT_SERVING; after the delay of `config` no connection is accepted any more;
/// what is open may go on until shortly before the end of the grace, when the
/// [last call](Health::last_call) asks it to end. No connection outlives this future: what is left at
/// its end is cut, also when the future is dropped.
///
/// # Errors
/// [`ServeError`] if the server fails before it is told to stop.
pub async fn serve(
    services: impl Into<Described>,
    listener: TcpListener,
    config: &ServerConfig,
    process: &Process,
    health: &Health,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let address = listener.local_addr().map_err(ServeError::Address)?;
    let failed = |source| ServeError::Transport { address, source };

    // tonic serves each connection in a task of its own; dropping its future leaves those running.
    let severed = CancellationToken::new();
    let _sever = severed.clone().drop_guard();
    let max_connections = config.max_connections.get();
    let most_received = config.max_receiving_bytes_per_connection.get();
    let tls = process.tls.clone();
    let incoming = Incoming::new(listener, tls, max_connections, most_received, severed);
    let Described {
        routes,
        client_streaming,
    } = services.into();

    let closing = CancellationToken::new();
    let mut serving = pin!(
        builder(config)
            .layer(ReceivingLayer::new(config, client_streaming))
            .layer(InterceptorLayer::new(process.auth.guard()))
            .add_routes(health.add_to(routes))
            .serve_with_incoming_shutdown(incoming, closing.clone().cancelled_owned())
    );
    tracing::info!(%address, "serving");
    tokio::select! {
        ended = &mut serving => return ended.map_err(failed),
        () = shutdown => {}
        // The service gave up by itself, its engine having failed.
        () = health.draining() => {}
    }

    let grace = config.drain_grace();
    let now = Instant::now();
    let end = now + grace;
    let last_call = end - LAST_CALL.min(grace / 4);
    let close = (now + config.drain_delay()).min(last_call);
    tracing::info!(%address, grace_ms = config.drain_grace_ms, "draining");
    health.drain().await;
    if let Ok(ended) = tokio::time::timeout_at(close, &mut serving).await {
        return ended.map_err(failed);
    }
    closing.cancel();
    if let Ok(ended) = tokio::time::timeout_at(last_call, &mut serving).await {
        tracing::info!(%address, "drained");
        return ended.map_err(failed);
    }
    tracing::warn!(%address, "drain grace is nearly over; the streams still open are asked to end");
    health.call_last();
    if let Ok(ended) = tokio::time::timeout_at(end, &mut serving).await {
        return ended.map_err(failed);
    }
    tracing::warn!(%address, "drain grace is over; cutting the connections still open");
    Ok(())
}

/// Like [`serve`], as long as `is_healthy` holds. Once it does not, the service drains as if told to
/// stop, and ends with an error, so that whoever supervises the process starts it anew.
///
/// # Errors
/// [`ServeError`] if the server fails before it is told to stop, or is not healthy.
pub async fn serve_while_healthy(
    services: impl Into<Described>,
    listener: TcpListener,
    config: &ServerConfig,
    process: &Process,
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
            () = failing => {
                health.died();
                tracing::error!(%address, "not healthy any more");
            }
        }
    };
    serve(services, listener, config, process, health, stop).await?;
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
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        // The default of 20 takes a client that cancels all its sessions at once for an attacker,
        // and closes the connection that every other session of that client is on.
        .http2_max_pending_accept_reset_streams(Some(max_streams as usize))
}

#[cfg(test)]
mod tests;
