//! Which bigram table a drafter has, and whether Max-Gram is a draft of its cascade.

use std::path::Path;

use model::bigram::{BigramError, BigramFile};
use model::source::Outline;
use ops::config::Switch;
use ops::service_error::ServiceError;

use crate::config::{AUTOMATIC, DrafterConfig, NO_TABLE, wrong};

/// A bigram table in a model's folder.
const BESIDE_MODEL: &str = "bigram.safetensors";

/// Returns the table of a drafter without a model, which knows its vocabulary by it.
///
/// # Errors
/// If there is to be none; else names the file and what is wrong with it.
pub(crate) fn alone(config: &DrafterConfig) -> Result<BigramFile, ServiceError> {
    let file = match config.bigram.as_str() {
        NO_TABLE => {
            let problem = "none, and drafter.model.path is none too: a drafter without a model knows its vocabulary \
                           by a table; make one with `outrider-bench bigram build`";
            return Err(wrong("bigram", problem));
        }
        AUTOMATIC => BigramFile::open("embedded"),
        path => BigramFile::open(path),
    };
    file.map_err(|error| wrong("bigram", error))
}

/// Returns the table of the vocabulary of `model`, if there is one: the named one, that in the model's folder, or the
/// built-in one.
///
/// # Errors
/// Names the file and what is wrong with it.
pub(crate) fn beside(
    model: &Outline,
    config: &DrafterConfig,
) -> Result<Option<BigramFile>, BigramError> {
    let fits = |file: &BigramFile, path: &str| {
        file.check(&model.vocab_fingerprint, model.vocab_size, path)
    };
    let named = |path: &str| {
        let file = BigramFile::open(path)?;
        fits(&file, path)?;
        Ok(Some(file))
    };
    let beside = Path::new(&config.model.path).join(BESIDE_MODEL);
    match config.bigram.as_str() {
        NO_TABLE => Ok(None),
        AUTOMATIC if beside.is_file() => named(&beside.to_string_lossy()),
        AUTOMATIC => match BigramFile::open("embedded") {
            Ok(file) => Ok(Some(file).filter(|file| fits(file, "embedded").is_ok())),
            Err(BigramError::NotEmbedded) => Ok(None),
            Err(error) => Err(error),
        },
        path => named(path),
    }
}

/// Returns whether Max-Gram is a draft of the cascade.
///
/// # Errors
/// If it must be, and there is no table.
pub(crate) fn has_max_gram(config: &DrafterConfig, has_table: bool) -> Result<bool, ServiceError> {
    match config.cascade.max_gram {
        Switch::Auto => Ok(has_table),
        Switch::Off => Ok(false),
        Switch::On if has_table => Ok(true),
        Switch::On => {
            let bigram = &config.bigram;
            let problem = format!(
                "true, and with drafter.bigram = \"{bigram}\" there is no bigram table, which Max-Gram falls \
                 back on; name one, make one with `outrider-bench bigram build`, or set it to false or auto"
            );
            Err(wrong("cascade.max_gram", problem))
        }
    }
}
