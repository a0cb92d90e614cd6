//! Whether a device computes what the CPU does: small models of random weights that together need every operation.

use std::fmt;

use speculation::TokenId;
use speculation::ports::{LanguageModel, Rows, Segment};

use crate::{
    checkpoint::Checkpoint,
    computation::{ComputeDevice, NumberFormat},
    config::ModelConfig,
    device::DeviceModel,
    linear::WeightFormat,
};

/// Tokens of the first forward; the second appends a tree.
const PROMPT: usize = 40;

/// Two branches and a side shoot.
const TREE: [Option<u32>; 6] = [None, None, Some(1), Some(0), Some(2), Some(0)];

/// Formats of plain numbers.
const PLAIN: [NumberFormat; 3] = [NumberFormat::Bf16, NumberFormat::F16, NumberFormat::F32];

/// Formats of weights in blocks.
const BLOCKS: [NumberFormat; 2] = [NumberFormat::Q8_0, NumberFormat::Q4_K];

/// How far a device was from the CPU in one kind of model.
#[derive(Clone, Debug, PartialEq, derive_more::Display)]
#[display("{what} in {format}: {difference:.1e} from the CPU, {:.0e} are allowed", allowed(*format))]
pub struct DeviceDifference {
    /// What the model has.
    what: &'static str,
    format: NumberFormat,
    /// Largest difference of two logits; those of the models used are about 1.
    difference: f32,
}

impl DeviceDifference {
    /// Whether the difference is no more than the format's rounding.
    pub fn is_near(&self) -> bool {
        // NaN is near nothing.
        self.difference <= allowed(self.format)
    }
}

fn allowed(format: NumberFormat) -> f32 {
    match format {
        NumberFormat::F32 => 1e-3,
        NumberFormat::F16 => 5e-2,
        NumberFormat::Bf16 => 2e-1,
        // Activations are rounded at each product besides.
        NumberFormat::Q8_0 | NumberFormat::Q4_K => 4e-1,
    }
}

/// Forwards a prompt and a tree of drafts on `place` and on the CPU, in every format.
///
/// # Errors
/// If the device cannot be used, or refuses an operation.
pub fn self_check(place: ComputeDevice) -> Result<Vec<DeviceDifference>, String> {
    let mut outcomes = Vec::new();
    for (what, config, formats) in kinds() {
        for &format in formats {
            let found = compare(config.clone(), format, place);
            let difference =
                found.map_err(|error| format!("{place}: {what} in {format}: {error}"))?;
            outcomes.push(DeviceDifference {
                what,
                format,
                difference,
            });
        }
    }
    Ok(outcomes)
}

/// Largest difference of two logits of one model, by `place` and by the CPU from the same weights.
fn compare(config: ModelConfig, format: NumberFormat, place: ComputeDevice) -> Result<f32, String> {
    let (stored, exact) = match format {
        NumberFormat::Q8_0 => (format, WeightFormat::Q8_0),
        NumberFormat::Q4_K => (format, WeightFormat::Q4_K),
        _ => (NumberFormat::F32, WeightFormat::F32),
    };
    let checkpoint = Checkpoint::synthetic(config, 7, stored).map_err(|error| error.to_string())?;
    let exact = checkpoint.load(exact).map_err(|error| error.to_string());
    let (config, weights) = (checkpoint.config(), checkpoint.weights());
    let found = DeviceModel::load(config, weights, format, place);
    let found = logits(&mut found.map_err(|error| error.to_string())?)?;
    Ok(largest_difference(&found, &logits(&mut exact?)?))
}

/// Models that together have every operation, with what they try and the formats they are compared in.
fn kinds() -> [(&'static str, ModelConfig, &'static [NumberFormat]); 4] {
    let plain = ModelConfig {
        vocab_size: 101,
        hidden_size: 48,
        intermediate_size: 72,
        layers: 2,
        heads: 6,
        kv_heads: 2,
        head_dim: 10,
        context_len: 96,
        tie_word_embeddings: false,
        attention_scale: 1.0 / 10_f32.sqrt(),
        ..ModelConfig::llama()
    };
    let everything = ModelConfig {
        attention_softcap: Some(2.0),
        logit_softcap: Some(3.0),
        logit_divisor: Some(0.5),
        embedding_scale: Some(1.5),
        residual_scale: Some(0.5),
        qk_norm: true,
        qkv_bias: true,
        post_norms: true,
        tie_word_embeddings: true,
        window: Some(7),
        windowed: vec![true, false],
        ..plain.clone()
    };
    let norms_after = ModelConfig {
        pre_norms: false,
        post_norms: true,
        qk_norm: true,
        qk_norm_whole: true,
        ..plain.clone()
    };
    let blocks = ModelConfig {
        hidden_size: 256,
        intermediate_size: 512,
        heads: 4,
        head_dim: 64,
        attention_scale: 1.0 / 64_f32.sqrt(),
        ..plain.clone()
    };
    [
        ("products, norms, rotation and attention", plain, &PLAIN),
        (
            "windows, soft caps, biases and norms of heads",
            everything,
            &PLAIN,
        ),
        (
            "norms after blocks alone and of all heads at once",
            norms_after,
            &PLAIN,
        ),
        ("products with weights in blocks", blocks, &BLOCKS),
    ]
}

/// All logits of a prompt and of a tree of drafts behind it.
fn logits<M>(model: &mut M) -> Result<Vec<f32>, String>
where
    M: LanguageModel,
    M::Error: fmt::Display,
{
    let tokens: Vec<TokenId> = (0..PROMPT as u32 + 6)
        .map(|i| (i * 37 + i * i) % 101)
        .collect();
    let (prompt, tree) = tokens.split_at(PROMPT);
    let mut cache = model.new_cache();
    let mut all = Vec::new();
    for (tokens, parents) in [(prompt, &[][..]), (tree, &TREE[..])] {
        let segment = Segment {
            cache: &mut cache,
            tokens,
            parents,
            scored_from: 0,
        };
        let mut rows = Rows::default();
        let forwarded = model.forward(&mut [segment], &mut rows);
        forwarded.map_err(|error| error.to_string())?;
        all.extend(rows.logits);
    }
    Ok(all)
}

fn largest_difference(found: &[f32], exact: &[f32]) -> f32 {
    if found.len() != exact.len() {
        return f32::NAN;
    }
    let differences = found
        .iter()
        .zip(exact)
        .map(|(found, exact)| (found - exact).abs());
    // `f32::max` would pass NaN over.
    differences.fold(
        0.0,
        |most, it| if it.is_nan() || it > most { it } else { most },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_devices_code_passes_on_the_cpu_and_a_wrong_number_does_not() {
        let outcomes = self_check(ComputeDevice::Cpu).expect("it computes");
        assert_eq!(outcomes.len(), 11);
        for outcome in &outcomes {
            assert!(outcome.is_near(), "{outcome}");
        }
        let off = DeviceDifference {
            difference: largest_difference(&[1.0, 2.0], &[1.0, 2.1]),
            ..outcomes[0].clone()
        };
        let nan = DeviceDifference {
            difference: largest_difference(&[f32::NAN, 2.0], &[1.0, 2.0]),
            ..outcomes[0].clone()
        };
        let in_f32 = |outcome: DeviceDifference| DeviceDifference {
            format: NumberFormat::F32,
            ..outcome
        };
        assert!(!in_f32(off).is_near() && !nan.is_near());
    }
}
