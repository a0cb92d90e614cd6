//! The gRPC service: load, describe, start, serve.

use std::num::NonZeroUsize;
use std::sync::Arc;

use model::bigram::BigramFile;
use model::engine::{self, EngineConfig};
use model::source::ServedModel;
use ops::process::Process;
use ops::service_error::ServiceError;
use peer::{PeerServer, ReplyStream};
use speculation::drafting::Drafting;
use speculation::ports::LanguageModel;
use tonic::{Request, Response, Status, Streaming};
use wire::failure::Failure;
use wire::v1::drafter_server;
use wire::{drafting, v1};

use crate::config::{DrafterConfig, MAX_GRAM, ROLE};
use crate::loaded::Loaded;
use crate::proposers::{Drafter, Proposers};

/// Binds, loads, warms up and serves until `shutdown` completes; then drains. If that is before the models
/// are loaded, nothing is waited for.
///
/// # Errors
/// [`ServiceError`] naming what is wrong with address, models or another setting, or why serving ended early.
pub async fn run(
    config: DrafterConfig,
    process: Process,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServiceError> {
    let (listen, of_models) = (config.listen, config.clone());
    let load = move || Loaded::load(&of_models);
    let start = |loaded| start(loaded, &config, process);
    peer::run(listen, load, start, shutdown).await
}

/// Warms the models up and starts their engines.
///
/// # Errors
/// If a model fails its first forward.
pub fn start<M>(
    loaded: Loaded<M>,
    config: &DrafterConfig,
    process: Process,
) -> Result<Arc<Drafter>, ServiceError>
where
    M: LanguageModel + Send + 'static,
    M::Cache: Send,
{
    let bounds = config.bounds();
    let description = describe(&loaded, config);
    let models = loaded.models.iter();
    let load_times = models
        .map(|served| (served.outline.name.clone(), served.load_time))
        .collect();
    let (models, proposers) = Proposers::of(loaded);
    let engine_config = EngineConfig {
        sharers: NonZeroUsize::new(models.len()).unwrap_or(NonZeroUsize::MIN),
        ..bounds.engine()
    };
    let engine = |(level, served): (usize, ServedModel<M>)| {
        let name = format!("draft-engine-{level}");
        let spawned = engine::spawn(served.model, engine_config, &name);
        let (engine, _thread) = spawned.map_err(ServiceError::engine(ROLE))?;
        Ok::<_, ServiceError>(engine)
    };
    let engines = (1..).zip(models).map(engine);
    let engines = engines.collect::<Result<_, _>>()?;
    Ok(PeerServer::new(
        proposers,
        engines,
        description,
        load_times,
        &bounds,
        process,
    ))
}

/// The service as tonic calls it.
pub(crate) struct DrafterService(pub(crate) Arc<Drafter>);

#[tonic::async_trait]
impl drafter_server::Drafter for DrafterService {
    type DraftStream = ReplyStream;

    async fn describe(
        &self,
        _request: Request<v1::DescribeRequest>,
    ) -> Result<Response<v1::PeerDescription>, Status> {
        Ok(Response::new(self.0.description.clone()))
    }

    async fn learn(
        &self,
        request: Request<Streaming<v1::LearnRequest>>,
    ) -> Result<Response<v1::Learned>, Status> {
        let drafter = &self.0;
        let Some(translations) = &drafter.role.translations else {
            return Err(Failure::NotOffered.status("a drafter without a model reads no text"));
        };
        let known = translations
            .learn(&drafter.description, request.into_inner())
            .await?;
        let description = known.map(|known| (*known.description).clone());
        Ok(Response::new(v1::Learned { description }))
    }

    async fn draft(
        &self,
        request: Request<Streaming<v1::SessionRequest>>,
    ) -> Result<Response<Self::DraftStream>, Status> {
        let replies = peer::spawn(Arc::clone(&self.0), request.into_inner());
        Ok(Response::new(replies))
    }
}

/// Longest sequence of Max-Gram alone, which costs it some 100 bytes a token.
const MAX_GRAM_CONTEXT: u32 = 1 << 20;

/// Returns the description of a drafter of what is `loaded`.
pub(crate) fn describe<M: LanguageModel>(
    loaded: &Loaded<M>,
    config: &DrafterConfig,
) -> v1::PeerDescription {
    let names = loaded.models.iter().map(|model| model.outline.name.clone());
    let cascade = loaded.cascade.as_ref().map(|cascade| {
        let max_gram = cascade.max_gram().then(|| MAX_GRAM.to_owned());
        v1::DraftCascade {
            models: names.chain(max_gram).collect(),
            lenient: cascade.lenience() > 1.0,
        }
    });
    let heads = loaded.heads.iter().map(|head| v1::AcceptanceHead {
        label: drafting::label_to_wire(head.info().label).into(),
        depth: head.info().depth as u32,
    });
    let draftings = loaded.draftings().into_iter();
    v1::PeerDescription {
        limits: Some(config.bounds().to_wire()),
        trees: true,
        draftings: draftings
            .map(|drafting| drafting::to_wire(drafting).into())
            .collect(),
        heads: heads.collect(),
        cascade,
        ..match loaded.models.first() {
            Some(model) => peer::describe(model),
            None => match &loaded.bigram {
                Some(table) => of_max_gram(table, config),
                None => wire::describe::capabilities(),
            },
        }
    }
}

/// Returns the description of a drafter without a model: Max-Gram with this table, and its vocabulary.
pub(crate) fn of_max_gram(table: &BigramFile, config: &DrafterConfig) -> v1::PeerDescription {
    let name = match config.model.name.as_str() {
        "" => MAX_GRAM.to_owned(),
        name => name.to_owned(),
    };
    v1::PeerDescription {
        model: name,
        logits_size: table.vocab_size(),
        vocab_size: table.vocab_size(),
        vocab_fingerprint: table.vocab_fingerprint.to_vec(),
        context_len: MAX_GRAM_CONTEXT,
        numerics: Some(v1::Numerics {
            weights: table.fingerprint(),
            dtype: String::new(),
            kernels: MAX_GRAM.to_owned(),
        }),
        eos_token_ids: table.eos_token_ids.clone(),
        draftings: vec![drafting::to_wire(Drafting::MaxGram).into()],
        ..wire::describe::capabilities()
    }
}
