//! Families of models that candle-transformers computes as they were trained: which `config.json` is whose, how it is read,
//! and which of candle's models it is for.
//!
//! To add one: its [`CandleFamily`] in a file here, a line in [`FAMILIES`], and one in the oracle of
//! `tests/golden/candle/engine.rs`. Only models belong here whose forward gives the hidden states of all positions and
//! whose mask of several tokens after others lets them see those. candle's chatglm, glm4 (the one before `glm4_new`),
//! marian and mixformer do not qualify: theirs is square, as if nothing stood before.

mod constants;
mod glm4;
mod qwen3_moe;
mod smollm3;

use candle_core::Result;
use candle_nn::VarBuilder;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use self::constants::Constants;
use super::body::Body;
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
    /// How its sequences hold their memory.
    pub(super) keeping: Keeping,
    /// Formats that it is computed in.
    pub(crate) formats: &'static [NumberFormat],
}

/// All families.
pub(crate) static FAMILIES: &[&CandleFamily] =
    &[&qwen3_moe::FAMILY, &glm4::FAMILY, &smollm3::FAMILY];

/// Returns the family of a `model_type`.
pub(crate) fn named(model_type: &str) -> Option<&'static CandleFamily> {
    let mut families = FAMILIES.iter().copied();
    families.find(|family| family.model_types.contains(&model_type))
}

/// Candle's own config.
fn candles<T: DeserializeOwned>(constants: &Value) -> Result<T> {
    serde_json::from_value(constants.clone()).map_err(candle_core::Error::wrap)
}
