//! The life of a service: the work it begins with, serving gRPC from a bound listener until told to stop, then
//! draining within a grace.

use std::net::SocketAddr;
use std::panic::{self, AssertUnwindSafe};
use std::pin::{Pin, pin};
use std::time::Duration;

use axum::middleware::{from_fn, from_fn_with_state};
use net::auth::{Guard, guard_calls};
use net::grpc_only;
use net::incoming::{IncomingConnections, PortProtocol};
use net::listen::ServerConfig;
use net::receiving::{Described, Gate};
use net::{
    CONNECTION_WINDOW_BYTES, KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, MAX_HEADER_BYTES,
    STREAM_WINDOW_BYTES,
};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Server;

use crate::health::Health;
use crate::process::Process;

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

/// Returns the same routes, where `guard` lets requests in, and those that are no calls of gRPC are told so.
fn guarded(routes: Routes, guard: Guard) -> Routes {
    let router = routes.into_axum_router();
    router
        .layer(from_fn(grpc_only::refuse_others))
        .layer(from_fn_with_state(guard, guard_calls))
        .into()
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
    services: Described,
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
    let gate = services.gate.unwrap_or_else(|| Gate::new(config));
    let (tls, guard) = (
        process.credentials.tls.clone(),
        process.credentials.auth.guard(),
    );
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
        .add_routes(guarded(health.add_to(services.routes), guard))
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

/// Runs `work` that a service begins with, such as loading a model, on a thread of its own, as it may block for long.
///
/// The future may be dropped before it is done. The thread then goes on until the process ends, and the
/// process does not wait for it, as it would for a blocking task of the runtime.
///
/// # Panics
/// As `work` does.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, outcome) = oneshot::channel();
    std::thread::spawn(move || {
        // Nothing that `work` leaves half done is looked at: the panic goes on below.
        let outcome = panic::catch_unwind(AssertUnwindSafe(work));
        // The receiver is gone if nobody waits any more.
        let _ = done.send(outcome);
    });
    match outcome.await {
        Ok(Ok(value)) => value,
        Ok(Err(panicked)) => panic::resume_unwind(panicked),
        Err(_) => unreachable!("the thread sends before it ends"),
    }
}

/// Runs `work` likewise; returns `None` as soon as `shutdown` completes.
pub async fn unless_stopped<T: Send + 'static>(
    shutdown: Pin<&mut impl Future<Output = ()>>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    tokio::select! {
        biased;
        () = shutdown => None,
        value = blocking(work) => Some(value),
    }
}

#[cfg(test)]
mod tests;
