//! Configuration in four layers: defaults, then a file, then the environment, then flags. Where none of them sets the
//! log filter, `RUST_LOG` does.
//!
//! Each layer overrides the ones before it key by key; arrays are replaced whole. Every value
//! remembers where it came from, so errors name the file or the variable at fault, and
//! [`LoadedConfig::provenance`] lists the origin of each setting.
//!
//! Unknown keys are refused by the configuration type itself: give every struct in it
//! `#[serde(default, deny_unknown_fields)]`.

mod environment;
mod error;
mod layer;
mod provenance;
mod switch;

use std::ffi::OsString;
use std::path::Path;

use figment::error::{Error, Kind, OneOf};
use figment::value::Value;
use figment::{Figment, Profile, Provider};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use error::{ConfigError, did_you_mean};
pub use provenance::SettingProvenance;
pub use switch::Switch;

use layer::ConfigLayer;

/// A configuration together with the origin of each of its settings.
#[derive(Debug, Clone)]
pub struct LoadedConfig<T> {
    /// The configuration after all layers.
    pub value: T,
    /// Every setting in the order of its key, with its value and origin; secrets are masked.
    pub provenance: Vec<SettingProvenance>,
}

/// Loads a configuration: `T::default()` < `file` < `environment` < `flags`.
///
/// The file is TOML or JSON by its extension. The environment's names, [`vars_os`](std::env::vars_os) by default, are
/// `OUTRIDER__SECTION__KEY`: the double underscore keeps them apart from what Kubernetes injects for its services
/// (`OUTRIDER_COORDINATOR_PORT`). `flags` is anything that serialises to a map shaped like `T`; nulls in it count as flags
/// that were not given.
///
/// # Errors
/// Names the key, its value and its origin for whatever does not fit `T`.
pub fn load<T>(
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    flags: &impl Serialize,
) -> Result<LoadedConfig<T>, ConfigError>
where
    T: DeserializeOwned + Serialize + Default,
{
    let layers = ConfigLayers::gather::<T>(file, environment, flags)?;
    layers
        .merge()
        .map_err(|error| ConfigError::from_figment(*error))
}

/// Like [`load`], but goes on past values that do not fit `T`: each is told, and what holds without it takes its
/// place, so that one reading finds them all. There is no configuration if a layer cannot be read at all.
pub fn survey<T>(
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    flags: &impl Serialize,
) -> (Option<LoadedConfig<T>>, Vec<ConfigError>)
where
    T: DeserializeOwned + Serialize + Default,
{
    let mut layers = match ConfigLayers::gather::<T>(file, environment, flags) {
        Ok(layers) => layers,
        Err(error) => return (None, vec![error]),
    };
    let mut errors = Vec::new();
    loop {
        let error = match layers.merge() {
            Ok(loaded) => return (Some(loaded), errors),
            Err(error) => error,
        };
        let path = error.path.clone();
        errors.push(ConfigError::from_figment(*error));
        // Every turn leaves out a value, so this ends.
        if !layers.forget(&path) {
            return (None, errors);
        }
    }
}

/// The layers over the defaults, the strongest last.
struct ConfigLayers {
    defaults: ConfigLayer,
    given: Vec<ConfigLayer>,
}

impl ConfigLayers {
    fn gather<T: Serialize + Default>(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        flags: &impl Serialize,
    ) -> Result<Self, ConfigError> {
        let defaults = ConfigLayer::serialized("default", &T::default())?;
        let shape = Value::from(defaults.values.clone());

        let environment: Vec<_> = environment.into_iter().collect();
        let mut given = Vec::from_iter(environment::rust_log(&environment, &shape));
        if let Some(path) = file {
            given.push(ConfigLayer::file(path)?);
        }
        given.extend(environment::layers(environment, &shape)?);
        given.push(ConfigLayer::flags(flags)?);
        Ok(Self { defaults, given })
    }

    fn merge<T: DeserializeOwned>(&self) -> Result<LoadedConfig<T>, Box<figment::Error>> {
        let figment = (self.given.iter()).fold(Figment::from(&self.defaults), Figment::merge);
        let value = figment
            .extract()
            .map_err(|error| named::<T>(&figment, error))?;
        let mut profiles = figment.data()?;
        let merged = profiles.remove(&Profile::Default).unwrap_or_default();
        Ok(LoadedConfig {
            value,
            provenance: provenance::settings("", &merged, &figment),
        })
    }

    /// Leaves out what was given at `path`; whether there was anything.
    fn forget(&mut self, path: &[String]) -> bool {
        let forgotten = self
            .given
            .iter_mut()
            .map(|layer| layer::forget(&mut layer.values, path));
        forgotten.fold(false, |any, forgotten| any | forgotten)
    }
}

/// No setting takes it.
const NO_WORD: &str = "?";

/// Returns `error` with the words that its setting takes. serde names them where another word stands there, and not
/// where a number or a table does, so that the configuration is read again with a word in its place.
fn named<T: DeserializeOwned>(figment: &Figment, mut error: Error) -> Error {
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

#[cfg(test)]
mod tests;
