//! Settings from the environment: `OUTRIDER__SECTION__KEY=value`.

use std::ffi::OsString;

use figment::value::{Dict, Value};

use super::ConfigError;
use super::layer::ConfigLayer;

/// What the name of an environment variable starts with to be a setting.
const PREFIX: &str = "OUTRIDER__";

/// The conventional variable for log filters, and the setting that it provides a value for.
const RUST_LOG: (&str, [&str; 2]) = ("RUST_LOG", ["log", "filter"]);

/// Returns the log filter of `RUST_LOG`, below a file: where nothing else sets it.
pub(super) fn rust_log(
    environment: &[(OsString, OsString)],
    defaults: &Value,
) -> Option<ConfigLayer> {
    let (name, keys) = RUST_LOG;
    defaults.find_ref(&keys.join("."))?;
    let found = environment.iter().find(|(variable, _)| variable == name);
    let text = found
        .and_then(|(_, value)| value.to_str())
        .filter(|text| !text.is_empty())?;
    Some(ConfigLayer {
        origin: format!("environment {name}"),
        values: nested(&keys, Value::from(text)),
    })
}

/// Returns a value under its keys, the outermost first.
fn nested(keys: &[&str], leaf: Value) -> Dict {
    let outermost = keys.iter().rev().fold(leaf, |inner, &key| {
        Value::from(Dict::from([(key.to_owned(), inner)]))
    });
    outermost.into_dict().unwrap_or_default()
}

/// Makes one layer of each variable that is ours, so that an error names the very variable.
///
/// They come in the order of their names: the environment's own order is not stable.
pub(super) fn layers(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    defaults: &Value,
) -> Result<Vec<ConfigLayer>, ConfigError> {
    let mut variables: Vec<(String, OsString)> = environment
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| name.starts_with(PREFIX))
        .collect();
    variables.sort();
    variables
        .into_iter()
        .map(|(name, value)| layer(name, value, defaults))
        .collect()
}

fn layer(name: String, value: OsString, defaults: &Value) -> Result<ConfigLayer, ConfigError> {
    let Ok(text) = value.into_string() else {
        return Err(ConfigError::NotUnicode(name));
    };
    let path = name[PREFIX.len()..].to_ascii_lowercase();
    let keys: Vec<&str> = path.split("__").collect();
    if keys.iter().any(|key| key.is_empty()) {
        return Err(ConfigError::Nameless(name));
    }
    let leaf = typed(text, defaults.find_ref(&keys.join(".")));
    let origin = format!("environment {name}");
    Ok(ConfigLayer {
        origin,
        values: nested(&keys, leaf),
    })
}

/// Reads a variable's text as a number, boolean, array or map where it looks like one, unless the
/// default says that text is wanted: a model may well be called `42`.
fn typed(text: String, default: Option<&Value>) -> Value {
    if default.is_some_and(|value| value.as_str().is_some()) {
        return Value::from(text);
    }
    let Ok(value) = text.parse();
    value
}
