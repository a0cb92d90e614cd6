//! What the types of settings do not say.

use std::collections::HashSet;

use net::channel::{Trust, parse};
use speculation::methods;

use super::{CoordinatorConfig, MAX_DRAFT_LEN};
use crate::error::CoordinatorError;

impl CoordinatorConfig {
    /// Returns the faults of the settings, for a process that may connect as `trust` says.
    pub fn check(&self, trust: Trust) -> Vec<CoordinatorError> {
        let mut problems = self.check_drafting();
        problems.extend(self.check_method().err());
        problems.extend(self.check_models());
        let of_http = self.http.problems().into_iter();
        problems.extend(of_http.map(|(key, problem)| wrong(&key, problem)));
        let models = self.models.iter();
        let urls = models.flat_map(|model| model.drafters.iter().chain(&model.verifiers));
        let wrong = urls.filter_map(|url| parse(url, trust).err());
        problems.extend(wrong.map(CoordinatorError::Url));
        problems
    }

    fn check_drafting(&self) -> Vec<CoordinatorError> {
        let lengths = [
            ("draft_len", self.draft_len.fixed()),
            ("draft_cap", Some(self.draft_cap)),
        ];
        let too_long = lengths.into_iter().filter_map(|(key, value)| {
            let value = value.filter(|value| value.get() > MAX_DRAFT_LEN)?;
            let problem = format!("{value} is out of range, expected 1 to {MAX_DRAFT_LEN}");
            Some(wrong(key, problem))
        });
        too_long.collect()
    }

    fn check_method(&self) -> Result<(), CoordinatorError> {
        let method = methods::find(&self.method);
        let method = method.map_err(|bad| wrong("method", bad.problem))?;
        if self.lossless_only && !method.is_lossless() {
            let problem = format!(
                "'{}' is not lossless, and lossless_only is set",
                self.method
            );
            return Err(wrong("method", problem));
        }
        Ok(())
    }

    fn check_models(&self) -> Vec<CoordinatorError> {
        let mut problems = Vec::new();
        let mut names = HashSet::new();
        if self.models.is_empty() {
            problems.push(wrong("models", "empty, expected at least one model"));
        }
        for (index, model) in self.groups().iter().enumerate() {
            let key = format!("models.{index}.name");
            if model.name.is_empty() {
                let problem = "empty, expected what requests call the model";
                problems.push(wrong(&key, problem));
            }
            for (name, key) in model.names(index) {
                if !names.insert(name) {
                    problems.push(wrong(&key, format!("'{name}' stands twice")));
                }
            }
            if model.verifiers.is_empty() {
                let key = format!("models.{index}.verifiers");
                problems.push(wrong(&key, "empty, expected at least one URL"));
            }
        }
        problems
    }
}

/// Returns the error of a setting of the coordinator.
fn wrong(key: &str, problem: impl Into<String>) -> CoordinatorError {
    CoordinatorError::Setting {
        key: key.to_owned(),
        problem: problem.into(),
    }
}
