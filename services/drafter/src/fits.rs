//! Whether vocabularies, acceptance heads and models of a cascade go together.

use std::error::Error;
use std::path::Path;

use model::head::{AcceptanceHead, HeadError};
use model::source::Outline;

/// Returns the heads in `files`, each as `fit` takes it, at most one for each label.
///
/// # Errors
/// Names the file, and what is wrong with it.
pub(crate) fn heads(
    files: &[String],
    fit: impl Fn(AcceptanceHead) -> Result<AcceptanceHead, HeadError>,
) -> Result<Vec<AcceptanceHead>, Box<dyn Error + Send + Sync>> {
    let mut heads: Vec<AcceptanceHead> = Vec::new();
    for file in files {
        let head = fit(AcceptanceHead::open(Path::new(file))?)?;
        let label = head.info().label;
        if let Some(twin) = heads.iter().find(|twin| twin.info().label == label) {
            let (one, other) = (twin.origin(), head.origin());
            let problem = format!(
                "'{one}' and '{other}' are both for label '{}', leave one of them out",
                label.name()
            );
            return Err(problem.into());
        }
        heads.push(head);
    }
    Ok(heads)
}

/// Checks that `model` can be in a cascade with `first`.
///
/// # Errors
/// Names both, and in what they differ.
pub(crate) fn same_vocabulary(model: &Outline, first: &Outline) -> Result<(), String> {
    let encoder = |of: &Outline| of.decoder_start_token_id.is_some();
    if encoder(model) != encoder(first) {
        return Err(format!(
            "of '{}' and '{}' one is an encoder-decoder model, the other is not; the models of a cascade must \
             all be, or none",
            model.name, first.name
        ));
    }
    let vocabulary = |of: &Outline| (of.vocab_size, of.vocab_fingerprint);
    if vocabulary(model) == vocabulary(first) {
        return Ok(());
    }
    Err(format!(
        "'{}' has another vocabulary ({} tokens) than '{}' ({} tokens); the models of a cascade must \
         have one",
        model.name, model.vocab_size, first.name, first.vocab_size
    ))
}
