//! What a drafter's configuration names, loaded and checked.

use std::error::Error;
use std::sync::Arc;

use model::Model;
use model::bigram::BigramFile;
use model::head::AcceptanceHead;
use model::progress::{ProgressLines, ProgressObserver};
use model::source::{ServedModel, share_threads};
use ops::service_error::ServiceError;
use speculation::cascade::CascadeConfig;
use speculation::drafting::Drafting;

use crate::config::{DrafterConfig, wrong};
use crate::{fits, tables};

/// Everyone who can propose, not yet running.
#[derive(Debug)]
pub struct Loaded<M = Model> {
    /// Draft models, the largest first; none if Max-Gram drafts alone.
    pub(crate) models: Vec<ServedModel<M>>,
    /// Acceptance heads of the first model, at most one for each label.
    pub heads: Vec<AcceptanceHead>,
    /// Max-Gram's table, which there is where no model is; without one it only copies.
    pub bigram: Option<BigramFile>,
    /// The cascade, of all models and Max-Gram if it says so.
    pub(crate) cascade: Option<CascadeConfig>,
}

impl Loaded {
    /// Loads all that `config` names.
    ///
    /// # Errors
    /// [`ServiceError`] naming the setting, and what is wrong with it.
    pub fn load(config: &DrafterConfig) -> Result<Self, ServiceError> {
        Self::load_observed(config, &(Arc::new(ProgressLines::default()) as _))
    }

    /// Loads the same, which `observer` watches.
    ///
    /// # Errors
    /// As [`Loaded::load`].
    pub fn load_observed(
        config: &DrafterConfig,
        observer: &Arc<dyn ProgressObserver>,
    ) -> Result<Self, ServiceError> {
        if let Some(problem) = config.check().into_iter().next() {
            return Err(problem);
        }
        let mut config = config.clone();
        share_threads(config.sources_mut());
        let config = &config;
        if config.has_model() {
            let served = config.model.load_observed(observer);
            let served = served.map_err(|error| wrong("model", error))?;
            return Self::with_smaller(served, config, observer);
        }
        Ok(Self {
            models: Vec::new(),
            heads: Vec::new(),
            bigram: Some(tables::alone(config)?),
            cascade: None,
        })
    }

    /// Takes `served` as the draft model, and loads the rest of what `config` names.
    ///
    /// # Errors
    /// As [`Loaded::load`].
    pub fn beside(
        served: ServedModel<Model>,
        config: &DrafterConfig,
    ) -> Result<Self, ServiceError> {
        Self::with_smaller(served, config, &(Arc::new(ProgressLines::default()) as _))
    }

    fn with_smaller(
        served: ServedModel<Model>,
        config: &DrafterConfig,
        observer: &Arc<dyn ProgressObserver>,
    ) -> Result<Self, ServiceError> {
        let mut models = vec![served];
        // Those of the cascade are of the first one's vocabulary.
        for (setting, source) in config.cascade.sources() {
            let model = source.load_observed(observer);
            let model = model.map_err(|error| wrong(&setting, error))?;
            fits::same_vocabulary(&model.outline, &models[0].outline)
                .map_err(|problem| wrong(&setting, problem))?;
            models.push(model);
        }
        Self::of(models, config)
    }

    /// Takes `models` as the draft models, the largest first and at least one, and loads the rest of what
    /// `config` names.
    ///
    /// # Errors
    /// As [`Loaded::load`].
    ///
    /// # Panics
    /// If there is no model.
    pub fn of(
        mut models: Vec<ServedModel<Model>>,
        config: &DrafterConfig,
    ) -> Result<Self, ServiceError> {
        config.check_limits()?;
        let heads = heads(&mut models[0], config).map_err(|error| wrong("heads", error))?;
        let bigram = tables::beside(&models[0].outline, config);
        let bigram = bigram.map_err(|error| wrong("bigram", error))?;
        let has_max_gram = tables::has_max_gram(config, bigram.is_some())?;
        for problem in out_of_order(&models) {
            tracing::warn!("{problem}");
        }
        let names = models
            .iter()
            .map(|model| model.outline.name.as_str())
            .collect();
        let cascade = config.cascade.of(names, has_max_gram)?;
        Ok(Self {
            models,
            heads,
            bigram,
            cascade,
        })
    }
}

impl<M> Loaded<M> {
    /// Takes any model as the draft model, and nothing beside it.
    pub fn alone(served: ServedModel<M>) -> Self {
        Self {
            models: vec![served],
            heads: Vec::new(),
            bigram: None,
            cascade: None,
        }
    }

    /// Returns the ways of drafting, the default first; never empty.
    pub(crate) fn draftings(&self) -> Vec<Drafting> {
        let ways = [
            (Drafting::Model, !self.models.is_empty()),
            (Drafting::MaxGram, true),
            (Drafting::Cascade, self.cascade.is_some()),
        ];
        let held = ways.into_iter().filter(|&(_, held)| held);
        held.map(|(way, _)| way).collect()
    }
}

/// Returns the heads found with the model, and those the configuration names.
fn heads(
    served: &mut ServedModel<Model>,
    config: &DrafterConfig,
) -> Result<Vec<AcceptanceHead>, Box<dyn Error + Send + Sync>> {
    let mut heads = fits::heads(&config.heads, |head| served.fit(head))?;
    for found in std::mem::take(&mut served.heads) {
        if !heads
            .iter()
            .any(|head| head.info().label == found.info().label)
        {
            heads.push(found);
        }
    }
    Ok(heads)
}

/// Returns a warning for each model that reads more for a token than the one before it: the cascade would ask the
/// dearer one more often. It is no error, for memory and formats differ, and the output is the same.
fn out_of_order(models: &[ServedModel<Model>]) -> Vec<String> {
    let weights = |served: &ServedModel<Model>| served.model.weights_per_token();
    let pairs = models.windows(2).enumerate();
    pairs
        .filter(|(_, pair)| weights(&pair[1]) > weights(&pair[0]))
        .map(|(index, pair)| {
            format!(
                "drafter.cascade.models[{index}]: '{}' reads {} weights a token, more than the {} of '{}' before \
                 it; the largest should come first, and each be smaller than the one before",
                pair[1].outline.name,
                weights(&pair[1]),
                weights(&pair[0]),
                pair[0].outline.name
            )
        })
        .collect()
}
