//! The device's code on candle's CPU device. Bits are promised on the CPU runtime only, so everything
//! here is compared within a tolerance.

mod golden;
mod sequences;

use speculation::{
    TokenId,
    ports::{KvCache, LanguageModel, Rows, Segment},
};

use super::*;
use crate::{
    checkpoint::Checkpoint,
    tests::{self as trials, extend, forward, fresh, text},
};

/// Largest difference between two ways to the same numbers.
const TOLERANCE: f32 = 1e-4;

/// A small model of odd sizes: an odd number of query heads a key head, a head dimension that is no
/// multiple of a vector, a window in one layer, soft caps.
fn config() -> ModelConfig {
    ModelConfig {
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
        attention_softcap: Some(2.0),
        window: Some(7),
        windowed: vec![true, false],
        ..ModelConfig::llama()
    }
}

fn model() -> DeviceModel {
    let checkpoint = Checkpoint::random(config(), 7).unwrap();
    load(&checkpoint, NumberFormat::F32)
}

fn load(checkpoint: &Checkpoint, format: NumberFormat) -> DeviceModel {
    DeviceModel::load(
        checkpoint.config(),
        checkpoint.weights(),
        format,
        Place::Cpu,
    )
    .unwrap()
}

fn assert_near(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let difference = (found - expected).abs();
        assert!(
            difference <= TOLERANCE,
            "{what}, number {i}: {found} is not {expected}"
        );
    }
}
