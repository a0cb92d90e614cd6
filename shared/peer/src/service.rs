//! A peer's bounds, and its life: bind, load, start, serve, drain.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use model::engine::{EngineConfig, EngineHandle};
use net::MAX_MESSAGE_BYTES;
use net::listen::{Listen, ServerConfig};
use ops::health::Health;
use ops::metrics::PeerMetrics;
use ops::process::Process;
use ops::service_error::ServiceError;
use ops::{lifecycle, reflection};
use tokio::net::TcpListener;
use wire::{open, v1};

use crate::lease::Leases;
use crate::role::{PeerServer, Role};

/// Binds, loads, starts and serves until `shutdown` completes; then drains. If that is before the models
/// are loaded, nothing is waited for.
///
/// # Errors
/// [`ServiceError`] naming what is wrong with address, models or another setting, or why serving ended early.
pub async fn run<R: Role, L: Send + 'static>(
    listen: Listen,
    load: impl FnOnce() -> Result<L, ServiceError> + Send + 'static,
    start: impl FnOnce(L) -> Result<Arc<PeerServer<R>>, ServiceError>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServiceError> {
    let mut shutdown = std::pin::pin!(shutdown);
    let listener = listen.bind().await?;
    let Some(loaded) = lifecycle::unless_stopped(shutdown.as_mut(), load).await else {
        return Ok(());
    };
    start(loaded?)?.serve(listener, shutdown).await
}

impl<R: Role> PeerServer<R> {
    /// Returns a peer whose models run on `engines`, the largest model's first, and took `load_times` to load.
    pub fn new(
        role: R,
        engines: Vec<EngineHandle>,
        mut description: v1::PeerDescription,
        load_times: Vec<(String, Duration)>,
        bounds: &Bounds,
        process: Process,
    ) -> Arc<Self> {
        if let Some(largest) = engines.first() {
            description.context_len = largest.longest_sequence() as u32;
        }
        let peer = Arc::new(Self {
            role,
            engines,
            description,
            traces: process.traces.of(R::NAME),
            metrics: PeerMetrics::new(&process.metrics, R::NAME),
            sessions: Leases::new(bounds.max_sessions.get()),
            health: Health::new(R::SERVICE, &process),
            server: bounds.server.clone(),
            process,
        });
        peer.register_metrics(bounds, load_times);
        peer
    }

    /// Serves on `listener` until `shutdown` completes, then drains.
    ///
    /// # Errors
    /// If the server fails before it is told to stop, or an engine panicked: what a kernel left behind
    /// cannot be trusted, and whoever supervises the process starts it anew.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServiceError> {
        let routes = R::routes(Arc::clone(&self));
        let routes = reflection::add_to(routes, wire::DESCRIPTORS, R::SERVICE)?;
        self.health.ready();
        let serving = lifecycle::serve(
            routes,
            listener,
            &self.server,
            &self.process,
            &self.health,
            shutdown,
            || self.engines.iter().all(EngineHandle::is_healthy),
        );
        Ok(serving.await?)
    }
}

/// The bounds in the configuration of a drafter or a verifier.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Most draft tokens in one round.
    pub max_draft_tokens: NonZeroU32,
    /// Most sessions, with an open stream or waiting for their next one.
    pub max_sessions: NonZeroUsize,
    /// Bounds of each model's engine.
    pub engine: EngineConfig,
    /// Limits of the gRPC server.
    pub server: ServerConfig,
}

impl Bounds {
    /// Bounds of each model's engine, with room for a round's draft tree.
    pub fn engine(&self) -> EngineConfig {
        EngineConfig {
            tree_tokens: self.max_draft_tokens.get() as usize,
            ..self.engine
        }
    }

    /// Returns what a coordinator is told of the bounds.
    pub fn to_wire(&self) -> v1::PeerLimits {
        v1::PeerLimits {
            max_draft_tokens: self.max_draft_tokens.get(),
            max_sessions: self.max_sessions.get() as u32,
            max_message_bytes: MAX_MESSAGE_BYTES as u32,
            max_lease_ms: open::MAX_LEASE_MS,
        }
    }
}
