//! The gRPC service: load, start, serve.

use std::sync::Arc;

use model::Model;
use model::engine;
use model::progress::{Lines, Observer};
use model::source::{Inspected, ServedModel};
use peer::{Peer, PeerError, ReplyStream};
use server::process::Process;
use speculation::ports::LanguageModel;
use tonic::codegen::tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};
use wire::v1;
use wire::v1::verifier_server;

use crate::config::{ROLE, VerifierConfig};
use crate::remote::{self, RemoteModel};
use crate::target::{Target, Verifier};

/// Bytes of tokenizer.json in one message: well below every default limit of message sizes.
const TOKENIZER_PART_BYTES: usize = 1 << 20;

type BoxStream<T> = std::pin::Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// A target model that is there.
pub enum Loaded {
    /// In this process.
    Here(Box<ServedModel<Model>>),
    /// In an engine elsewhere.
    Elsewhere(Box<RemoteModel>),
}

impl Loaded {
    /// Starts what computes it, or asks the engine that does.
    ///
    /// # Errors
    /// If the model has no tokenizer, or fails its first forward.
    pub fn start(
        self,
        config: &VerifierConfig,
        process: Process,
    ) -> Result<Arc<Verifier>, PeerError> {
        match self {
            Self::Here(model) => start(*model, config, process),
            Self::Elsewhere(model) => remote::start(*model, config, process),
        }
    }
}

/// Loads the model that `config` names, if the rest of it can be; `observer` watches. Where an engine elsewhere computes
/// it, that is waited for.
///
/// # Errors
/// [`PeerError`] naming what is wrong with the model or another setting.
pub fn load(config: &VerifierConfig, observer: &Arc<dyn Observer>) -> Result<Loaded, PeerError> {
    if let Some(problem) = config.check().into_iter().next() {
        return Err(problem);
    }
    if config.remote.is_set() {
        return Ok(Loaded::Elsewhere(Box::new(remote::load(config)?)));
    }
    let model = config.model.load_observed(observer);
    let model = model.map_err(|error| PeerError::setting(ROLE, "model", error))?;
    Ok(Loaded::Here(Box::new(model)))
}

/// Returns what a verifier will say of its model to those who ask whether it fits theirs.
pub fn outline(model: &Inspected) -> v1::PeerDescription {
    peer::outline(&model.outline)
}

/// Looks at the model's files as [`load`] does, but for the bytes of its weights; none if it is one of the hub's that
/// has yet to be downloaded.
///
/// # Errors
/// [`PeerError`] naming what is wrong with them.
pub fn inspect(config: &VerifierConfig) -> Result<Option<Inspected>, PeerError> {
    let inspected = if config.remote.is_set() {
        config.model.text().map(|text| Some(text.into()))
    } else {
        config.model.inspect()
    };
    inspected.map_err(|error| PeerError::setting(ROLE, "model", error))
}

/// Binds, loads, warms up and serves until `shutdown` completes; then drains. If that is before the model is
/// loaded, nothing is waited for.
///
/// # Errors
/// [`PeerError`] naming what is wrong with address or model, or why serving ended early.
pub async fn run(
    config: VerifierConfig,
    process: Process,
    shutdown: impl Future<Output = ()>,
) -> Result<(), PeerError> {
    let (listen, of_model) = (config.listen, config.clone());
    let load = move || load(&of_model, &(Arc::new(Lines::default()) as _));
    let start = |model: Loaded| model.start(&config, process);
    peer::run(listen, load, start, shutdown).await
}

/// Warms the model up and starts its engine.
///
/// # Errors
/// If the model has no tokenizer, or fails its first forward.
pub fn start<M>(
    served: ServedModel<M>,
    config: &VerifierConfig,
    process: Process,
) -> Result<Arc<Verifier>, PeerError>
where
    M: LanguageModel + Send + 'static,
    M::Cache: Send,
{
    if served.tokenizer_json.is_empty() {
        let name = &served.name;
        let problem = format!("no tokenizer.json beside the weights of '{name}'");
        return Err(PeerError::setting(ROLE, "model", problem));
    }
    let bounds = config.bounds();
    let description = v1::PeerDescription {
        limits: Some(bounds.to_wire()),
        trees: served.model.caps().trees,
        ..peer::describe(&served)
    };
    let engine = engine::spawn(served.model, bounds.engine(), "target-engine");
    let (engine, _thread) = engine.map_err(PeerError::engine(ROLE))?;
    let target = Target {
        tokenizer_json: served.tokenizer_json,
        chat_template: served.chat_template.unwrap_or_default(),
        special_tokens: served.special_tokens,
        remote: None,
    };
    let description = v1::PeerDescription {
        text_fingerprint: target.text_fingerprint(),
        ..description
    };
    let load_times = vec![(served.name, served.load_time)];
    Ok(Peer::new(
        target,
        vec![engine],
        description,
        load_times,
        &bounds,
        process,
    ))
}

/// The service as tonic calls it.
pub(crate) struct Service(pub(crate) Arc<Verifier>);

#[tonic::async_trait]
impl verifier_server::Verifier for Service {
    type TokenizerStream = BoxStream<v1::TokenizerPart>;
    type VerifyStream = ReplyStream<v1::VerifyReply>;

    async fn describe(
        &self,
        _request: Request<v1::DescribeRequest>,
    ) -> Result<Response<v1::PeerDescription>, Status> {
        let mut description = self.0.description.clone();
        if let Some(remote) = &self.0.role.remote {
            description.numerics = Some(remote.numerics());
        }
        Ok(Response::new(description))
    }

    async fn tokenizer(
        &self,
        _request: Request<v1::TokenizerRequest>,
    ) -> Result<Response<Self::TokenizerStream>, Status> {
        let verifier = Arc::clone(&self.0);
        let target = &verifier.role;
        let first = v1::TokenizerPart {
            chat_template: target.chat_template.clone(),
            bos_token: target.special_tokens.bos.clone().unwrap_or_default(),
            eos_token: target.special_tokens.eos.clone().unwrap_or_default(),
            tokenizer_json: Vec::new(),
        };
        let parts = target.tokenizer_json.len().div_ceil(TOKENIZER_PART_BYTES);
        let rest = (0..parts).map(move |part| {
            let whole = &verifier.role.tokenizer_json;
            let from = part * TOKENIZER_PART_BYTES;
            let to = whole.len().min(from + TOKENIZER_PART_BYTES);
            v1::TokenizerPart {
                tokenizer_json: whole[from..to].to_vec(),
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
        let replies = peer::spawn(Arc::clone(&self.0), request.into_inner());
        Ok(Response::new(replies))
    }
}
