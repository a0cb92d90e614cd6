//! The models that a device is timed on.

use clap::ValueEnum;
use model::ModelConfig;

/// How large a synthetic model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Size {
    /// Too small to say anything about speed: shows that the command works.
    Tiny,
    /// As Llama 3.2 1B.
    #[value(name = "1b")]
    One,
    /// As Llama 3.1 8B.
    #[value(name = "8b")]
    Eight,
}

impl Size {
    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::One => "1 B",
            Self::Eight => "8 B",
        }
    }

    /// Sizes and constants.
    pub(super) fn config(self) -> ModelConfig {
        let (vocab_size, hidden_size, intermediate_size, layers, heads, head_dim) = match self {
            Self::Tiny => (4096, 256, 512, 2, 4, 64),
            Self::One => (128_256, 2048, 8192, 16, 32, 64),
            Self::Eight => (128_256, 4096, 14_336, 32, 32, 128),
        };
        ModelConfig {
            vocab_size,
            hidden_size,
            intermediate_size,
            layers,
            heads,
            kv_heads: heads / 4,
            head_dim,
            context_len: 2048,
            tie_word_embeddings: self != Self::Eight,
            attention_scale: 1.0 / (head_dim as f32).sqrt(),
            ..ModelConfig::llama()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::parameters;

    #[test]
    fn sizes_are_what_they_are_called() {
        let billions = |size: Size| parameters(&size.config()) as f64 / 1e9;
        assert!((billions(Size::One) - 1.24).abs() < 0.02);
        // Decoding multiplies with the LM head, and not with the embedding table beside it.
        assert!((billions(Size::Eight) - 7.5).abs() < 0.02);
    }
}
