//! Rotary embeddings in a `config.json`.
//!
//! transformers 5 writes `rope_parameters`, by kind of layer where kinds differ. Before, `rope_theta`
//! stood by itself, `rope_scaling` beside it, and Gemma 3 had a `rope_local_base_freq`. Of a file that has
//! both, transformers 5 takes `rope_scaling`, unless it is empty, and so do we; in Gemma 3 it lays it over
//! what `rope_parameters` says of layers that see everything.

use std::sync::Arc;

use super::{ModelConfigError, RawConfig, RopeConfig, error::unless};
use crate::rope::{LongRope, RopeScaling};

const FULL: &str = "full_attention";
const WINDOWED: &str = "sliding_attention";
const KIND: &str = "longrope";
const ORIGINAL: &str = "original_max_position_embeddings";

impl RawConfig {
    /// The one rotation of all layers, with the base frequency `theta` if the file gives none.
    pub(crate) fn rope(&self, theta: f64) -> Result<RopeConfig, ModelConfigError> {
        let section = self.rope_section()?;
        unless(
            section.optional::<serde_json::Value>(FULL)?.is_none(),
            "rope_parameters",
            "given by kind of layer",
            "all layers of this model type rotate alike",
        )?;
        self.rotation(&section, theta)
    }

    /// The same, of heads that may rotate in part.
    pub(crate) fn partial_rope(
        &self,
        theta: f64,
        head_dim: usize,
    ) -> Result<RopeConfig, ModelConfigError> {
        let section = self.rope_section()?;
        let key = "partial_rotary_factor";
        let factor: f64 = Self::either([(&section, key), (self, key)])?.unwrap_or(1.0);
        let expected = "it must be above 0 and at most 1";
        unless(factor > 0.0 && factor <= 1.0, key, factor, expected)?;
        // Rounded down, but not for want of a bit.
        let dims = (head_dim as f64 * factor + 1e-6) as usize;
        Ok(RopeConfig {
            dims: (dims != head_dim).then_some(dims),
            ..self.stretched(&section, theta)?
        })
    }

    /// The rotations of layers that see everything and of layers with a window, with the base frequencies
    /// `theta` and `local_theta` if the file gives none.
    pub(crate) fn ropes(
        &self,
        theta: f64,
        local_theta: f64,
    ) -> Result<(RopeConfig, RopeConfig), ModelConfigError> {
        let section = match self.filled("rope_parameters")? {
            Some(parameters) if parameters.section(FULL)?.is_some() => parameters,
            _ => self.rope_section()?,
        };
        if let Some(mut full) = section.section(FULL)? {
            let windowed = section.section(WINDOWED)?;
            let windowed = windowed.ok_or(ModelConfigError::Missing(
                "rope_parameters.sliding_attention",
            ))?;
            if let Some(scaling) = self.filled("rope_scaling")? {
                full = full.overlaid(scaling);
            }
            return Ok((
                full.rotation(&full, theta)?,
                windowed.rotation(&windowed, local_theta)?,
            ));
        }
        let local_theta = self
            .optional("rope_local_base_freq")?
            .unwrap_or(local_theta);
        let windowed = RopeConfig {
            theta: local_theta,
            scaling: RopeScaling::Default,
            dims: None,
        };
        Ok((self.rotation(&section, theta)?, windowed))
    }

    fn rope_section(&self) -> Result<Self, ModelConfigError> {
        let section = match self.filled("rope_scaling")? {
            Some(section) => Some(section),
            None => self.filled("rope_parameters")?,
        };
        section.map_or_else(|| Self::read(b"{}"), Ok)
    }

    /// The object at `key`, if there is anything in it.
    fn filled(&self, key: &'static str) -> Result<Option<Self>, ModelConfigError> {
        Ok(self.section(key)?.filter(|section| !section.is_empty()))
    }

    /// The rotation of whole heads that `section` describes; its base frequency may stand here, beside it.
    fn rotation(&self, section: &Self, theta: f64) -> Result<RopeConfig, ModelConfigError> {
        for keys in [section, self] {
            let key = "partial_rotary_factor";
            let factor: f64 = keys.optional(key)?.unwrap_or(1.0);
            let expected = "heads of this model type rotate as a whole";
            unless(factor == 1.0, key, factor, expected)?;
        }
        self.stretched(section, theta)
    }

    /// The same without a look at how much of a head rotates.
    fn stretched(&self, section: &Self, theta: f64) -> Result<RopeConfig, ModelConfigError> {
        let key = "rope_theta";
        Ok(RopeConfig {
            theta: Self::either([(section, key), (self, key)])?.unwrap_or(theta),
            scaling: section.scaling(self)?,
            dims: None,
        })
    }

    /// How this section of `file` stretches frequencies. Old files call its kind `type`, some call it both.
    fn scaling(&self, file: &Self) -> Result<RopeScaling, ModelConfigError> {
        let kind: Option<String> = Self::either([(self, "rope_type"), (self, "type")])?;
        match kind.as_deref().unwrap_or("default") {
            "default" => Ok(RopeScaling::Default),
            "linear" => Ok(RopeScaling::Linear {
                factor: self.factor("linear")?,
            }),
            "llama3" => {
                let low_freq_factor = self.rope_key("llama3", "low_freq_factor")?;
                let high_freq_factor = self.rope_key("llama3", "high_freq_factor")?;
                unless(
                    low_freq_factor > 0.0 && high_freq_factor > low_freq_factor,
                    "low_freq_factor",
                    low_freq_factor,
                    "it must be positive and below high_freq_factor",
                )?;
                let key = "original_max_position_embeddings";
                let original = self.rope_key("llama3", key)?;
                let holds = (1.0..=f64::from(1 << 28)).contains(&original);
                unless(holds, key, original, "it must be between 1 and 2^28")?;
                Ok(RopeScaling::Llama3 {
                    factor: self.factor("llama3")?,
                    low_freq_factor,
                    high_freq_factor,
                    original_context_len: original as usize,
                })
            }
            // What the first releases of Phi-3 called it.
            "longrope" | "su" => self.long_rope(file),
            other => Err(ModelConfigError::UnsupportedRope(other.to_owned())),
        }
    }

    fn factor(&self, kind: &'static str) -> Result<f64, ModelConfigError> {
        let factor = self.rope_key(kind, "factor")?;
        let expected = "a rope's factor must be at least 1";
        unless(factor >= 1.0, "factor", factor, expected)?;
        Ok(factor)
    }

    /// A finite number that ropes of `kind` need.
    fn rope_key(&self, kind: &'static str, key: &'static str) -> Result<f64, ModelConfigError> {
        self.optional(key)?
            .ok_or(ModelConfigError::MissingRopeKey { kind, key })
    }

    /// The factors of this section of `file`. The context that the model was first trained on stands in either.
    ///
    /// Without a factor of attention it is as in equation 8 of the paper: sqrt(1 + ln s / ln L), where L is that
    /// context and s by how much it was stretched.
    fn long_rope(&self, file: &Self) -> Result<RopeScaling, ModelConfigError> {
        let original: Option<u64> = Self::either([(self, ORIGINAL), (file, ORIGINAL)])?;
        let missing = |key| ModelConfigError::MissingRopeKey { kind: KIND, key };
        let original = original.ok_or_else(|| missing(ORIGINAL))?;
        let holds = (1..=1 << 28).contains(&original);
        unless(holds, ORIGINAL, original, "it must be between 1 and 2^28")?;
        let attention_factor = match self.optional("attention_factor")? {
            Some(factor) => factor,
            None => self.stretched_attention(file, original as f64)?,
        };
        let factors = |key: &'static str| -> Result<Vec<f32>, ModelConfigError> {
            self.optional(key)?.ok_or_else(|| missing(key))
        };
        Ok(RopeScaling::LongRope(Arc::new(LongRope {
            short_factors: factors("short_factor")?,
            long_factors: factors("long_factor")?,
            original_context_len: original as usize,
            attention_factor,
        })))
    }

    fn stretched_attention(&self, file: &Self, original: f64) -> Result<f32, ModelConfigError> {
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
