//! Metadata of a GGUF file: typed values by name.

use std::collections::BTreeMap;

use super::{
    array::{Array, Item},
    error::GgufError,
};

/// Most items of an array that are read one by one: some times the tokens, or the merges, of any tokenizer.
pub(super) const MOST_ITEMS: usize = 1 << 21;

/// Most characters of a string in a message.
const SHOWN: usize = 80;

/// A value, of whatever width the file holds it in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Wide enough for every type of whole numbers.
    Whole(i128),
    Real(f64),
    Bool(bool),
    String(String),
    Array(Array),
}

impl Value {
    /// Returns it as one item, unless it is an array.
    fn item(&self) -> Option<Item<'_>> {
        match self {
            Self::Whole(number) => Some(Item::Whole(*number)),
            Self::Real(number) => Some(Item::Real(*number)),
            Self::Bool(value) => Some(Item::Bool(*value)),
            Self::String(text) => Some(Item::String(text)),
            Self::Array(_) => None,
        }
    }

    /// A few words for messages.
    fn described(&self) -> String {
        match self {
            Self::Array(items) => format!("an array of {}", items.len()),
            Self::String(text) => {
                let shown: String = text.chars().take(SHOWN).collect();
                format!("the string {shown:?}")
            }
            Self::Whole(number) => number.to_string(),
            Self::Real(number) => format!("{number:?}"),
            Self::Bool(value) => value.to_string(),
        }
    }
}

impl From<Item<'_>> for Value {
    fn from(item: Item<'_>) -> Self {
        match item {
            Item::Whole(number) => Self::Whole(number),
            Item::Real(number) => Self::Real(number),
            Item::Bool(value) => Self::Bool(value),
            Item::String(text) => Self::String(text.to_owned()),
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
            Value::Array(array) => {
                let mut items = array.items()?;
                let first = items.next()?;
                let same = items.all(|item| item == first);
                same.then(|| first.whole()).flatten()
            }
            value => value.item()?.whole(),
        })
    }

    pub(crate) fn real(&self, key: &str) -> Result<Option<f64>, GgufError> {
        self.read(key, "a number", |value| value.item()?.real())
    }

    pub(crate) fn bool(&self, key: &str) -> Result<Option<bool>, GgufError> {
        self.read(key, "true or false", |value| value.item()?.bool())
    }

    pub(crate) fn string(&self, key: &str) -> Result<Option<&str>, GgufError> {
        self.read(key, "a string", |value| value.item()?.text())
    }

    pub(crate) fn strings(&self, key: &str) -> Result<Option<Vec<&str>>, GgufError> {
        self.array(key, "an array of strings", Item::text)
    }

    pub(crate) fn wholes(&self, key: &str) -> Result<Option<Vec<u64>>, GgufError> {
        self.array(key, "an array of whole numbers", Item::whole)
    }

    pub(crate) fn reals(&self, key: &str) -> Result<Option<Vec<f64>>, GgufError> {
        self.array(key, "an array of numbers", Item::real)
    }

    /// True or false for each layer.
    pub(crate) fn bools(&self, key: &str) -> Result<Option<Vec<bool>>, GgufError> {
        self.array(key, "an array of true and false", |item| match item {
            Item::Bool(value) => Some(value),
            other => other.whole().map(|number| number != 0),
        })
    }

    fn array<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        read: impl Fn(Item<'a>) -> Option<T>,
    ) -> Result<Option<Vec<T>>, GgufError> {
        let few = |value: &Value| match value {
            Value::Array(array) => (array.len() <= MOST_ITEMS).then_some(()),
            _ => Some(()),
        };
        self.read(key, "an array of at most 2097152", few)?;
        self.read(key, expected, |value| match value {
            Value::Array(array) => array.items()?.map(&read).collect(),
            _ => None,
        })
    }
}
