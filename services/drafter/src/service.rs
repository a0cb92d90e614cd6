//! The gRPC service: load, start, serve.

use std::num::NonZeroUsize;
use std::sync::Arc;

use model::Model;
use model::engine::{self, EngineConfig};
use model::source::ServedModel;
use peer::{Peer, PeerError, ReplyStream};
use server::process::Process;
use tonic::{Request, Response, Status, Streaming};
use wire::v1;
use wire::v1::drafter_server;

use crate::config::{DrafterConfig, ROLE};
use crate::describe::describe;
use crate::loaded::Loaded;
use crate::proposers::{Drafter, Proposers};

/// Binds, loads, warms up and serves until `shutdown` completes; then drains. If that is before the models
/// are loaded, nothing is waited for.
///
/// # Errors
/// [`PeerError`] naming what is wrong with address, models or another setting, or why serving ended early.
pub async fn run(
    config: DrafterConfig,
    process: Process,
    shutdown: impl Future<Output = ()>,
) -> Result<(), PeerError> {
    let (listen, of_models) = (config.listen, config.clone());
    let load = move || Loaded::load(&of_models);
    let start = |loaded| start(loaded, &config, process);
    peer::run(listen, load, start, shutdown).await
}

/// Warms the models up and starts their engines.
///
/// # Errors
/// If a model fails its first forward.
pub fn start(
    loaded: Loaded,
    config: &DrafterConfig,
    process: Process,
) -> Result<Arc<Drafter>, PeerError> {
    let bounds = config.bounds();
    let description = describe(&loaded, config);
    let models = loaded.models.iter();
    let load_times = models
        .map(|served| (served.name.clone(), served.load_time))
        .collect();
    let (models, proposers) = Proposers::of(loaded);
    let engine_config = EngineConfig {
        sharers: NonZeroUsize::new(models.len()).unwrap_or(NonZeroUsize::MIN),
        ..bounds.engine()
    };
    let engine = |(level, served): (usize, ServedModel<Model>)| {
        let name = format!("draft-engine-{level}");
        let (engine, _thread) = engine::spawn(served.model, engine_config, &name)?;
        Ok(engine)
    };
    let engines = (1..).zip(models).map(engine);
    let engines = engines
        .collect::<Result<_, _>>()
        .map_err(PeerError::engine(ROLE))?;
    Ok(Peer::new(
        proposers,
        engines,
        description,
        load_times,
        &bounds,
        process,
    ))
}

/// The service as tonic calls it.
pub(crate) struct Service(pub(crate) Arc<Drafter>);

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
        let replies = peer::spawn(Arc::clone(&self.0), request.into_inner());
        Ok(Response::new(replies))
    }
}
