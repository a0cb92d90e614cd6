//! The gRPC service and its life: bind, load, warm up, serve, drain.

use std::sync::Arc;

use model::engine::{Gauges, MemoryGauges};
use server::health::Health;
use server::lease::{Leases, SessionCounts};
use server::stream::{self, ReplyStream};
use server::transport::MAX_MESSAGE_BYTES;
use server::{lifecycle, reflection};
use tokio::net::TcpListener;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};
use wire::v1;
use wire::v1::drafter_server::{self, DrafterServer};

use crate::config::DrafterConfig;
use crate::describe::describe;
use crate::error::DrafterError;
use crate::loaded::Loaded;
use crate::proposers::Proposers;
use crate::session::Session;

/// Full name of the gRPC service.
const NAME: &str = "outrider.v1.Drafter";

/// What the streams share.
pub(crate) struct Shared {
    pub(crate) proposers: Proposers,
    pub(crate) sessions: Leases<Session>,
    pub(crate) description: v1::PeerDescription,
}

/// A drafter with its models loaded and their engines running.
pub struct Drafter {
    shared: Arc<Shared>,
    health: Health,
    config: DrafterConfig,
}

/// Binds, loads, warms up and serves until `shutdown` completes; then drains.
///
/// # Errors
/// [`DrafterError`] naming what is wrong with address, models or another setting, or why serving ended early.
pub async fn run(
    config: DrafterConfig,
    shutdown: impl Future<Output = ()>,
) -> Result<(), DrafterError> {
    let listener = config.listen.bind().await?;
    let loaded = Loaded::load(&config)?;
    Drafter::start(loaded, config)
        .await?
        .serve(listener, shutdown)
        .await
}

impl Drafter {
    /// Warms the models up and starts their engines.
    ///
    /// # Errors
    /// If a model fails its first forward.
    pub async fn start(loaded: Loaded, config: DrafterConfig) -> Result<Self, DrafterError> {
        let mut description = describe(&loaded, &config);
        let proposers = Proposers::start(loaded, &config)?;
        if let Some(longest) = proposers.longest_sequence() {
            description.context_len = longest as u32;
        }
        let shared = Shared {
            description,
            proposers,
            sessions: Leases::new(config.max_sessions.get()),
        };
        Ok(Self {
            shared: Arc::new(shared),
            health: Health::new(NAME).await,
            config,
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
        let routes = reflection::add_to(Routes::new(service), wire::FILE_DESCRIPTOR_SET, NAME)?;
        self.health.ready().await;
        let server = &self.config.server;
        let healthy = || shared.proposers.is_healthy();
        let serving = lifecycle::serve_while_healthy(
            routes,
            listener,
            server,
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
