//! What the types of settings do not say.

use std::error::Error;

use model::source::ModelSource;
use ops::service_error::ServiceError;
use speculation::cascade::CascadeConfig;

use super::{
    AUTOMATIC, CascadeSection, DrafterConfig, MAX_DRAFT_TOKENS, MAX_GRAM, NO_MODEL, NO_TABLE, ROLE,
};

impl DrafterConfig {
    /// Returns the faults of the settings that show without opening the files that they name.
    pub fn check(&self) -> Vec<ServiceError> {
        let mut problems = Vec::from_iter(self.check_limits().err());
        if self.model.path == NO_MODEL {
            problems.extend(self.check_without_model());
            return problems;
        }
        let first = [("model".to_owned(), &self.model)].into_iter();
        for (setting, source) in first.chain(self.cascade.sources()) {
            let checked = source.check();
            problems.extend(checked.err().map(|error| wrong(&setting, error)));
        }
        problems
    }

    /// Checks what bounds a round and an engine.
    ///
    /// # Errors
    /// Names the bound.
    pub(crate) fn check_limits(&self) -> Result<(), ServiceError> {
        let tokens = self.max_draft_tokens.get();
        if tokens <= MAX_DRAFT_TOKENS {
            let checked = self.bounds().engine().check_budget();
            return checked.map_err(ServiceError::engine(ROLE));
        }
        let problem = format!("{tokens} is out of range, expected 1 to {MAX_DRAFT_TOKENS}");
        Err(wrong("max_draft_tokens", problem))
    }

    /// Returns an error for each setting that needs a draft model, where there is none.
    fn check_without_model(&self) -> Vec<ServiceError> {
        let given = [
            ("heads", !self.heads.is_empty()),
            ("cascade.models", !self.cascade.models.is_empty()),
            ("cascade.k", !self.cascade.k.is_empty()),
        ];
        let given = given.into_iter().filter(|(_, is_given)| *is_given);
        let mut problems: Vec<_> = given
            .map(|(setting, _)| {
                let problem = "goes with a draft model, and drafter.model.path is none";
                wrong(setting, problem)
            })
            .collect();
        if problems.is_empty() {
            // Nothing is done with the rest of it here.
            problems.extend(self.cascade.of(Vec::new(), true).err());
        }
        problems
    }

    /// Returns whether a draft model is named.
    pub fn has_model(&self) -> bool {
        self.model.path != NO_MODEL
    }

    /// Returns whether a drafter can run beside a target model: a draft model or a bigram table is named.
    pub fn drafts(&self) -> bool {
        self.has_model() || ![AUTOMATIC, NO_TABLE].contains(&self.bigram.as_str())
    }

    /// Names no draft model any more.
    pub fn remove_model(&mut self) {
        NO_MODEL.clone_into(&mut self.model.path);
    }

    /// Returns the draft models, the largest first.
    pub fn sources_mut(&mut self) -> impl Iterator<Item = &mut ModelSource> {
        std::iter::once(&mut self.model).chain(&mut self.cascade.models)
    }
}

impl CascadeSection {
    /// Returns its models, each with the setting that names it.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (String, &ModelSource)> {
        let models = self.models.iter().enumerate();
        models.map(|(index, source)| (format!("cascade.models[{index}]"), source))
    }

    /// Returns the cascade of the models with these `names`, and of Max-Gram if `has_max_gram`; none of a single
    /// draft.
    ///
    /// # Errors
    /// Names what cannot be of it.
    pub(crate) fn of(
        &self,
        mut names: Vec<&str>,
        has_max_gram: bool,
    ) -> Result<Option<CascadeConfig>, ServiceError> {
        names.extend(has_max_gram.then_some(MAX_GRAM));
        let drafts = names.len();
        let k = match &self.k {
            k if k.is_empty() => Self::default_k(drafts, has_max_gram),
            k => k.clone(),
        };
        let (lenience, max_gram_tokens) = (self.lenience, self.max_gram_tokens);
        // Checked even where there is nothing to be done with it: a wrong setting should not lie in wait.
        let cascade = CascadeConfig::new(drafts, has_max_gram, k, lenience, max_gram_tokens);
        let cascade = cascade.map_err(|bad| {
            // It begins with what is wrong of a cascade: "cascade_k: 1 rows".
            let bad = bad.to_string().replacen('_', ".", 1);
            let (setting, problem) = bad.split_once(": ").unwrap_or(("cascade", &bad));
            wrong(
                setting,
                format!("{problem}; the drafts are {}", names.join(", ")),
            )
        })?;
        Ok((drafts > 1).then_some(cascade))
    }
}

/// Returns the error of a setting of the drafter.
pub(crate) fn wrong(
    setting: &str,
    problem: impl Into<Box<dyn Error + Send + Sync>>,
) -> ServiceError {
    ServiceError::setting(ROLE, setting, problem)
}
