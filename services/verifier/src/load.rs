//! From settings to a verifier that serves.

use std::sync::Arc;

use model::Model;
use model::engine;
use model::progress::{ProgressLines, ProgressObserver};
use model::source::{Inspected, ServedModel};
use ops::process::Process;
use ops::service_error::ServiceError;
use speculation::ports::LanguageModel;
use wire::v1;

use crate::config::{ROLE, VerifierConfig};
use crate::engine::EngineScorer;
use crate::remote::{self, RemoteModel};
use crate::scorer::{Verifier, VerifierRole};

/// A target model that is there.
pub enum LoadedTarget {
    /// In this process.
    Local(Box<ServedModel<Model>>),
    /// In an engine elsewhere.
    Remote(Box<RemoteModel>),
}

impl LoadedTarget {
    /// Starts what computes it, or asks the engine that does.
    ///
    /// # Errors
    /// If the model has no tokenizer, or fails its first forward.
    pub fn start(
        self,
        config: &VerifierConfig,
        process: Process,
    ) -> Result<Arc<Verifier>, ServiceError> {
        match self {
            Self::Local(model) => start(*model, config, process),
            Self::Remote(model) => model.start(config, process),
        }
    }
}

/// Loads the model that `config` names, if the rest of it can be; `observer` watches. Where an engine elsewhere computes
/// it, that is waited for.
///
/// # Errors
/// [`ServiceError`] naming what is wrong with the model or another setting.
pub fn load(
    config: &VerifierConfig,
    observer: &Arc<dyn ProgressObserver>,
) -> Result<LoadedTarget, ServiceError> {
    if let Some(problem) = config.check().into_iter().next() {
        return Err(problem);
    }
    if config.remote.is_set() {
        return Ok(LoadedTarget::Remote(Box::new(remote::load(config)?)));
    }
    let model = config.model.load_observed(observer);
    let model = model.map_err(|error| ServiceError::setting(ROLE, "model", error))?;
    let checked = model.model.check_target();
    checked.map_err(|error| ServiceError::setting(ROLE, "model", error))?;
    Ok(LoadedTarget::Local(Box::new(model)))
}

/// Returns the description by which others check whether the model is compatible with theirs.
pub fn outline(model: &Inspected) -> v1::PeerDescription {
    peer::outline(&model.outline)
}

/// Looks at the model's files as [`load`] does, but for the bytes of its weights; none if it is one of the hub's that
/// has yet to be downloaded.
///
/// # Errors
/// [`ServiceError`] naming what is wrong with them.
pub fn inspect(config: &VerifierConfig) -> Result<Option<Inspected>, ServiceError> {
    let inspected = if config.remote.is_set() {
        config.model.text().map(|text| Some(text.into()))
    } else {
        config.model.inspect()
    };
    let inspected = inspected.map_err(|error| ServiceError::setting(ROLE, "model", error))?;
    if let Some(model) = &inspected {
        let checked = model.check_target();
        checked.map_err(|error| ServiceError::setting(ROLE, "model", error))?;
    }
    Ok(inspected)
}

/// Binds, loads, warms up and serves until `shutdown` completes; then drains. If that is before the model is
/// loaded, nothing is waited for.
///
/// # Errors
/// [`ServiceError`] naming what is wrong with address or model, or why serving ended early.
pub async fn run(
    config: VerifierConfig,
    process: Process,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServiceError> {
    let (listen, of_model) = (config.listen, config.clone());
    let load = move || load(&of_model, &(Arc::new(ProgressLines::default()) as _));
    let start = |model: LoadedTarget| model.start(&config, process);
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
) -> Result<Arc<Verifier>, ServiceError>
where
    M: LanguageModel + Send + 'static,
    M::Cache: Send,
{
    if served.text.tokenizer_json.is_empty() {
        let name = &served.outline.name;
        let problem = format!("no tokenizer.json beside the weights of '{name}'");
        return Err(ServiceError::setting(ROLE, "model", problem));
    }
    let bounds = config.bounds();
    let description = v1::PeerDescription {
        limits: Some(bounds.to_wire()),
        trees: served.model.caps().trees,
        ..peer::describe(&served)
    };
    let engine = engine::spawn(served.model, bounds.engine(), "target-engine");
    let (engine, _thread) = engine.map_err(ServiceError::engine(ROLE))?;
    let role = VerifierRole::new(served.text, &description, Arc::new(EngineScorer));
    let load_time = (served.outline.name, served.load_time);
    Ok(role.start(vec![engine], description, load_time, &bounds, process))
}
