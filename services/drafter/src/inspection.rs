//! What a drafter's configuration names, looked at before anything is loaded.

use model::source::{Inspected, ModelSource};
use ops::service_error::ServiceError;
use wire::drafting;
use wire::v1::PeerDescription;

use crate::config::{DrafterConfig, wrong};
use crate::service::of_max_gram;
use crate::{fits, tables};
use speculation::drafting::Drafting;

/// The files that a drafter's configuration names, as far as they can be used.
#[derive(Default)]
pub struct Inspection {
    /// The draft models that are here, the largest first, each with the setting that names it.
    pub models: Vec<(String, Inspected)>,
    /// What the drafter will say of its largest model, or of Max-Gram, to those who ask whether it fits them; none if
    /// that is not known yet.
    pub description: Option<PeerDescription>,
    /// What is wrong.
    pub problems: Vec<ServiceError>,
}

/// Looks at the files that `config` names as loading them does, but for the bytes of weights. A model of the hub that
/// has yet to be downloaded is passed over, and with it what depends on it.
pub fn inspect(config: &DrafterConfig) -> Inspection {
    let mut found = Inspection::default();
    if !config.has_model() {
        match tables::alone(config) {
            Ok(table) => found.description = Some(of_max_gram(&table, config)),
            Err(problem) => found.problems.push(problem),
        }
        return found;
    }
    let first = [("model".to_owned(), &config.model)].into_iter();
    for (setting, source) in first.chain(config.cascade.sources()) {
        match source.inspect() {
            Ok(Some(model)) => found.models.push((setting, model)),
            Ok(None) => {}
            Err(error) => found.problems.push(wrong(&setting, error)),
        }
    }
    let Some((_, first)) = found
        .models
        .first()
        .filter(|(setting, _)| setting == "model")
    else {
        return found;
    };
    let mut problems = Vec::new();
    for (setting, other) in &found.models[1..] {
        let checked = fits::same_vocabulary(&other.outline, &first.outline);
        problems.extend(checked.err().map(|problem| wrong(setting, problem)));
    }
    let heads = fits::heads(&config.heads, |head| first.fit(head));
    problems.extend(heads.err().map(|error| wrong("heads", error)));
    match tables::beside(&first.outline, config) {
        Ok(table) => problems.extend(check_cascade(config, table.is_some()).err()),
        Err(error) => problems.push(wrong("bigram", error)),
    }
    found.description = Some(PeerDescription {
        draftings: vec![drafting::to_wire(Drafting::Model).into()],
        ..peer::outline(&first.outline)
    });
    found.problems.extend(problems);
    found
}

fn check_cascade(config: &DrafterConfig, has_table: bool) -> Result<(), ServiceError> {
    let has_max_gram = tables::has_max_gram(config, has_table)?;
    let names: Vec<_> = std::iter::once(&config.model)
        .chain(&config.cascade.models)
        .map(ModelSource::served_name)
        .collect();
    let names = names.iter().map(String::as_str).collect();
    config.cascade.of(names, has_max_gram).map(drop)
}
