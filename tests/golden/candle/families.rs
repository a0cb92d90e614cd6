//! The families: configurations of each, and candle's models of them.

mod configs;
mod encoded;
mod gemma;
mod other;
mod plain;

use candle_core::Result;
use serde_json::Value;
use speculation::TokenId;

pub(super) use self::configs::{base, input, logits, read};
use super::weights::RandomWeights;
use super::{TEXT, VOCAB};

/// A family of models.
pub(super) struct Family {
    pub(super) name: &'static str,
    /// Whether norms multiply by 1 and their weight.
    pub(super) norm_plus_one: bool,
    /// Tokens at the beginning of a text that are an encoder's source.
    pub(super) source_len: usize,
    /// Largest difference, as a multiple of the largest logit or of 1.
    pub(super) tolerance: f32,
    /// The `config.json` of a variant.
    pub(super) config: fn(u64) -> Value,
    /// Candle's logits at the last position.
    pub(super) candle: fn(&Value, &RandomWeights, &[TokenId]) -> Result<Vec<f32>>,
    /// Keys with values that make another model of variant 0.
    pub(super) faults: &'static [(&'static str, &'static str)],
}

pub(super) const FAMILIES: &[Family] = &[
    plain::LLAMA,
    plain::MISTRAL,
    plain::QWEN2,
    plain::QWEN3,
    plain::SMOLLM3,
    other::GRANITE,
    other::OLMO2,
    other::GLM4,
    gemma::GEMMA2,
    gemma::GEMMA3,
    other::PHI3,
    encoded::T5,
];
