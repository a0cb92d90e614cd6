//! One layer of configuration: a tree of values and where they came from.

use std::path::Path;

use figment::providers::{Format, Json, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Metadata, Profile, Provider};
use net::bounded::{self, MAX_SETTINGS_BYTES};
use serde::Serialize;

use super::ConfigError;

/// A figment provider whose metadata is where its values come from: `default`, `file` and its path,
/// `environment` and the variable's name, or `flag`.
pub(super) struct ConfigLayer {
    pub(super) origin: String,
    pub(super) values: Dict,
}

impl ConfigLayer {
    /// Serialises a value that must come out as a map.
    pub(super) fn serialized(origin: &str, value: &impl Serialize) -> Result<Self, ConfigError> {
        let origin = origin.to_owned();
        match Value::serialize(value).map_err(ConfigError::from_figment)? {
            Value::Dict(_, values) => Ok(Self { origin, values }),
            Value::Empty(..) => Ok(Self {
                origin,
                values: Dict::new(),
            }),
            other => Err(ConfigError::NotAMap {
                origin,
                found: other.to_actual().to_string(),
            }),
        }
    }

    /// Reads a TOML or JSON file. Figment's own file provider takes a missing file for an empty one
    /// and looks for it in parent directories; a path the user named must be read or refused.
    pub(super) fn file(path: &Path) -> Result<Self, ConfigError> {
        let extension = path.extension().and_then(|name| name.to_str());
        let parse = match extension {
            Some("toml") => parse_toml,
            Some("json") => parse_json,
            _ => return Err(ConfigError::Extension(path.to_owned())),
        };
        let text = bounded::text_file(path, MAX_SETTINGS_BYTES);
        let text = text.map_err(|source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let values = parse(&text).map_err(|reason| ConfigError::Malformed {
            path: path.to_owned(),
            reason,
        })?;
        let origin = format!("file {}", path.display());
        Ok(Self { origin, values })
    }

    pub(super) fn flags(flags: &impl Serialize) -> Result<Self, ConfigError> {
        let mut given = Self::serialized("flag", flags)?;
        given.values = without_nulls(given.values);
        Ok(given)
    }
}

/// Leaves out the value at `path`, or the list that it stands in; whether there was one.
pub(super) fn forget(values: &mut Dict, path: &[String]) -> bool {
    let [key, rest @ ..] = path else {
        return false;
    };
    if let (Some(Value::Dict(_, inner)), [_, ..]) = (values.get_mut(key), rest) {
        return forget(inner, rest);
    }
    values.remove(key).is_some()
}

impl Provider for ConfigLayer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.origin.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Map::from([(Profile::Default, self.values.clone())]))
    }
}

fn without_nulls(values: Dict) -> Dict {
    let given = values.into_iter().filter_map(|(key, value)| match value {
        Value::Empty(..) => None,
        Value::Dict(tag, inner) => {
            // Of a section no flag was given for, nothing takes the place of what a file says.
            let inner = without_nulls(inner);
            (!inner.is_empty()).then_some((key, Value::Dict(tag, inner)))
        }
        value => Some((key, value)),
    });
    given.collect()
}

fn parse_toml(text: &str) -> Result<Dict, String> {
    Toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())
}

fn parse_json(text: &str) -> Result<Dict, String> {
    Json::from_str(text).map_err(|error| error.to_string())
}
