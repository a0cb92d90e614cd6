//! The keys that all families have, checked.

use serde_json::{Map, Value};

use crate::config::{Activation, ModelConfigError, RawConfig, RopeConfig, unless};
use crate::rope::RopeScaling;

/// Sizes are multiplied with one another; no model comes near this.
const LARGEST: usize = 1 << 28;

/// The keys of a `config.json` that candle's config has, each with a value that candle computes with.
#[derive(Clone, Debug)]
pub(crate) struct Constants(Map<String, Value>);

impl Constants {
    /// Reads the keys that mean the same in every family with RMS norms and gated feed-forward networks. `head_dim` and `rope`
    /// are read by the family, `raw` has its defaults.
    pub(super) fn common(
        raw: &RawConfig,
        head_dim: usize,
        rope: &RopeConfig,
    ) -> Result<Self, ModelConfigError> {
        let kv_heads = raw.required("num_key_value_heads")?;
        let mut constants = Self::attention(raw, (kv_heads, head_dim), rope)?;
        constants.size(raw, "intermediate_size")?;
        constants.epsilon(raw, "rms_norm_eps")?;
        raw.activation("hidden_act", Activation::Silu)?;
        constants.set("hidden_act", "silu");
        constants.set("attention_bias", raw.flag("attention_bias")?);
        Ok(constants)
    }

    /// Reads the keys that mean the same in every family. Heads of keys and values, `head_dim` and `rope` are read by the
    /// family, `raw` has its defaults.
    pub(super) fn attention(
        raw: &RawConfig,
        (kv_heads, head_dim): (usize, usize),
        rope: &RopeConfig,
    ) -> Result<Self, ModelConfigError> {
        let mut constants = Self(Map::new());
        for key in [
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "max_position_embeddings",
        ] {
            constants.size(raw, key)?;
        }
        let key = "head_dim";
        let even = (1..=LARGEST).contains(&head_dim) && head_dim.is_multiple_of(2);
        let expected = "it must be even and at most 2^28, for dimensions rotate in pairs";
        unless(even, key, head_dim, expected)?;
        constants.set(key, head_dim);
        let key = "num_key_value_heads";
        let heads = constants.number("num_attention_heads");
        let holds = kv_heads > 0 && heads.is_multiple_of(kv_heads);
        unless(holds, key, kv_heads, "it must divide num_attention_heads")?;
        constants.set(key, kv_heads);
        let holds = rope.theta.is_finite() && rope.theta > 1.0;
        unless(holds, "rope_theta", rope.theta, "it must be above 1")?;
        constants.set("rope_theta", rope.theta);
        let holds = rope.scaling == RopeScaling::Default;
        let expected = "engine candle stretches no frequencies of this model type";
        unless(holds, "rope_scaling", "given", expected)?;
        let key = "tie_word_embeddings";
        constants.set(key, raw.required::<bool>(key)?);
        Ok(constants)
    }

    /// Reads what a norm adds before it takes a root.
    pub(super) fn epsilon(
        &mut self,
        raw: &RawConfig,
        key: &'static str,
    ) -> Result<(), ModelConfigError> {
        let epsilon: f64 = raw.required(key)?;
        let holds = epsilon.is_finite() && epsilon > 0.0;
        unless(holds, key, epsilon, "it must be positive")?;
        self.set(key, epsilon);
        Ok(())
    }

    /// Reads a size.
    pub(super) fn size(
        &mut self,
        raw: &RawConfig,
        key: &'static str,
    ) -> Result<(), ModelConfigError> {
        let size: usize = raw.required(key)?;
        let holds = (1..=LARGEST).contains(&size);
        unless(holds, key, size, "it must be between 1 and 2^28")?;
        self.set(key, size);
        Ok(())
    }

    /// Gives `key` a value.
    pub(super) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }

    /// Returns the size at `key`; 0 if the key is absent.
    pub(crate) fn number(&self, key: &str) -> usize {
        let number = self.0.get(key).and_then(Value::as_u64);
        number.unwrap_or(0) as usize
    }

    /// Whether the LM head is the embedding table.
    pub(crate) fn is_tied(&self) -> bool {
        self.0.get("tie_word_embeddings") == Some(&Value::Bool(true))
    }

    /// Returns all keys with their values, as a JSON object.
    pub(crate) fn value(&self) -> Value {
        Value::Object(self.0.clone())
    }
}

/// Refuses windows, which candle's models of these families do not have.
pub(super) fn no_window(raw: &RawConfig) -> Result<(), ModelConfigError> {
    let expected = "engine candle computes no windows of this model type";
    let key = "use_sliding_window";
    unless(!raw.flag(key)?, key, true, expected)?;
    let layers: usize = raw.required("num_hidden_layers")?;
    let windowed = raw.windowed(layers)?.unwrap_or_default();
    let holds = !windowed.contains(&true);
    unless(holds, "layer_types", "sliding_attention", expected)
}

/// The dimensions of a head where the heads of a model share out its hidden size.
pub(super) fn shared_out(raw: &RawConfig) -> Result<usize, ModelConfigError> {
    let heads: usize = raw.required("num_attention_heads")?;
    let hidden_size: usize = raw.required("hidden_size")?;
    let expected = "it must divide hidden_size";
    let holds = heads > 0 && hidden_size.is_multiple_of(heads);
    unless(holds, "num_attention_heads", heads, expected)?;
    Ok(hidden_size / heads)
}
