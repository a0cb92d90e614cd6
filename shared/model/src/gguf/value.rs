//! Metadata of a GGUF file: typed values by name.

use std::collections::BTreeMap;

use super::error::GgufError;

/// A value, of one of the types of the format.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(String),
    Array(Array),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// Values of one type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array {
    /// The type's number in the file format: an empty array has a type, too.
    pub(crate) kind: u32,
    pub(crate) items: Vec<Value>,
}

/// The type's number in the file format.
pub(crate) const F32: u32 = 6;
pub(crate) const BOOL: u32 = 7;
pub(crate) const STRING: u32 = 8;
pub(crate) const I32: u32 = 5;
pub(crate) const U32: u32 = 4;

impl Value {
    /// The type's number in the file format.
    pub(crate) fn kind(&self) -> u32 {
        match self {
            Self::U8(_) => 0,
            Self::I8(_) => 1,
            Self::U16(_) => 2,
            Self::I16(_) => 3,
            Self::U32(_) => U32,
            Self::I32(_) => I32,
            Self::F32(_) => F32,
            Self::Bool(_) => BOOL,
            Self::String(_) => STRING,
            Self::Array(_) => 9,
            Self::U64(_) => 10,
            Self::I64(_) => 11,
            Self::F64(_) => 12,
        }
    }

    /// An array of strings.
    pub(crate) fn strings(items: impl IntoIterator<Item = String>) -> Self {
        let items = items.into_iter().map(Self::String).collect();
        Self::Array(Array {
            kind: STRING,
            items,
        })
    }

    fn whole(&self) -> Option<u64> {
        match *self {
            Self::U8(n) => Some(n.into()),
            Self::U16(n) => Some(n.into()),
            Self::U32(n) => Some(n.into()),
            Self::U64(n) => Some(n),
            Self::I8(n) => n.try_into().ok(),
            Self::I16(n) => n.try_into().ok(),
            Self::I32(n) => n.try_into().ok(),
            Self::I64(n) => n.try_into().ok(),
            _ => None,
        }
    }

    fn real(&self) -> Option<f64> {
        match *self {
            Self::F32(n) => Some(n.into()),
            Self::F64(n) => Some(n),
            _ => None,
        }
    }

    /// A few words for messages.
    fn described(&self) -> String {
        match self {
            Self::Array(array) => format!("an array of {}", array.items.len()),
            Self::String(text) => format!("the string {text:?}"),
            other => format!("{other:?}"),
        }
    }
}

/// All metadata of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Metadata(pub(crate) BTreeMap<String, Value>);

impl Metadata {
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    pub(crate) fn insert(&mut self, key: impl Into<String>, value: Value) {
        self.0.insert(key.into(), value);
    }

    /// The value of `key` as `read` understands it, `None` without the key.
    fn read<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        let Some(value) = self.get(key) else {
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
            Value::Array(array) => {
                let first = array.items.first()?;
                let same = array.items.iter().all(|item| item == first);
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
        self.read(key, "a string", |value| match value {
            Value::String(text) => Some(text.as_str()),
            _ => None,
        })
    }

    pub(crate) fn strings(&self, key: &str) -> Result<Option<Vec<&str>>, GgufError> {
        self.array(key, "an array of strings", |item| match item {
            Value::String(text) => Some(text.as_str()),
            _ => None,
        })
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
            Value::Array(array) => array.items.iter().map(&read).collect(),
            _ => None,
        })
    }
}
