//! Settings that stand in another place since this release, and are still read where they stood.

use std::fmt;

use figment::value::{Dict, Value};

use super::ConfigError;
use super::layer::Layer;

/// A setting that was given by a key of an earlier release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The key that was given.
    pub old: String,
    /// The key it has now.
    pub new: String,
    /// The file, variable or flag that gave it.
    pub origin: String,
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { old, new, origin } = self;
        write!(
            f,
            "{old} from {origin} is called {new} now; the next release no longer reads {old}"
        )
    }
}

/// Moves the value of each old key of `renamed`, pairs of old and new, to its new one, in every layer. Which layer
/// overrides which stays as it is.
///
/// # Errors
/// If both keys of a pair are given, wherever.
pub(super) fn settle(
    layers: &mut [Layer],
    renamed: &[(String, String)],
) -> Result<Vec<Moved>, ConfigError> {
    let mut moved = Vec::new();
    for (old, new) in renamed {
        let is_given = |layer: &&Layer| Value::from(layer.values.clone()).find(new).is_some();
        let newer = layers.iter().find(is_given);
        let newer = newer.map(|layer| layer.origin.clone());
        for layer in &mut *layers {
            let Some(value) = take(&mut layer.values, old) else {
                continue;
            };
            let (old, new, origin) = (old.clone(), new.clone(), layer.origin.clone());
            if let Some(newer) = newer {
                return Err(ConfigError::Twice {
                    old,
                    origin,
                    new,
                    newer,
                });
            }
            put(&mut layer.values, &new, value);
            moved.push(Moved { old, new, origin });
        }
    }
    Ok(moved)
}

fn take(values: &mut Dict, key: &str) -> Option<Value> {
    match key.split_once('.') {
        None => values.remove(key),
        Some((section, rest)) => match values.get_mut(section)? {
            Value::Dict(_, inner) => take(inner, rest),
            _ => None,
        },
    }
}

fn put(values: &mut Dict, key: &str, value: Value) {
    let Some((section, rest)) = key.split_once('.') else {
        values.insert(key.to_owned(), value);
        return;
    };
    let section = values.entry(section.to_owned());
    // A section that is none is refused when the whole is read.
    if let Value::Dict(_, inner) = section.or_insert_with(|| Dict::new().into()) {
        put(inner, rest, value);
    }
}
