//! Which words a setting takes that is one of a list.

use figment::Figment;
use figment::error::{Error, Kind, OneOf};
use serde::de::DeserializeOwned;

/// No setting takes it.
const NO_WORD: &str = "?";

/// Returns `error` with the words that its setting takes. serde names them where another word stands there, and not
/// where a number or a table does, so that the configuration is read again with a word in its place.
pub(super) fn named<T: DeserializeOwned>(figment: &Figment, mut error: Error) -> Error {
    let Kind::InvalidType(found, expected) = &error.kind else {
        return error;
    };
    if !expected.starts_with("enum") {
        return error;
    }
    let again = figment.clone().merge((error.path.join("."), NO_WORD));
    let Err(again) = again.extract::<T>() else {
        return error;
    };
    if let Kind::UnknownVariant(_, words) = again.kind
        && again.path == error.path
    {
        error.kind = Kind::InvalidValue(found.clone(), OneOf(words).to_string());
    }
    error
}
