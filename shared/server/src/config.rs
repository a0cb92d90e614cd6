//! Configuration in four layers: defaults, then a file, then the environment, then flags. Where none of them sets the
//! log filter, `RUST_LOG` does.
//!
//! Each layer overrides the ones before it key by key; arrays are replaced whole. Every value
//! remembers where it came from, so errors name the file or the variable at fault, and
//! [`Loaded::provenance`] lists the origin of each setting.
//!
//! Unknown keys are refused by the configuration type itself: give every struct in it
//! `#[serde(default, deny_unknown_fields)]`.

mod environment;
mod error;
mod layer;
mod moved;
mod provenance;

use std::ffi::OsString;
use std::path::Path;

use figment::value::Value;
use figment::{Figment, Profile, Provider};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use error::ConfigError;
pub use moved::Moved;
pub use provenance::Setting;

use layer::Layer;

/// A configuration together with the origin of each of its settings.
#[derive(Debug, Clone)]
pub struct Loaded<T> {
    /// The configuration after all layers.
    pub value: T,
    /// The settings that were given by keys of an earlier release.
    pub moved: Vec<Moved>,
    settings: Vec<Setting>,
}

impl<T> Loaded<T> {
    /// Lists every setting in the order of its key, with its value and origin; secrets are masked.
    pub fn provenance(&self) -> &[Setting] {
        &self.settings
    }

    /// Warns in the log of each setting that was given by a key of an earlier release.
    pub fn warn_of_moved(&self) {
        for moved in &self.moved {
            tracing::warn!("{moved}");
        }
    }
}

/// Loads a configuration: `T::default()` < `file` < environment < `flags`.
///
/// The file is TOML or JSON by its extension. The environment's names are `OUTRIDER__SECTION__KEY`:
/// the double underscore keeps them apart from what Kubernetes injects for its services
/// (`OUTRIDER_COORDINATOR_PORT`). `flags` is anything that serialises to a map shaped like `T`;
/// nulls in it count as flags that were not given. `renamed` are pairs of keys, `section.key`: the first of
/// each is what an earlier release called the second, and still read.
///
/// # Errors
/// Names the key, its value and its origin for whatever does not fit `T`.
pub fn load<T>(
    file: Option<&Path>,
    flags: &impl Serialize,
    renamed: &[(String, String)],
) -> Result<Loaded<T>, ConfigError>
where
    T: DeserializeOwned + Serialize + Default,
{
    load_from(file, std::env::vars_os(), flags, renamed)
}

/// Like [`load`], with the environment passed in.
///
/// # Errors
/// As [`load`].
pub fn load_from<T>(
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    flags: &impl Serialize,
    renamed: &[(String, String)],
) -> Result<Loaded<T>, ConfigError>
where
    T: DeserializeOwned + Serialize + Default,
{
    let defaults = Layer::serialized("default", &T::default())?;
    let shape = Value::from(defaults.values.clone());

    let environment: Vec<_> = environment.into_iter().collect();
    let mut layers = Vec::from_iter(environment::rust_log(&environment, &shape));
    if let Some(path) = file {
        layers.push(Layer::file(path)?);
    }
    layers.extend(environment::layers(environment, &shape)?);
    layers.push(Layer::flags(flags)?);
    let moved = moved::settle(&mut layers, renamed)?;
    let figment = layers
        .into_iter()
        .fold(Figment::from(defaults), Figment::merge);

    let value = figment.extract().map_err(ConfigError::from_figment)?;
    let mut profiles = figment.data().map_err(ConfigError::from_figment)?;
    let merged = profiles.remove(&Profile::Default).unwrap_or_default();
    let settings = provenance::settings("", &merged, &figment);
    Ok(Loaded {
        value,
        moved,
        settings,
    })
}

#[cfg(test)]
mod tests;
