//! What a `config.json` says about a model that candle-transformers computes.

use speculation::{TokenId, ports::ModelShape};

use super::body::Returns;
use super::error::DraftsOnly;
use super::family::{CandleFamily, Constants, FAMILIES, named};
use crate::computation::NumberFormat;
use crate::config::{ModelConfigError, RawConfig};

/// Sizes and constants of a model, as candle is given them.
#[derive(Clone, Debug)]
pub struct CandleConfig {
    pub(super) family: &'static CandleFamily,
    pub(super) constants: Constants,
    bos_token_id: Option<TokenId>,
    eos_token_ids: Vec<TokenId>,
}

impl CandleConfig {
    /// Reads a Hugging Face `config.json`.
    ///
    /// # Errors
    /// If the model is not one that candle-transformers computes as it was trained; the message names the key and what
    /// was found.
    pub fn from_json(json: &[u8]) -> Result<Self, ModelConfigError> {
        let raw = RawConfig::read(json)?;
        let found = model_type(&raw)?;
        let Some(family) = named(&found) else {
            let types = FAMILIES.iter().flat_map(|family| family.model_types);
            return Err(ModelConfigError::UnsupportedModel {
                found,
                supported: types.copied().collect::<Vec<_>>().join(", "),
            });
        };
        let classes: Vec<String> = raw.optional("architectures")?.unwrap_or_default();
        let mut others = classes.iter().take(1);
        if let Some(other) = others.find(|class| !family.classes.contains(&class.as_str())) {
            return Err(ModelConfigError::UnsupportedArchitecture {
                found: other.clone(),
                supported: family.classes.join(" or "),
            });
        }
        raw.check()?;
        Ok(Self {
            family,
            constants: (family.read)(&raw)?,
            bos_token_id: raw.tokens("bos_token_id")?.first().copied(),
            eos_token_ids: raw.tokens("eos_token_id")?,
        })
    }

    /// Returns the `model_type` that `json`, a `config.json`, names, if engine candle knows it. Other keys are not looked at.
    pub(crate) fn known_type(json: &[u8]) -> Option<String> {
        let found = RawConfig::read(json).and_then(|raw| model_type(&raw));
        found.ok().filter(|found| named(found).is_some())
    }

    /// The name of its family.
    pub fn family(&self) -> &'static str {
        self.family.name
    }

    /// Checks that it can be a target.
    ///
    /// # Errors
    /// If candle's model gives the last row of a forward only.
    pub fn check_target(&self) -> Result<(), DraftsOnly> {
        let family = self.family.name;
        if self.family.drafts_only() {
            return Err(DraftsOnly { family });
        }
        Ok(())
    }

    /// Formats that it may be computed in, the default first.
    pub fn formats(&self) -> &'static [NumberFormat] {
        self.family.formats
    }

    /// Token that begins every text.
    pub fn bos_token_id(&self) -> Option<TokenId> {
        self.bos_token_id
    }

    /// Tokens that end a text; may be empty.
    pub fn eos_token_ids(&self) -> &[TokenId] {
        &self.eos_token_ids
    }

    /// Returns all that the model's numbers depend on beside its tensors, as text for fingerprints.
    pub fn fingerprinted(&self) -> String {
        format!("{} {}", self.family.name, self.constants.value())
    }

    /// Returns what the engine must know of the model's sizes.
    pub fn shape(&self) -> ModelShape {
        let hidden_size = match self.family.returns {
            Returns::HiddenStates => self.constants.number("hidden_size"),
            Returns::LastRow => 0,
        };
        ModelShape {
            vocab_size: self.constants.number("vocab_size"),
            hidden_size,
            context_len: self.constants.number("max_position_embeddings"),
            source_len: 0,
        }
    }

    /// Returns how many numbers the keys and values of a token are, in all layers.
    pub fn token_numbers(&self) -> usize {
        let number = |key| self.constants.number(key);
        2 * number("num_hidden_layers") * number("num_key_value_heads") * number("head_dim")
    }

    /// Returns how many times the keys and values of a token are in memory at most, the copies of its sequence included.
    pub fn token_copies(&self) -> usize {
        self.family.keeping.pages_a_run
    }

    /// Returns the share of the experts that compute a token, above 0 and at most 1; 1 for a model without experts.
    pub(super) fn active_experts(&self) -> f64 {
        let number = |key| self.constants.number(key) as f64;
        match number("num_experts") {
            0.0 => 1.0,
            experts => number("num_experts_per_tok") / experts,
        }
    }
}

fn model_type(raw: &RawConfig) -> Result<String, ModelConfigError> {
    Ok(raw.optional("model_type")?.unwrap_or_default())
}
