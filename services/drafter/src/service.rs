//! The gRPC service and its life: bind, load, warm up, serve, drain.

use std::sync::Arc;

use model::engine::{self, EngineConfig, EngineHandle, Gauges};
use model::source::ServedModel;
use server::health::Health;
use server::lease::{Leases, SessionCounts};
use server::stream::{self, ReplyStream};
use server::transport::MAX_MESSAGE_BYTES;
use server::{lifecycle, reflection};
use speculation::ports::LanguageModel;
use tokio::net::TcpListener;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};
use wire::v1::drafter_server::{self, DrafterServer};
use wire::{open, v1};

use crate::config::DrafterConfig;
use crate::error::DrafterError;
use crate::session::Session;

/// Full name of the gRPC service.
const NAME: &str = "outrider.v1.Drafter";

/// What the streams share.
pub(crate) struct Shared {
    pub(crate) engine: EngineHandle,
    pub(crate) sessions: Leases<Session>,
    pub(crate) description: v1::PeerDescription,
}

/// A drafter with its model loaded and its engine running.
pub struct Drafter {
    shared: Arc<Shared>,
    health: Health,
    config: DrafterConfig,
}

/// Binds, loads, warms up and serves until `shutdown` completes; then drains.
///
/// # Errors
/// [`DrafterError`] naming what is wrong with address or model, or why serving ended early.
pub async fn run(
    config: DrafterConfig,
    shutdown: impl Future<Output = ()>,
) -> Result<(), DrafterError> {
    let listener = config.listen.bind().await?;
    let model = config.model.load()?;
    Drafter::start(model, config)
        .await?
        .serve(listener, shutdown)
        .await
}

impl Drafter {
    /// Warms `model` up and starts its engine.
    ///
    /// # Errors
    /// If the model fails its first forward.
    pub async fn start<M>(
        served: ServedModel<M>,
        config: DrafterConfig,
    ) -> Result<Self, DrafterError>
    where
        M: LanguageModel + Send + 'static,
        M::Cache: Send,
    {
        let description = describe(&served, &config);
        let engine_config = EngineConfig {
            max_batch: config.max_batch,
            queue: config.max_queue,
            max_sequences: config.max_cached_sequences,
            ..EngineConfig::default()
        };
        let (engine, _thread) = engine::spawn(served.model, engine_config, "draft-engine")?;
        let shared = Shared {
            engine,
            sessions: Leases::new(config.max_sessions.get()),
            description,
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
    /// If the server fails before it is told to stop, or the engine panicked: what a kernel left behind
    /// cannot be trusted, and whoever supervises the process starts it anew.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), DrafterError> {
        let engine = self.shared.engine.clone();
        let service = DrafterServer::new(Service(self.shared))
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let routes = reflection::add_to(Routes::new(service), wire::FILE_DESCRIPTOR_SET, NAME)?;
        self.health.ready().await;
        let server = &self.config.server;
        let healthy = || engine.is_healthy();
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

fn describe<M: LanguageModel>(
    served: &ServedModel<M>,
    config: &DrafterConfig,
) -> v1::PeerDescription {
    let shape = served.model.shape();
    v1::PeerDescription {
        model: served.name.clone(),
        logits_size: shape.vocab_size as u32,
        vocab_size: served.vocab_size,
        vocab_fingerprint: served.vocab_fingerprint.to_vec(),
        context_len: shape.context_len as u32,
        numerics: Some(v1::Numerics {
            weights: served.numerics.weights.clone(),
            dtype: served.numerics.dtype.clone(),
            kernels: served.numerics.kernels.clone(),
        }),
        limits: Some(v1::PeerLimits {
            max_draft_tokens: config.max_draft_tokens.get(),
            max_sessions: config.max_sessions.get() as u32,
            max_message_bytes: MAX_MESSAGE_BYTES as u32,
            max_lease_ms: open::MAX_LEASE_MS,
        }),
        eos_token_ids: served.eos_token_ids.clone(),
        ..wire::describe::capabilities()
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

    /// Tasks and sequences of the engine.
    pub fn engine(&self) -> Gauges {
        self.0.engine.gauges()
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
