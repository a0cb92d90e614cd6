//! The file as it is written, before it is understood.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use speculation::TokenId;

use super::{Activation, ModelConfigError, error::unless};
use crate::python_json;

/// The keys of a `config.json`. Unknown keys are never looked at: every release of transformers adds some.
#[derive(Clone, Debug)]
pub(crate) struct RawConfig {
    keys: Map<String, Value>,
}

/// One token or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a token id, or a list of token ids")]
pub(crate) enum OneOrMany {
    One(TokenId),
    Many(Vec<TokenId>),
}

impl OneOrMany {
    pub(crate) fn ids(self) -> Vec<TokenId> {
        match self {
            Self::One(id) => vec![id],
            Self::Many(ids) => ids,
        }
    }
}

impl RawConfig {
    pub(crate) fn read(json: &[u8]) -> Result<Self, ModelConfigError> {
        let keys = python_json::from_slice(json)?;
        Ok(Self { keys })
    }

    /// Fills in `defaults`, an object, where a key is absent. A key that is null stays null: that is how
    /// files say that a model has no window, or no cap.
    pub(crate) fn or(&self, defaults: Value) -> Self {
        let mut keys = self.keys.clone();
        if let Value::Object(defaults) = defaults {
            for (key, value) in defaults {
                keys.entry(key).or_insert(value);
            }
        }
        Self { keys }
    }

    /// Puts the keys of `over` in the place of those here, or beside them.
    pub(crate) fn overlaid(mut self, over: Self) -> Self {
        self.keys.extend(over.keys);
        self
    }

    /// Whether there is no key.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The first key that has a value and is none of `others`.
    pub(crate) fn key_beside(&self, others: &[&str]) -> Option<&str> {
        let mut filled = self.keys.iter().filter(|(_, value)| !value.is_null());
        let found = filled.find(|(key, _)| !others.contains(&key.as_str()));
        found.map(|(key, _)| key.as_str())
    }

    /// The value of `key`, `None` if it is absent or null.
    pub(crate) fn optional<T: DeserializeOwned>(
        &self,
        key: &'static str,
    ) -> Result<Option<T>, ModelConfigError> {
        match self.keys.get(key) {
            None => Ok(None),
            Some(value) => serde_json::from_value(value.clone())
                .map_err(|source| ModelConfigError::Key { key, source }),
        }
    }

    /// The value of the first of these keys that has one. The second is not read then.
    pub(crate) fn either<T: DeserializeOwned>(
        [(first, key), (second, otherwise)]: [(&Self, &'static str); 2],
    ) -> Result<Option<T>, ModelConfigError> {
        match first.optional(key)? {
            None => second.optional(otherwise),
            found => Ok(found),
        }
    }

    /// The value of `key`.
    pub(crate) fn required<T: DeserializeOwned>(
        &self,
        key: &'static str,
    ) -> Result<T, ModelConfigError> {
        self.optional(key)?.ok_or(ModelConfigError::Missing(key))
    }

    /// Whether `key` is there and true.
    pub(crate) fn flag(&self, key: &'static str) -> Result<bool, ModelConfigError> {
        Ok(self.optional(key)?.unwrap_or(false))
    }

    /// The object at `key`.
    pub(crate) fn section(&self, key: &'static str) -> Result<Option<Self>, ModelConfigError> {
        Ok(self.optional(key)?.map(|keys| Self { keys }))
    }

    /// One token or several, at `key`.
    pub(crate) fn tokens(&self, key: &'static str) -> Result<Vec<TokenId>, ModelConfigError> {
        Ok(self.optional(key)?.map_or_else(Vec::new, OneOrMany::ids))
    }

    /// The function that `key` names; it must be `supported`.
    pub(crate) fn activation(
        &self,
        key: &'static str,
        supported: Activation,
    ) -> Result<Activation, ModelConfigError> {
        let found: String = self.required(key)?;
        if supported.names().contains(&found.as_str()) {
            return Ok(supported);
        }
        let supported = supported.names().join(" or ");
        Err(ModelConfigError::UnsupportedActivation {
            key,
            found,
            supported,
        })
    }

    /// Which of `layers` layers have a window, as `layer_types` tells; `None` if it does not.
    pub(crate) fn windowed(&self, layers: usize) -> Result<Option<Vec<bool>>, ModelConfigError> {
        const KEY: &str = "layer_types";
        let Some(types) = self.optional::<Vec<String>>(KEY)? else {
            return Ok(None);
        };
        unless(
            types.len() == layers,
            KEY,
            format!("a list of {}", types.len()),
            "it must have an entry for each of num_hidden_layers",
        )?;
        let windowed = types.iter().map(|kind| match kind.as_str() {
            "full_attention" => Ok(false),
            "sliding_attention" => Ok(true),
            other => Err(ModelConfigError::invalid(
                KEY,
                format!("{other:?} for a layer"),
                "full_attention and sliding_attention are supported",
            )),
        });
        windowed.collect::<Result<_, _>>().map(Some)
    }

    /// Refuses what no model of this crate does.
    pub(crate) fn check(&self) -> Result<(), ModelConfigError> {
        if let Some(quantization) = self.section("quantization_config")? {
            let method: Option<String> = quantization.optional("quant_method")?;
            return Err(ModelConfigError::Quantized(method.unwrap_or_default()));
        }
        let (key, found) = ("use_bidirectional_attention", true);
        let expected = "a model whose tokens see later ones generates no text";
        unless(!self.flag(key)?, key, found, expected)
    }
}
