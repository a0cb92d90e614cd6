//! Rotary embeddings in a `config.json`.
//!
//! transformers 5 writes `rope_parameters`, by kind of layer where kinds differ. Before, `rope_theta`
//! stood by itself, `rope_scaling` beside it, and Gemma 3 had a `rope_local_base_freq`. Of a file that has
//! both, transformers 5 takes `rope_scaling`, unless it is empty, and so do we; in Gemma 3 it lays it over
//! what `rope_parameters` says of layers that see everything.

mod scaling;

use super::{ModelConfigError, RawConfig, RopeConfig, error::unless};
use crate::rope::RopeScaling;

const FULL: &str = "full_attention";
const WINDOWED: &str = "sliding_attention";

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
}
