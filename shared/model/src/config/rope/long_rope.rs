//! LongRoPE in a `config.json`.

use std::sync::Arc;

use crate::config::{ConfigError, RawConfig, error::unless};
use crate::rope::{LongRope, RopeScaling};

const KIND: &str = "longrope";
const ORIGINAL: &str = "original_max_position_embeddings";

impl RawConfig {
    /// The factors of this section of `file`. The context that the model was first trained on stands in either.
    ///
    /// Without a factor of attention it is as in equation 8 of the paper: sqrt(1 + ln s / ln L), where L is that
    /// context and s by how much it was stretched.
    pub(super) fn long_rope(&self, file: &Self) -> Result<RopeScaling, ConfigError> {
        let original: Option<u64> = match self.optional(ORIGINAL)? {
            Some(original) => Some(original),
            None => file.optional(ORIGINAL)?,
        };
        let missing = |key| ConfigError::MissingRopeKey { kind: KIND, key };
        let original = original.ok_or_else(|| missing(ORIGINAL))?;
        let holds = (1..=1 << 28).contains(&original);
        unless(holds, ORIGINAL, original, "it must be between 1 and 2^28")?;
        let attention_factor = match self.optional("attention_factor")? {
            Some(factor) => factor,
            None => self.stretched_attention(file, original as f64)?,
        };
        let factors = |key: &'static str| -> Result<Vec<f32>, ConfigError> {
            self.optional(key)?.ok_or_else(|| missing(key))
        };
        Ok(RopeScaling::LongRope(Arc::new(LongRope {
            short_factors: factors("short_factor")?,
            long_factors: factors("long_factor")?,
            original_context_len: original as usize,
            attention_factor,
        })))
    }

    fn stretched_attention(&self, file: &Self, original: f64) -> Result<f32, ConfigError> {
        let stretch: f64 = match self.optional("factor")? {
            Some(factor) => factor,
            None => file.required::<f64>("max_position_embeddings")? / original,
        };
        if stretch <= 1.0 {
            return Ok(1.0);
        }
        Ok((1.0 + stretch.ln() / original.ln()).sqrt() as f32)
    }
}
