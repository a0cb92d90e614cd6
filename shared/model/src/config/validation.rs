//! What holds for the sizes of every model.

use super::{Architecture, ConfigError, ModelConfig, architecture::t5};

/// Sizes are multiplied with one another; no model comes near this.
const LARGEST: usize = 1 << 28;
const BELOW_VOCAB_SIZE: &str = "it must be below vocab_size";

impl ModelConfig {
    /// Refuses sizes and constants that no model can have.
    ///
    /// # Errors
    /// Names the key of `config.json`, its value, and what it should be.
    pub(crate) fn validate(self) -> Result<Self, ConfigError> {
        self.check_sizes()?;
        self.check_constants()?;
        self.check_layers()?;
        self.check_tokens()?;
        self.check_encoder()?;
        Ok(self)
    }

    /// `key` holds `found`, where `expected`; the key goes by its name in the files of the family.
    fn invalid(
        &self,
        key: &'static str,
        found: impl ToString,
        expected: &'static str,
    ) -> ConfigError {
        let own = t5::KEYS
            .iter()
            .filter(|_| self.architecture == Architecture::T5);
        let own = own.into_iter().find(|(common, _)| *common == key);
        ConfigError::invalid(own.map_or(key, |(_, own)| own), found, expected)
    }

    fn check_sizes(&self) -> Result<(), ConfigError> {
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
            if size == 0 || size > LARGEST {
                return Err(self.invalid(key, size, "it must be between 1 and 2^28"));
            }
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return Err(ConfigError::invalid(
                "num_key_value_heads",
                self.kv_heads,
                "it must divide num_attention_heads",
            ));
        }
        if self.rope.is_some() && !self.head_dim.is_multiple_of(2) {
            return Err(ConfigError::invalid(
                "head_dim",
                self.head_dim,
                "it must be even, for dimensions rotate in pairs",
            ));
        }
        Ok(())
    }

    fn check_constants(&self) -> Result<(), ConfigError> {
        let positive = |key, found: f32| {
            if found.is_finite() && found > 0.0 {
                return Ok(());
            }
            Err(self.invalid(key, found, "it must be positive"))
        };
        positive("rms_norm_eps", self.rms_norm_eps)?;
        for (key, cap) in [
            ("attn_logit_softcapping", self.attention_softcap),
            ("final_logit_softcapping", self.logit_softcap),
        ] {
            cap.map_or(Ok(()), |cap| positive(key, cap))?;
        }
        for rope in self.rope.iter().chain(&self.window_rope) {
            if !(rope.theta.is_finite() && rope.theta > 1.0) {
                let expected = "it must be above 1";
                return Err(ConfigError::invalid("rope_theta", rope.theta, expected));
            }
        }
        Ok(())
    }

    fn check_layers(&self) -> Result<(), ConfigError> {
        let any = self.windowed.contains(&true);
        if any && self.windowed.len() != self.layers {
            return Err(ConfigError::invalid(
                "layer_types",
                format!("a list of {}", self.windowed.len()),
                "it must have an entry for each of num_hidden_layers",
            ));
        }
        match self.window {
            Some(0) => Err(ConfigError::invalid(
                "sliding_window",
                0,
                "a token sees itself at least, so it must be 1 or more",
            )),
            None if any => Err(ConfigError::invalid(
                "sliding_window",
                "null",
                "layer_types gives some layers a window, so it must be a number",
            )),
            _ => Ok(()),
        }
    }

    fn check_tokens(&self) -> Result<(), ConfigError> {
        let begin = self.bos_token_id.iter().map(|id| ("bos_token_id", id));
        let ends = self.eos_token_ids.iter().map(|id| ("eos_token_id", id));
        for (key, &token) in begin.chain(ends) {
            if token as usize >= self.vocab_size {
                return Err(ConfigError::invalid(key, token, BELOW_VOCAB_SIZE));
            }
        }
        Ok(())
    }

    fn check_encoder(&self) -> Result<(), ConfigError> {
        let Some(encoder) = self.encoder else {
            return Ok(());
        };
        if self.context_len > 1 << 20 {
            let (key, expected) = ("max_position_embeddings", "it must be at most 2^20");
            return Err(self.invalid(key, self.context_len, expected));
        }
        let (buckets, distance) = (encoder.relative_buckets, encoder.relative_max_distance);
        if !(4..=1 << 16).contains(&buckets) || !buckets.is_multiple_of(4) {
            return Err(ConfigError::invalid(
                "relative_attention_num_buckets",
                buckets,
                "it must be a multiple of 4, from 4 to 65536",
            ));
        }
        // Half of the buckets, of a decoder, hold one distance each.
        if distance <= buckets / 2 || distance > LARGEST {
            return Err(ConfigError::invalid(
                "relative_attention_max_distance",
                distance,
                "it must be above half of relative_attention_num_buckets, and at most 2^28",
            ));
        }
        let start = encoder.decoder_start_token_id;
        if start as usize >= self.vocab_size {
            let key = "decoder_start_token_id";
            return Err(ConfigError::invalid(key, start, BELOW_VOCAB_SIZE));
        }
        Ok(())
    }
}
