//! How the section of a rope stretches frequencies, by its kind.

use std::sync::Arc;

use crate::config::{ModelConfigError, RawConfig, unless};
use crate::rope::{LongRope, RopeScaling, Yarn};

const KIND: &str = "longrope";
const ORIGINAL: &str = "original_max_position_embeddings";
const CONTEXT: &str = "max_position_embeddings";
/// Keys of a section that stretch nothing.
const UNSTRETCHED: [&str; 2] = ["rope_theta", "partial_rotary_factor"];

impl RawConfig {
    /// How this section of `file` stretches frequencies. Old files call its kind `type`, some call it both.
    pub(super) fn scaling(&self, file: &Self) -> Result<RopeScaling, ModelConfigError> {
        let kind: Option<String> = Self::either([(self, "rope_type"), (self, "type")])?;
        let Some(kind) = kind else {
            return self.untyped(file);
        };
        match kind.as_str() {
            "default" => Ok(RopeScaling::Default),
            "linear" => Ok(RopeScaling::Linear {
                factor: self.factor("linear")?,
            }),
            // Beyond the context each further token would rotate all keys before it anew, which are in the cache
            // by then; up to it nothing is stretched. The context ends there, so this is all of it.
            "dynamic" => self.factor("dynamic").map(|_| RopeScaling::Default),
            "llama3" => self.llama3(file),
            "yarn" => self.yarn(file),
            // The name in the first releases of Phi-3.
            "longrope" | "su" => self.long_rope(file),
            other => Err(ModelConfigError::UnsupportedRope(other.to_owned())),
        }
    }

    /// Without a kind nothing is stretched; what could stretch it is refused, for it would be left out.
    fn untyped(&self, file: &Self) -> Result<RopeScaling, ModelConfigError> {
        let Some(key) = self.key_beside(&UNSTRETCHED) else {
            return Ok(RopeScaling::Default);
        };
        let older = file.filled("rope_scaling")?.is_some();
        Err(ModelConfigError::UntypedRope {
            section: if older {
                "rope_scaling"
            } else {
                "rope_parameters"
            },
            key: key.to_owned(),
        })
    }

    fn llama3(&self, file: &Self) -> Result<RopeScaling, ModelConfigError> {
        let low_freq_factor = self.rope_key("llama3", "low_freq_factor")?;
        let high_freq_factor = self.rope_key("llama3", "high_freq_factor")?;
        unless(
            low_freq_factor > 0.0 && high_freq_factor > low_freq_factor,
            "low_freq_factor",
            low_freq_factor,
            "it must be positive and below high_freq_factor",
        )?;
        Ok(RopeScaling::Llama3 {
            factor: self.factor("llama3")?,
            low_freq_factor,
            high_freq_factor,
            original_context_len: self.original_context(file, "llama3")? as usize,
        })
    }

    /// Without a factor it is that of the contexts; without a factor of attention it is the paper's, or what
    /// `mscale` and `mscale_all_dim` make of it.
    fn yarn(&self, file: &Self) -> Result<RopeScaling, ModelConfigError> {
        let original = self.original_context(file, "yarn")?;
        let factor = match self.optional("factor")? {
            Some(factor) => factor,
            None => file.required::<f64>(CONTEXT)? / original,
        };
        check_factor(factor)?;
        // Zero counts as nothing, as in Python.
        let number = |key| -> Result<Option<f64>, ModelConfigError> {
            Ok(self.optional(key)?.filter(|&number: &f64| number != 0.0))
        };
        let beta_fast = number("beta_fast")?.unwrap_or(Yarn::BETA_FAST);
        let beta_slow = number("beta_slow")?.unwrap_or(Yarn::BETA_SLOW);
        let most = f64::from(1 << 28);
        let expected = "it must be at most 2^28";
        unless(beta_fast <= most, "beta_fast", beta_fast, expected)?;
        let expected = "it must be at least 0.001, and below beta_fast";
        let holds = beta_slow >= 1e-3 && beta_slow < beta_fast;
        unless(holds, "beta_slow", beta_slow, expected)?;
        let attention = match (
            self.optional::<f64>("attention_factor")?,
            number("mscale")?,
            number("mscale_all_dim")?,
        ) {
            (Some(attention), ..) => attention,
            (None, Some(scale), Some(all)) => {
                Yarn::attention(factor, scale) / Yarn::attention(factor, all)
            }
            _ => Yarn::attention(factor, 1.0),
        };
        Ok(RopeScaling::Yarn(Yarn {
            factor,
            original_context_len: original as usize,
            beta_fast,
            beta_slow,
            truncate: self.optional("truncate")?.unwrap_or(true),
            attention_factor: attention as f32,
        }))
    }

    fn factor(&self, kind: &'static str) -> Result<f64, ModelConfigError> {
        let factor = self.rope_key(kind, "factor")?;
        check_factor(factor)?;
        Ok(factor)
    }

    /// A finite number that ropes of `kind` need.
    fn rope_key(&self, kind: &'static str, key: &'static str) -> Result<f64, ModelConfigError> {
        self.optional(key)?
            .ok_or(ModelConfigError::MissingRopeKey { kind, key })
    }

    /// The context that the model was first trained on, in tokens: as transformers has it that of `file`, or else of
    /// this section, or else the one of the model.
    fn original_context(&self, file: &Self, kind: &'static str) -> Result<f64, ModelConfigError> {
        let original = match Self::either([(file, ORIGINAL), (self, ORIGINAL)])? {
            Some(original) => Some(original),
            None => file.optional(CONTEXT)?,
        };
        let key = ORIGINAL;
        let original = original.ok_or(ModelConfigError::MissingRopeKey { kind, key })?;
        let holds = (1.0..=f64::from(1 << 28)).contains(&original);
        unless(holds, key, original, "it must be between 1 and 2^28")?;
        Ok(original)
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
            None => file.required::<f64>(CONTEXT)? / original,
        };
        if stretch <= 1.0 {
            return Ok(1.0);
        }
        Ok((1.0 + stretch.ln() / original.ln()).sqrt() as f32)
    }
}

fn check_factor(factor: f64) -> Result<(), ModelConfigError> {
    let expected = "a rope's factor must be at least 1";
    unless(factor >= 1.0, "factor", factor, expected)
}
