//! Families of models that candle-transformers computes as they were trained: which `config.json` is whose, how it is read,
//! and which of candle's models it is for.
//!
//! To add one: its [`CandleFamily`] in a file here, a line in [`FAMILIES`], and one in the oracle of
//! `tests/golden/candle/engine.rs`. A target needs a model whose forward gives the hidden states of all positions and whose
//! mask of several tokens after others lets them see those. A model that gives the last row only can draft.
//!
//! These models of candle-transformers 0.11.1 do not qualify:
//!
//! - chatglm, glm4 (the one before `glm4_new`), marian and mixformer: their mask of several tokens is square, as if nothing
//!   stood before.
//! - stable_lm: its `Model` is not `Clone`, so that nothing can be kept to go back to when a draft is rejected.
//! - gemma4: its text model multiplies norms by 1 + weight and scores by 1 / sqrt(`head_dim`), where transformers' multiplies
//!   by the weight and by 1, and it lacks `layer_scalar`, embeddings per layer and shared keys and values, which the published
//!   models have.

mod constants;
mod falcon;
mod glm4;
mod phi;
mod qwen3_moe;
mod smollm3;

use candle_core::Result;
use candle_nn::VarBuilder;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use self::constants::Constants;
use super::body::{Body, Returns};
use super::cache::Keeping;
use crate::computation::NumberFormat;
use crate::config::{ModelConfigError, RawConfig};

/// What is particular to one family.
#[derive(Debug)]
pub(crate) struct CandleFamily {
    /// Its name, as candle has it.
    pub(crate) name: &'static str,
    /// Values of `model_type`.
    pub(crate) model_types: &'static [&'static str],
    /// Its language models, by the names that `architectures` gives.
    pub(crate) classes: &'static [&'static str],
    /// Turns the keys of a file into those that candle's own config has, absent ones included, and refuses what candle
    /// would leave out.
    pub(crate) read: fn(&RawConfig) -> std::result::Result<Constants, ModelConfigError>,
    /// Makes candle's model.
    pub(super) load: fn(&Value, VarBuilder<'_>) -> Result<Box<dyn Body>>,
    /// What candle's model returns of a forward.
    pub(crate) returns: Returns,
    /// How its sequences hold their memory.
    pub(super) keeping: Keeping,
    /// Formats that it is computed in.
    pub(crate) formats: &'static [NumberFormat],
}

/// All families.
pub(crate) static FAMILIES: &[&CandleFamily] = &[
    &qwen3_moe::FAMILY,
    &glm4::FAMILY,
    &smollm3::FAMILY,
    &phi::FAMILY,
    &falcon::FAMILY,
];

impl CandleFamily {
    /// Whether its models can draft only: verifying a block takes the rows of all its positions, and these give one a forward.
    pub(crate) fn drafts_only(&self) -> bool {
        self.returns == Returns::LastRow
    }
}

/// Returns the family of a `model_type`.
pub(crate) fn named(model_type: &str) -> Option<&'static CandleFamily> {
    let mut families = FAMILIES.iter().copied();
    families.find(|family| family.model_types.contains(&model_type))
}

/// Reads candle's own config of a family from its keys.
fn candles<T: DeserializeOwned>(constants: &Value) -> Result<T> {
    serde_json::from_value(constants.clone()).map_err(candle_core::Error::wrap)
}
