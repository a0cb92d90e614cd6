//! The gRPC service and its life: bind, load, warm up, serve, drain.

use std::sync::Arc;

use model::Model;
use model::engine::{self, Gauges, MemoryGauges, Totals};
use model::source::ServedModel;
use server::health::Health;
use server::lease::{Leases, SessionCounts};
use server::metrics::PeerMetrics;
use server::process::Process;
use server::stream::{self, ReplyStream};
use server::transport::MAX_MESSAGE_BYTES;
use server::{lifecycle, reflection, startup};
use speculation::ports::LanguageModel;
use tokio::net::TcpListener;
use tonic::codegen::tokio_stream::Stream;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};
use wire::v1::verifier_server::{self, VerifierServer};
use wire::{open, v1};

use crate::config::VerifierConfig;
use crate::error::VerifierError;
use crate::figures;
use crate::shared::Shared;

/// Full name of the gRPC service.
const NAME: &str = "outrider.v1.Verifier";

/// Bytes of tokenizer.json in one message: well below every default limit of message sizes.
const TOKENIZER_PART_BYTES: usize = 1 << 20;

type BoxStream<T> = std::pin::Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// A verifier with its model loaded and its engine running.
pub struct Verifier {
    shared: Arc<Shared>,
    health: Health,
    config: VerifierConfig,
    process: Process,
}

/// Loads the model that `config` names, if the rest of it can be.
///
/// # Errors
/// [`VerifierError`] naming what is wrong with the model or another setting.
pub fn load(config: &VerifierConfig) -> Result<ServedModel<Model>, VerifierError> {
    config.engine().check_budget()?;
    Ok(config.model.load()?)
}

/// Binds, loads, warms up and serves until `shutdown` completes; then drains. If that is before the model is
/// loaded, nothing is waited for.
///
/// # Errors
/// [`VerifierError`] naming what is wrong with address or model, or why serving ended early.
pub async fn run(
    config: VerifierConfig,
    process: Process,
    shutdown: impl Future<Output = ()>,
) -> Result<(), VerifierError> {
    let mut shutdown = std::pin::pin!(shutdown);
    let listener = config.listen.bind().await?;
    let of_model = config.clone();
    let loading = startup::unless_stopped(shutdown.as_mut(), move || load(&of_model));
    let Some(model) = loading.await else {
        return Ok(());
    };
    Verifier::start(model?, config, process)?
        .serve(listener, shutdown)
        .await
}

impl Verifier {
    /// Warms `model` up and starts its engine.
    ///
    /// # Errors
    /// If the model has no tokenizer, or fails its first forward.
    pub fn start<M>(
        served: ServedModel<M>,
        config: VerifierConfig,
        process: Process,
    ) -> Result<Self, VerifierError>
    where
        M: LanguageModel + Send + 'static,
        M::Cache: Send,
    {
        if served.tokenizer_json.is_empty() {
            return Err(VerifierError::NoTokenizer(served.name));
        }
        let mut description = describe(&served, &config);
        let (engine, _thread) = engine::spawn(served.model, config.engine(), "target-engine")?;
        description.context_len = engine.longest_sequence() as u32;
        let health = Health::new(NAME, &process);
        let shared = Arc::new(Shared {
            health: health.clone(),
            engine,
            sessions: Leases::new(config.max_sessions.get()),
            description,
            traces: process.traces.of("verifier"),
            metrics: PeerMetrics::new(&process.metrics, figures::ROLE),
            tokenizer_json: served.tokenizer_json,
            chat_template: served.chat_template.unwrap_or_default(),
            special_tokens: served.special_tokens,
        });
        figures::tell(&process.metrics, &shared, &config, served.load_time);
        Ok(Self {
            shared,
            health,
            config,
            process,
        })
    }

    /// What the verifier is doing, also once it serves.
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
    ) -> Result<(), VerifierError> {
        let engine = self.shared.engine.clone();
        let service = VerifierServer::new(Service(self.shared))
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let routes = reflection::add_to(Routes::new(service), wire::DESCRIPTORS, NAME)?;
        self.health.ready();
        let server = &self.config.server;
        let healthy = || engine.is_healthy();
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

fn describe<M: LanguageModel>(
    served: &ServedModel<M>,
    config: &VerifierConfig,
) -> v1::PeerDescription {
    let shape = served.model.shape();
    v1::PeerDescription {
        model: served.name.clone(),
        logits_size: shape.vocab_size as u32,
        vocab_size: served.vocab_size,
        vocab_fingerprint: served.vocab_fingerprint.to_vec(),
        context_len: match shape.source_len {
            0 => shape.context_len as u32,
            source_len => shape.context_len.min(source_len) as u32,
        },
        decoder_start_token_id: served.decoder_start_token_id,
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
        trees: true,
        ..wire::describe::capabilities()
    }
}

/// Looks into a running verifier.
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

    /// Memory of the engine.
    pub fn memory(&self) -> MemoryGauges {
        self.0.engine.memory()
    }

    /// What the engine did so far.
    pub fn totals(&self) -> Totals {
        self.0.engine.totals()
    }
}

struct Service(Arc<Shared>);

#[tonic::async_trait]
impl verifier_server::Verifier for Service {
    type TokenizerStream = BoxStream<v1::TokenizerPart>;
    type VerifyStream = ReplyStream<v1::VerifyReply>;

    async fn describe(
        &self,
        _request: Request<v1::DescribeRequest>,
    ) -> Result<Response<v1::PeerDescription>, Status> {
        Ok(Response::new(self.0.description.clone()))
    }

    async fn tokenizer(
        &self,
        _request: Request<v1::TokenizerRequest>,
    ) -> Result<Response<Self::TokenizerStream>, Status> {
        let first = v1::TokenizerPart {
            chat_template: self.0.chat_template.clone(),
            bos_token: self.0.special_tokens.bos.clone().unwrap_or_default(),
            eos_token: self.0.special_tokens.eos.clone().unwrap_or_default(),
            tokenizer_json: Vec::new(),
        };
        let shared = Arc::clone(&self.0);
        let parts = shared.tokenizer_json.len().div_ceil(TOKENIZER_PART_BYTES);
        let rest = (0..parts).map(move |part| {
            let from = part * TOKENIZER_PART_BYTES;
            let to = shared.tokenizer_json.len().min(from + TOKENIZER_PART_BYTES);
            let tokenizer_json = shared.tokenizer_json[from..to].to_vec();
            v1::TokenizerPart {
                tokenizer_json,
                ..Default::default()
            }
        });
        let parts = std::iter::once(first).chain(rest).map(Ok);
        Ok(Response::new(Box::pin(tokio_stream::iter(parts))))
    }

    async fn verify(
        &self,
        request: Request<Streaming<v1::VerifyRequest>>,
    ) -> Result<Response<Self::VerifyStream>, Status> {
        let replies = stream::spawn(Arc::clone(&self.0), request.into_inner());
        Ok(Response::new(replies))
    }
}
