//! What a checkpoint's `config.json` says about a model of the Llama family.

mod raw;

use speculation::TokenId;
use thiserror::Error;

use self::raw::{RawConfig, RawRope};
use crate::rope::RopeScaling;

/// Sizes and constants of a model, validated.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// Entries of the embedding table; may exceed the tokenizer's vocabulary.
    pub vocab_size: usize,
    /// Width of a hidden state.
    pub hidden_size: usize,
    /// Width inside a feed-forward network.
    pub intermediate_size: usize,
    /// Number of decoder layers.
    pub layers: usize,
    /// Query heads of a layer.
    pub heads: usize,
    /// Key and value heads of a layer; each serves `heads / kv_heads` query heads.
    pub kv_heads: usize,
    /// Dimensions of a head, even.
    pub head_dim: usize,
    /// Added to the mean square before its root is taken.
    pub rms_norm_eps: f32,
    /// Base of the rotation frequencies.
    pub rope_theta: f64,
    /// How the frequencies are stretched.
    pub rope_scaling: RopeScaling,
    /// Longest sequence, in tokens.
    pub context_len: usize,
    /// Whether the LM head is the embedding table.
    pub tie_word_embeddings: bool,
    /// Whether the projections of attention have biases.
    pub attention_bias: bool,
    /// Whether those of the feed-forward network have.
    pub mlp_bias: bool,
    /// Token that begins every text.
    pub bos_token_id: Option<TokenId>,
    /// Tokens that end a text; may be empty.
    pub eos_token_ids: Vec<TokenId>,
}

/// Why a `config.json` was refused.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// Not JSON, a key is missing, or a value is of the wrong type.
    #[error("config.json cannot be read")]
    Json(#[from] serde_json::Error),
    /// A model of another family.
    #[error("model type {0:?} is not supported: llama is")]
    UnsupportedModel(String),
    /// An architecture of the family that is no language model.
    #[error("architecture {0:?} is not supported: LlamaForCausalLM is")]
    UnsupportedArchitecture(String),
    /// An activation function other than SiLU.
    #[error("hidden_act {0:?} is not supported: silu is")]
    UnsupportedActivation(String),
    /// A frequency scaling other than those of [`RopeScaling`].
    #[error("rope type {0:?} is not supported: default and llama3 are")]
    UnsupportedRope(String),
    /// A key that the model's kind of rope needs.
    #[error("rope type llama3 needs {0}")]
    MissingRopeKey(&'static str),
    /// A value that no model can have.
    #[error("{key} is {found}: {expected}")]
    Invalid {
        /// The key.
        key: &'static str,
        /// Its value.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
}

impl ModelConfig {
    /// Reads a Hugging Face `config.json`, in the form of transformers 5 (`rope_parameters`) or an
    /// older one (`rope_theta`, `rope_scaling`).
    ///
    /// # Errors
    /// If the model is not one this crate can run; the message names the key and what was found.
    pub fn from_json(json: &[u8]) -> Result<Self, ConfigError> {
        RawConfig::read(json)?.try_into()
    }

    fn validate(self) -> Result<Self, ConfigError> {
        let invalid = |key, found: String, expected| {
            Err(ConfigError::Invalid {
                key,
                found,
                expected,
            })
        };
        for (key, size) in [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("num_hidden_layers", self.layers),
            ("num_attention_heads", self.heads),
            ("num_key_value_heads", self.kv_heads),
            ("head_dim", self.head_dim),
            ("max_position_embeddings", self.context_len),
        ] {
            // Sizes are multiplied with one another; no model comes near the bound.
            if size == 0 || size > 1 << 28 {
                return invalid(key, size.to_string(), "it must be between 1 and 2^28");
            }
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            let found = self.kv_heads.to_string();
            return invalid(
                "num_key_value_heads",
                found,
                "it must divide num_attention_heads",
            );
        }
        if !self.head_dim.is_multiple_of(2) {
            let found = self.head_dim.to_string();
            return invalid(
                "head_dim",
                found,
                "it must be even, for dimensions rotate in pairs",
            );
        }
        if !(self.rms_norm_eps.is_finite() && self.rms_norm_eps > 0.0) {
            return invalid(
                "rms_norm_eps",
                self.rms_norm_eps.to_string(),
                "it must be positive",
            );
        }
        if !(self.rope_theta.is_finite() && self.rope_theta > 1.0) {
            return invalid(
                "rope_theta",
                self.rope_theta.to_string(),
                "it must be above 1",
            );
        }
        for (key, token) in self
            .bos_token_id
            .iter()
            .map(|token| ("bos_token_id", token))
            .chain(
                self.eos_token_ids
                    .iter()
                    .map(|token| ("eos_token_id", token)),
            )
        {
            if *token as usize >= self.vocab_size {
                return invalid(key, token.to_string(), "it must be below vocab_size");
            }
        }
        Ok(self)
    }
}

impl TryFrom<RawConfig> for ModelConfig {
    type Error = ConfigError;

    fn try_from(raw: RawConfig) -> Result<Self, ConfigError> {
        if let Some(act) = raw.hidden_act.filter(|act| act != "silu") {
            return Err(ConfigError::UnsupportedActivation(act));
        }
        let kv_heads = raw.num_key_value_heads.unwrap_or(raw.num_attention_heads);
        let head_dim = match raw.head_dim {
            Some(head_dim) => head_dim,
            None if raw.num_attention_heads == 0 => 0,
            None if !raw.hidden_size.is_multiple_of(raw.num_attention_heads) => {
                return Err(ConfigError::Invalid {
                    key: "num_attention_heads",
                    found: raw.num_attention_heads.to_string(),
                    expected: "without head_dim it must divide hidden_size",
                });
            }
            None => raw.hidden_size / raw.num_attention_heads,
        };
        let rope = raw.rope_parameters.or(raw.rope_scaling).unwrap_or_default();
        Self {
            vocab_size: raw.vocab_size,
            hidden_size: raw.hidden_size,
            intermediate_size: raw.intermediate_size,
            layers: raw.num_hidden_layers,
            heads: raw.num_attention_heads,
            kv_heads,
            head_dim,
            rms_norm_eps: raw.rms_norm_eps,
            rope_theta: rope.rope_theta.or(raw.rope_theta).unwrap_or(10_000.0),
            rope_scaling: rope_scaling(&rope)?,
            context_len: raw.max_position_embeddings,
            tie_word_embeddings: raw.tie_word_embeddings,
            attention_bias: raw.attention_bias,
            mlp_bias: raw.mlp_bias,
            bos_token_id: raw.bos_token_id,
            eos_token_ids: raw.eos_token_id.map(Into::into).unwrap_or_default(),
        }
        .validate()
    }
}

fn rope_scaling(rope: &RawRope) -> Result<RopeScaling, ConfigError> {
    let missing = ConfigError::MissingRopeKey;
    let scaling = match rope.rope_type.as_deref().unwrap_or("default") {
        "default" => return Ok(RopeScaling::Default),
        "llama3" => RopeScaling::Llama3 {
            factor: rope.factor.ok_or(missing("factor"))?,
            low_freq_factor: rope.low_freq_factor.ok_or(missing("low_freq_factor"))?,
            high_freq_factor: rope.high_freq_factor.ok_or(missing("high_freq_factor"))?,
            original_context_len: rope
                .original_max_position_embeddings
                .ok_or(missing("original_max_position_embeddings"))?,
        },
        other => return Err(ConfigError::UnsupportedRope(other.to_owned())),
    };
    if let RopeScaling::Llama3 {
        factor,
        low_freq_factor: low,
        high_freq_factor: high,
        ..
    } = scaling
    {
        if !(factor.is_finite() && factor >= 1.0) {
            return Err(ConfigError::Invalid {
                key: "factor",
                found: factor.to_string(),
                expected: "a rope's factor must be at least 1",
            });
        }
        if !(low.is_finite() && high.is_finite() && low > 0.0 && high > low) {
            return Err(ConfigError::Invalid {
                key: "low_freq_factor",
                found: low.to_string(),
                expected: "it must be positive and below high_freq_factor",
            });
        }
    }
    Ok(scaling)
}

#[cfg(test)]
mod tests;
