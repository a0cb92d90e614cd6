//! Finding a model, opening its files and loading it.

use std::sync::Arc;

use speculation::ports::LanguageModel;

use super::located::{self, Located};
use super::{
    EngineKind, ModelReference, ModelSource, ServedModel, SourceError, serve, served, unobserved,
};
use crate::checkpoint::Checkpoint;
use crate::embedded;
use crate::progress::ProgressObserver;
use crate::runtime::Model;

impl ModelSource {
    /// Opens and loads the model and its acceptance heads: those compiled in with an embedded model, or
    /// `head-*.safetensors` beside the weights; beside a GGUF file those that fit its width, one for each
    /// label.
    ///
    /// # Errors
    /// [`SourceError`] naming the setting or the file that is wrong; a head that was trained for other
    /// weights is one, but beside a GGUF file, whose folder may hold other models' ([`ServedModel::fit`]).
    pub fn load(&self) -> Result<ServedModel<Model>, SourceError> {
        self.load_observed(&unobserved())
    }

    /// [`ModelSource::load`], which `observer` watches; of a model of the hub its download, too.
    ///
    /// # Errors
    /// As [`ModelSource::load`].
    pub fn load_observed(
        &self,
        observer: &Arc<dyn ProgressObserver>,
    ) -> Result<ServedModel<Model>, SourceError> {
        let located = self.locate(observer)?;
        let mut served = self.serve(&located, observer)?;
        if served.model.shape().hidden_size == 0 {
            // Heads read hidden states, which llama.cpp and some of candle's models do not give.
            return Ok(served);
        }
        let heads = match &located {
            Located::Embedded(role) => embedded::heads(role)
                .and_then(|heads| heads.into_iter().map(|head| served.fit(head)).collect()),
            Located::Stored(path) => served.heads_in(located::folder_of(path)),
        };
        served.heads = heads.map_err(SourceError::head(&self.path))?;
        Ok(served)
    }

    /// Opens and loads the model alone: heads beside it may be for other weights.
    ///
    /// # Errors
    /// As [`ModelSource::load`], but for heads.
    pub fn load_without_heads(&self) -> Result<ServedModel<Model>, SourceError> {
        let observer = unobserved();
        self.serve(&self.locate(&observer)?, &observer)
    }

    /// Opens the model's files, without loading its weights.
    ///
    /// # Errors
    /// [`SourceError`] naming the path.
    pub fn open(&self) -> Result<Checkpoint, SourceError> {
        self.open_observed(&unobserved())
    }

    /// [`ModelSource::open`], where `observer` watches the download of a model of the hub, and how the weights are loaded later.
    ///
    /// # Errors
    /// As [`ModelSource::open`].
    pub fn open_observed(
        &self,
        observer: &Arc<dyn ProgressObserver>,
    ) -> Result<Checkpoint, SourceError> {
        self.open_located(&self.locate(observer)?, observer)
    }

    /// Finds the model, and downloads it if it is one of the hub's that is not here.
    #[cfg_attr(
        not(feature = "hub"),
        expect(unused_variables, reason = "nothing is downloaded")
    )]
    fn locate(&self, observer: &Arc<dyn ProgressObserver>) -> Result<Located, SourceError> {
        match ModelReference::parse(&self.path)? {
            #[cfg(feature = "hub")]
            ModelReference::Hub(wanted) => {
                let hub = crate::hub::Hub::from_env()?.observed(Arc::clone(observer));
                let snapshot = hub.fetch(&wanted)?;
                tracing::info!(model = %wanted, commit = snapshot.commit, "model from the hub");
                Ok(Located::Stored(snapshot.path))
            }
            reference => self.on_this_machine(reference),
        }
    }

    /// Finds the model without a download; none if it is one of the hub's that is not here yet.
    pub(super) fn locate_here(&self) -> Result<Option<Located>, SourceError> {
        match ModelReference::parse(&self.path)? {
            #[cfg(feature = "hub")]
            ModelReference::Hub(wanted) => {
                let held = crate::hub::Hub::from_env()?.held(&wanted)?;
                Ok(held.map(|snapshot| Located::Stored(snapshot.path)))
            }
            reference => self.on_this_machine(reference).map(Some),
        }
    }

    fn on_this_machine(&self, reference: ModelReference) -> Result<Located, SourceError> {
        match reference {
            ModelReference::Embedded(role) => Ok(Located::Embedded(role)),
            ModelReference::Local(path) if path.exists() => Located::stored(path),
            #[cfg(not(feature = "hub"))]
            ModelReference::Hub(_) => Err(SourceError::NoHub(self.path.clone())),
            _ => Err(SourceError::NotHere(self.path.clone())),
        }
    }

    fn serve(
        &self,
        located: &Located,
        observer: &Arc<dyn ProgressObserver>,
    ) -> Result<ServedModel<Model>, SourceError> {
        if self.engine == EngineKind::LlamaCpp {
            #[cfg(feature = "llama-cpp")]
            return self.serve_by_llama_cpp(located);
            #[cfg(not(feature = "llama-cpp"))]
            return Err(SourceError::NoLlamaCpp);
        }
        if self.engine_for(located) == EngineKind::Candle {
            return self.serve_by_candle(located, observer);
        }
        let checkpoint = self.open_located(located, observer)?;
        let computation = self.computation_of(&checkpoint)?;
        // How the built-in models are computed is part of what they are.
        if matches!(located, Located::Stored(_))
            && let Some(warning) = served::rounding_warning(self, &checkpoint, computation)
        {
            tracing::warn!(model = self.served_name(), "{warning}");
        }
        serve(&checkpoint, computation, self.served_name(), &self.path)
    }

    pub(super) fn open_located(
        &self,
        located: &Located,
        observer: &Arc<dyn ProgressObserver>,
    ) -> Result<Checkpoint, SourceError> {
        let opened = match located {
            Located::Embedded(role) if !embedded::ROLES.contains(&role.as_str()) => {
                return Err(SourceError::UnknownEmbedded(self.path.clone()));
            }
            Located::Embedded(role) => embedded::model(role),
            Located::Stored(path) => Checkpoint::open(path),
        };
        let opened = opened.map_err(SourceError::checkpoint(&self.path))?;
        let opened = opened.observed(&self.served_name(), Arc::clone(observer));
        Ok(match self.weights_cache.as_str() {
            "" => opened,
            folder => opened.cached_in(folder),
        })
    }
}
