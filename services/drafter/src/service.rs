//! The gRPC service and its life: bind, load, warm up, serve, drain.

use std::sync::Arc;

use model::engine::{Gauges, MemoryGauges, Totals};
use server::health::Health;
use server::lease::{Leases, SessionCounts};
use server::metrics::PeerMetrics;
use server::process::Process;
use server::stream::{self, ReplyStream};
use server::transport::MAX_MESSAGE_BYTES;
use server::{lifecycle, reflection, startup};
use tokio::net::TcpListener;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};
use wire::v1;
use wire::v1::drafter_server::{self, DrafterServer};

use crate::config::DrafterConfig;
use crate::describe::describe;
use crate::error::DrafterError;
use crate::figures;
use crate::loaded::Loaded;
use crate::proposers::Proposers;
use crate::shared::Shared;

/// Full name of the gRPC service.
const NAME: &str = "outrider.v1.Drafter";

/// A drafter with its models loaded and their engines running.
pub struct Drafter {
    shared: Arc<Shared>,
    health: Health,
    config: DrafterConfig,
    process: Process,
}

/// Binds, loads, warms up and serves until `shutdown` completes; then drains. If that is before the models
/// are loaded, nothing is waited for.
///
/// # Errors
/// [`DrafterError`] naming what is wrong with address, models or another setting, or why serving ended early.
pub async fn run(
    config: DrafterConfig,
    process: Process,
    shutdown: impl Future<Output = ()>,
) -> Result<(), DrafterError> {
    let mut shutdown = std::pin::pin!(shutdown);
    let listener = config.listen.bind().await?;
    let of_models = config.clone();
    let loading = startup::unless_stopped(shutdown.as_mut(), move || Loaded::load(&of_models));
    let Some(loaded) = loading.await else {
        return Ok(());
    };
    Drafter::start(loaded?, config, process)?
        .serve(listener, shutdown)
        .await
}

impl Drafter {
    /// Warms the models up and starts their engines.
    ///
    /// # Errors
    /// If a model fails its first forward.
    pub fn start(
        loaded: Loaded,
        config: DrafterConfig,
        process: Process,
    ) -> Result<Self, DrafterError> {
        let mut description = describe(&loaded, &config);
        let load_times = figures::load_times(&loaded);
        let proposers = Proposers::start(loaded, &config)?;
        if let Some(longest) = proposers.longest_sequence() {
            description.context_len = longest as u32;
        }
        let health = Health::new(NAME, &process);
        let shared = Arc::new(Shared {
            health: health.clone(),
            description,
            proposers,
            traces: process.traces.of("drafter"),
            sessions: Leases::new(config.max_sessions.get()),
            metrics: PeerMetrics::new(&process.metrics, figures::ROLE),
        });
        figures::tell(&process.metrics, &shared, &config, load_times);
        Ok(Self {
            shared,
            health,
            config,
            process,
        })
    }

    /// What the drafter is doing, also once it serves.
    pub fn monitor(&self) -> Monitor {
        Monitor(Arc::clone(&self.shared))
    }

    /// Serves on `listener` until `shutdown` completes, then drains.
    ///
    /// # Errors
    /// If the server fails before it is told to stop, or an engine panicked: what a kernel left behind
    /// cannot be trusted, and whoever supervises the process starts it anew.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), DrafterError> {
        let shared = Arc::clone(&self.shared);
        let service = DrafterServer::new(Service(self.shared))
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let routes = reflection::add_to(Routes::new(service), wire::DESCRIPTORS, NAME)?;
        self.health.ready();
        let server = &self.config.server;
        let healthy = || shared.proposers.is_healthy();
        let serving = lifecycle::serve(
            routes,
            listener,
            server,
            &self.process,
            &self.health,
            shutdown,
            healthy,
        );
        Ok(serving.await?)
    }
}

/// Looks into a running drafter.
#[derive(Clone)]
pub struct Monitor(Arc<Shared>);

impl Monitor {
    /// Sessions with an open stream, and sessions waiting for their next one.
    pub fn sessions(&self) -> SessionCounts {
        self.0.sessions.counts()
    }

    /// Tasks and sequences of all engines.
    pub fn engine(&self) -> Gauges {
        self.0.proposers.gauges()
    }

    /// Memory of all engines.
    pub fn memory(&self) -> MemoryGauges {
        self.0.proposers.memory()
    }

    /// What all engines did so far.
    pub fn totals(&self) -> Totals {
        self.0.proposers.totals()
    }
}

struct Service(Arc<Shared>);

#[tonic::async_trait]
impl drafter_server::Drafter for Service {
    type DraftStream = ReplyStream<v1::DraftReply>;

    async fn describe(
        &self,
        _request: Request<v1::DescribeRequest>,
    ) -> Result<Response<v1::PeerDescription>, Status> {
        Ok(Response::new(self.0.description.clone()))
    }

    async fn draft(
        &self,
        request: Request<Streaming<v1::DraftRequest>>,
    ) -> Result<Response<Self::DraftStream>, Status> {
        let replies = stream::spawn(Arc::clone(&self.0), request.into_inner());
        Ok(Response::new(replies))
    }
}
