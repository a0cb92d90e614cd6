//! Serving gRPC from a bound listener until told to stop, then draining within a grace.

use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::middleware::from_fn;
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Server;

use crate::health::Health;
use crate::process::Process;
use net::auth::GuardLayer;
use net::grpc_only;
use net::incoming::{IncomingConnections, PortProtocol};
use net::listen::ServerConfig;
use net::receiving::{Described, Gate};
use net::transport::{
    CONNECTION_WINDOW_BYTES, KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, MAX_HEADER_BYTES,
    STREAM_WINDOW_BYTES,
};

/// How often a service's own health is looked at.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// How long before the end of its grace a service asks what is still open to end by itself; a quarter
/// of a grace shorter than four times this.
const LAST_CALL: Duration = Duration::from_secs(1);

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

/// Returns the same routes, where requests that are no calls of gRPC are told so.
fn grpc_alone(routes: Routes) -> Routes {
    let router = routes.into_axum_router();
    router.layer(from_fn(grpc_only::refuse_others)).into()
}

/// Serves `services`, and gRPC health beside them, until `shutdown` completes, the service itself begins to
/// [drain](Health::drain), or `is_healthy` does not hold any more. All of them ask for a token where `process`
/// does, and are reached by TLS where it speaks that.
///
/// Then health turns to NOT_SERVING; after the delay of `config` no connection is accepted any more;
/// what is open may go on until shortly before the end of the grace, when the
/// [last call](Health::last_call) asks it to end. No connection outlives this future: what is left at
/// its end is cut, also when the future is dropped.
///
/// # Errors
/// [`ServeError`] if the server fails before it is told to stop, or is not healthy: whoever supervises the process
/// should start it anew.
pub async fn serve(
    services: impl Into<Described>,
    listener: TcpListener,
    config: &ServerConfig,
    process: &Process,
    health: &Health,
    shutdown: impl Future<Output = ()>,
    is_healthy: impl Fn() -> bool,
) -> Result<(), ServeError> {
    let address = listener.local_addr().map_err(ServeError::Address)?;

    // tonic serves each connection in a task of its own; dropping its future leaves those running.
    let severed = CancellationToken::new();
    let _sever = severed.clone().drop_guard();
    let services = services.into();
    let gate = services.gate.unwrap_or_else(|| Gate::new(config));
    let tls = process.credentials.tls.clone();
    let incoming = IncomingConnections::new(
        listener,
        PortProtocol::Grpc,
        tls,
        config,
        gate.clone(),
        severed,
    );

    let closing = CancellationToken::new();
    let max_streams = config.max_streams_per_connection.get();
    let serving = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(max_streams)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        // The default of 20 takes a client that cancels all its sessions at once for an attacker,
        // and closes the connection that every other session of that client is on.
        .http2_max_pending_accept_reset_streams(Some(max_streams as usize))
        .layer(gate.before_services(services.client_streaming))
        .layer(GuardLayer::new(process.credentials.auth.guard()))
        .add_routes(grpc_alone(health.add_to(services.routes)))
        .serve_with_incoming_shutdown(incoming, closing.clone().cancelled_owned());
    let failing = async {
        while is_healthy() {
            tokio::time::sleep(HEARTBEAT).await;
        }
        health.died();
        tracing::error!(%address, "not healthy any more");
    };
    let served = async {
        let mut serving = pin!(serving);
        tracing::info!(%address, "serving");
        tokio::select! {
            ended = &mut serving => return ended,
            () = shutdown => {}
            () = failing => {}
            // The service gave up by itself.
            () = health.draining() => {}
        }

        let grace = config.drain_grace();
        let now = Instant::now();
        let end = now + grace;
        let last_call = end - LAST_CALL.min(grace / 4);
        let close = (now + Duration::from_millis(config.drain_delay_ms)).min(last_call);
        tracing::info!(%address, grace_ms = config.drain_grace_ms, "draining");
        health.drain();
        if let Ok(ended) = timeout_at(close, &mut serving).await {
            return ended;
        }
        closing.cancel();
        if let Ok(ended) = timeout_at(last_call, &mut serving).await {
            tracing::info!(%address, "drained");
            return ended;
        }
        tracing::warn!(%address, "drain grace is nearly over; the streams still open are asked to end");
        health.call_last();
        if let Ok(ended) = timeout_at(end, &mut serving).await {
            return ended;
        }
        tracing::warn!(%address, "drain grace is over; cutting the connections still open");
        Ok(())
    };
    let served = served.await;
    served.map_err(|source| ServeError::Transport { address, source })?;
    if is_healthy() {
        Ok(())
    } else {
        Err(ServeError::Unhealthy { address })
    }
}

#[cfg(test)]
mod tests;
