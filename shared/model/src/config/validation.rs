//! What holds for the sizes of every model.

use super::{ModelConfig, ModelConfigError, error::unless};
use crate::rope::RopeScaling;

/// Sizes are multiplied with one another; no model comes near this.
const LARGEST: usize = 1 << 28;

impl ModelConfig {
    /// Refuses sizes and constants that no model can have.
    ///
    /// # Errors
    /// Names the key of `config.json`, its value, and what it should be.
    pub(crate) fn validate(self) -> Result<Self, ModelConfigError> {
        self.check_sizes()?;
        self.check_constants()?;
        self.check_layers()?;
        self.check_tokens()?;
        self.check_encoder()?;
        Ok(self)
    }

    /// The name of `key` in the files of the family.
    fn key(&self, key: &'static str) -> &'static str {
        let mut keys = self.architecture.family().keys.iter();
        keys.find(|(common, _)| *common == key)
            .map_or(key, |(_, own)| own)
    }

    fn check_sizes(&self) -> Result<(), ModelConfigError> {
        for (key, size) in [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            (
                "num_layers",
                self.encoder.map_or(1, |encoder| encoder.layers),
            ),
            ("num_hidden_layers", self.layers),
            ("num_attention_heads", self.heads),
            ("num_key_value_heads", self.kv_heads),
            ("head_dim", self.head_dim),
            ("max_position_embeddings", self.context_len),
        ] {
            let holds = (1..=LARGEST).contains(&size);
            unless(holds, self.key(key), size, "it must be between 1 and 2^28")?;
        }
        unless(
            self.heads.is_multiple_of(self.kv_heads),
            "num_key_value_heads",
            self.kv_heads,
            "it must divide num_attention_heads",
        )?;
        unless(
            self.rope.is_none() || self.head_dim.is_multiple_of(2),
            "head_dim",
            self.head_dim,
            "it must be even, for dimensions rotate in pairs",
        )
    }

    fn check_constants(&self) -> Result<(), ModelConfigError> {
        let caps = [
            ("attn_logit_softcapping", self.attention_softcap),
            ("final_logit_softcapping", self.logit_softcap),
        ];
        let epsilon = (self.key("rms_norm_eps"), Some(self.rms_norm_eps));
        for (key, constant) in [epsilon].into_iter().chain(caps) {
            let Some(found) = constant else { continue };
            let holds = found.is_finite() && found > 0.0;
            unless(holds, key, found, "it must be positive")?;
        }
        for rope in self.rope.iter().chain(&self.window_rope) {
            let holds = rope.theta.is_finite() && rope.theta > 1.0;
            unless(holds, "rope_theta", rope.theta, "it must be above 1")?;
            let dims = rope.dims.unwrap_or(self.head_dim);
            unless(
                dims > 0 && dims <= self.head_dim && dims.is_multiple_of(2),
                "partial_rotary_factor",
                format!("{dims} of {} dimensions", self.head_dim),
                "an even number of a head's dimensions must rotate",
            )?;
            if let RopeScaling::LongRope(long_rope) = &rope.scaling {
                for (key, factors) in [
                    ("short_factor", &long_rope.short_factors),
                    ("long_factor", &long_rope.long_factors),
                ] {
                    unless(
                        factors.len() == dims / 2,
                        key,
                        format!("a list of {}", factors.len()),
                        "it must have a number for each pair of dimensions that rotate",
                    )?;
                    let holds = |factor: &f32| factor.is_finite() && *factor > 0.0;
                    let wrong = factors.iter().find(|factor| !holds(factor));
                    let found = wrong.copied().unwrap_or_default();
                    unless(wrong.is_none(), key, found, "each must be positive")?;
                }
            }
            let found = rope.scaling.attention_factor();
            let holds = found.is_finite() && found > 0.0;
            unless(holds, "attention_factor", found, "it must be positive")?;
        }
        Ok(())
    }

    fn check_layers(&self) -> Result<(), ModelConfigError> {
        let any = self.windowed.contains(&true);
        unless(
            !any || self.windowed.len() == self.layers,
            "layer_types",
            format!("a list of {}", self.windowed.len()),
            "it must have an entry for each of num_hidden_layers",
        )?;
        unless(
            self.window != Some(0),
            "sliding_window",
            0,
            "a token sees itself at least, so it must be 1 or more",
        )?;
        unless(
            !any || self.window.is_some(),
            "sliding_window",
            "null",
            "layer_types gives some layers a window, so it must be a number",
        )
    }

    fn check_tokens(&self) -> Result<(), ModelConfigError> {
        let begin = self.bos_token_id.iter().map(|id| ("bos_token_id", *id));
        let ends = self.eos_token_ids.iter().map(|id| ("eos_token_id", *id));
        let start = self
            .encoder
            .iter()
            .map(|encoder| encoder.decoder_start_token_id);
        let start = start.map(|id| ("decoder_start_token_id", id));
        for (key, token) in begin.chain(ends).chain(start) {
            let holds = (token as usize) < self.vocab_size;
            unless(holds, key, token, "it must be below vocab_size")?;
        }
        Ok(())
    }

    fn check_encoder(&self) -> Result<(), ModelConfigError> {
        let Some(encoder) = self.encoder else {
            return Ok(());
        };
        let context = (self.key("max_position_embeddings"), self.context_len);
        unless(
            context.1 <= 1 << 20,
            context.0,
            context.1,
            "it must be at most 2^20",
        )?;
        let (buckets, distance) = (encoder.relative_buckets, encoder.relative_max_distance);
        unless(
            (4..=1 << 16).contains(&buckets) && buckets.is_multiple_of(4),
            "relative_attention_num_buckets",
            buckets,
            "it must be a multiple of 4, from 4 to 65536",
        )?;
        // Half of the buckets, of a decoder, hold one distance each.
        unless(
            distance > buckets / 2 && distance <= LARGEST,
            "relative_attention_max_distance",
            distance,
            "it must be above half of relative_attention_num_buckets, and at most 2^28",
        )
    }
}
