//! All served models.

use std::sync::Arc;

use server::process::Process;

use super::model::ServedModel;
use crate::config::CoordinatorConfig;
use crate::error::CoordinatorError;

/// The default one first; names differ.
#[derive(Debug)]
pub(crate) struct Models(Vec<Arc<ServedModel>>);

impl Models {
    /// # Errors
    /// Names the setting that cannot be used.
    pub(crate) fn new(
        config: &CoordinatorConfig,
        process: &Process,
    ) -> Result<Self, CoordinatorError> {
        let groups = config.groups();
        let models = groups
            .iter()
            .map(|model| ServedModel::new(model, config, process).map(Arc::new));
        Ok(Self(models.collect::<Result<_, _>>()?))
    }

    /// The model called `name`; the first one if `name` is empty.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<ServedModel>> {
        if name.is_empty() {
            return self.0.first();
        }
        self.0.iter().find(|model| model.is_called(name))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<ServedModel>> {
        self.0.iter()
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|model| model.name()).collect()
    }
}
