//! Metadata of a GGUF file: typed values by name.

use std::collections::BTreeMap;

use super::error::GgufError;

/// A value, of whatever width the file holds it in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Wide enough for every type of whole numbers.
    Whole(i128),
    Real(f64),
    Bool(bool),
    String(String),
    Array(Vec<Value>),
}

impl Value {
    fn whole(&self) -> Option<u64> {
        match self {
            Self::Whole(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    fn real(&self) -> Option<f64> {
        match self {
            Self::Real(number) => Some(*number),
            _ => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// A few words for messages.
    fn described(&self) -> String {
        match self {
            Self::Array(items) => format!("an array of {}", items.len()),
            Self::String(text) => format!("the string {text:?}"),
            Self::Whole(number) => number.to_string(),
            Self::Real(number) => format!("{number:?}"),
            Self::Bool(value) => value.to_string(),
        }
    }
}

/// All metadata of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Metadata(pub(crate) BTreeMap<String, Value>);

impl Metadata {
    /// The value of `key` as `read` understands it, `None` without the key.
    fn read<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        let Some(value) = self.0.get(key) else {
            return Ok(None);
        };
        read(value).map(Some).ok_or_else(|| GgufError::Key {
            key: key.to_owned(),
            found: value.described(),
            expected,
        })
    }

    /// The number of `key`; where it may differ from layer to layer, the number that all have.
    pub(crate) fn whole(&self, key: &str) -> Result<Option<u64>, GgufError> {
        self.read(key, "a whole number", |value| match value {
            Value::Array(items) => {
                let first = items.first()?;
                let same = items.iter().all(|item| item == first);
                same.then(|| first.whole()).flatten()
            }
            value => value.whole(),
        })
    }

    pub(crate) fn real(&self, key: &str) -> Result<Option<f64>, GgufError> {
        self.read(key, "a number", Value::real)
    }

    pub(crate) fn bool(&self, key: &str) -> Result<Option<bool>, GgufError> {
        self.read(key, "true or false", |value| match value {
            Value::Bool(value) => Some(*value),
            _ => None,
        })
    }

    pub(crate) fn string(&self, key: &str) -> Result<Option<&str>, GgufError> {
        self.read(key, "a string", Value::text)
    }

    pub(crate) fn strings(&self, key: &str) -> Result<Option<Vec<&str>>, GgufError> {
        self.array(key, "an array of strings", Value::text)
    }

    pub(crate) fn wholes(&self, key: &str) -> Result<Option<Vec<u64>>, GgufError> {
        self.array(key, "an array of whole numbers", Value::whole)
    }

    pub(crate) fn reals(&self, key: &str) -> Result<Option<Vec<f64>>, GgufError> {
        self.array(key, "an array of numbers", Value::real)
    }

    /// True or false for each layer.
    pub(crate) fn bools(&self, key: &str) -> Result<Option<Vec<bool>>, GgufError> {
        self.array(key, "an array of true and false", |item| match item {
            Value::Bool(value) => Some(*value),
            other => other.whole().map(|number| number != 0),
        })
    }

    fn array<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<Vec<T>>, GgufError> {
        self.read(key, expected, |value| match value {
            Value::Array(items) => items.iter().map(&read).collect(),
            _ => None,
        })
    }
}
