//! The models that speed is measured on: the embedded target, and a larger one of random weights.

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use model::{Checkpoint, ModelConfig, WeightFormat, embedded};

/// Dimensions of a head of the random model.
const HEAD_DIM: usize = 64;

/// Longest sequence of the random model, in tokens.
const CONTEXT_LEN: usize = 2048;

/// Which models are measured, and how large the random one is.
#[derive(Clone, Debug, Args)]
pub(super) struct MeasuredModelArgs {
    /// Models to measure.
    #[arg(
        long,
        value_name = "MODELS",
        value_delimiter = ',',
        default_value = "embedded,random"
    )]
    pub(super) models: Vec<WhichModel>,
    /// Width of the random model, a multiple of 64. Its feed-forward networks are 8/3 as wide.
    #[arg(long, value_name = "N", default_value_t = 768)]
    pub(super) hidden: usize,
    /// Layers of the random model.
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub(super) layers: usize,
    /// Vocabulary of the random model. Its embedding is its LM head too.
    #[arg(long, value_name = "N", default_value_t = 32_000)]
    pub(super) vocab: usize,
}

/// A model to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum WhichModel {
    /// The built-in target model, of 12.6 million parameters: it fits into the processor's cache.
    Embedded,
    /// A Llama of random weights, of 110 million parameters unless told otherwise: it does not.
    Random,
}

impl MeasuredModelArgs {
    /// The checkpoint of `which`, and its name in tables.
    ///
    /// # Errors
    /// If the random model's sizes are out of range, or there is no embedded model.
    pub(super) fn open(&self, which: WhichModel) -> anyhow::Result<(String, Checkpoint)> {
        match which {
            WhichModel::Embedded => {
                let checkpoint = embedded::target().context("the embedded target model")?;
                Ok(("embedded target".to_owned(), checkpoint))
            }
            WhichModel::Random => {
                let config = random(self.hidden, self.layers, self.vocab)?;
                let name = format!("random, {}", millions(parameters(&config)));
                let checkpoint = Checkpoint::random(config, 1).context("the random model")?;
                Ok((name, checkpoint))
            }
        }
    }

    /// Refuses sizes that no random model can have.
    ///
    /// # Errors
    /// Names the flag.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        ensure!(!self.models.is_empty(), "--models: none is named");
        random(self.hidden, self.layers, self.vocab).map(drop)
    }
}

/// The config of a Llama of these sizes.
///
/// # Errors
/// Names the flag that is out of range.
pub(super) fn random(hidden: usize, layers: usize, vocab: usize) -> anyhow::Result<ModelConfig> {
    ensure!(
        hidden > 0 && hidden.is_multiple_of(HEAD_DIM) && hidden <= 8192,
        "--hidden: {hidden} is out of range, expected a multiple of {HEAD_DIM} up to 8192"
    );
    ensure!(
        (1..=128).contains(&layers),
        "--layers: {layers} is out of range, expected 1 to 128"
    );
    ensure!(
        (64..=1 << 18).contains(&vocab),
        "--vocab: {vocab} is out of range, expected 64 to {}",
        1 << 18
    );
    let heads = hidden / HEAD_DIM;
    Ok(ModelConfig {
        vocab_size: vocab,
        hidden_size: hidden,
        intermediate_size: (hidden * 8 / 3).next_multiple_of(HEAD_DIM),
        layers,
        heads,
        kv_heads: heads,
        head_dim: HEAD_DIM,
        context_len: CONTEXT_LEN,
        attention_scale: 1.0 / (HEAD_DIM as f32).sqrt(),
        ..ModelConfig::llama()
    })
}

/// Numbers in the matrices that decoding one token multiplies with.
pub(super) fn parameters(config: &ModelConfig) -> usize {
    let (hidden, heads) = (config.hidden_size, config.heads + config.kv_heads);
    let attention = 2 * hidden * heads * config.head_dim;
    let network = 3 * hidden * config.intermediate_size;
    config.layers * (attention + network) + config.vocab_size * hidden
}

/// Bytes of so many weights as files store them: what must be read at least.
pub(super) fn stored_bytes(weights: usize, format: WeightFormat) -> usize {
    match format {
        // 32 bytes and a half-precision scale for 32.
        WeightFormat::Q8_0 => weights / 32 * 34,
        // 256 weights of 4 bits, eight scales and minima of 6 and two of 16.
        WeightFormat::Q4_K => weights / 256 * 144,
        WeightFormat::F32 => weights * 4,
    }
}

/// A number of parameters as people say it.
pub(super) fn millions(parameters: usize) -> String {
    let millions = parameters as f64 / 1e6;
    if millions < 10.0 {
        format!("{millions:.1} M")
    } else {
        format!("{millions:.0} M")
    }
}

/// Reads a format's name.
///
/// # Errors
/// Lists the formats there are.
pub(super) fn format(name: &str) -> Result<WeightFormat, String> {
    name.parse::<WeightFormat>()
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_random_model_has_110_million_parameters() {
        let config = random(768, 12, 32_000).expect("a config");
        assert_eq!(millions(parameters(&config)), "110 M");
        assert_eq!(config.intermediate_size, 2048);
    }

    #[test]
    fn parameters_are_those_of_the_checkpoint() {
        let config = random(128, 3, 100).expect("a config");
        let count = parameters(&config);
        let checkpoint = Checkpoint::random(config.clone(), 1).expect("weights");
        let tensor = |name: &str, shape: &[usize]| {
            let tensor = checkpoint.weights().tensor(name, shape);
            tensor.expect("a tensor of this shape").len()
        };
        let layer = |index: usize| -> usize {
            ["q", "k", "v", "o"]
                .map(|part| format!("self_attn.{part}_proj"))
                .into_iter()
                .map(|part| (part, [128, 128]))
                .chain(["gate", "up"].map(|part| (format!("mlp.{part}_proj"), [384, 128])))
                .chain([("mlp.down_proj".to_owned(), [128, 384])])
                .map(|(part, shape)| tensor(&format!("model.layers.{index}.{part}.weight"), &shape))
                .sum()
        };
        let all =
            tensor("model.embed_tokens.weight", &[100, 128]) + (0..3).map(layer).sum::<usize>();
        assert_eq!(count, all);
    }

    #[test]
    fn sizes_out_of_range_are_refused_by_name() {
        let refused = |hidden, layers, vocab| {
            let error = random(hidden, layers, vocab).expect_err("refused");
            error.to_string()
        };
        assert!(refused(100, 1, 100).starts_with("--hidden: 100"));
        assert!(refused(64, 0, 100).starts_with("--layers: 0"));
        assert!(refused(64, 1, 10).starts_with("--vocab: 10"));
    }
}
