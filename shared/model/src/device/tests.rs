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
    computation::Computation,
    linear::WeightFormat,
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
        ComputeDevice::Cpu,
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

#[test]
fn a_cache_of_another_device_is_refused() {
    let checkpoint = Checkpoint::random(ModelConfig::llama(), 1).unwrap();
    let mut ours = checkpoint.load(WeightFormat::F32).unwrap();
    let on_device = Computation::Device(ComputeDevice::Cpu, NumberFormat::F32);
    let mut device = checkpoint.load(on_device).unwrap();
    let mut caches = [ours.new_cache(), device.new_cache()];
    for (model, own) in [(&mut ours, 0), (&mut device, 1)] {
        for (i, cache) in caches.iter_mut().enumerate() {
            let segment = Segment {
                cache,
                tokens: &[1, 2, 3],
                parents: &[],
                scored_from: 3,
            };
            let result = model.forward(&mut [segment], &mut Rows::default());
            if i == own {
                assert_eq!(result, Ok(()));
            } else {
                assert_eq!(result, Err(ForwardError::ForeignCache));
            }
        }
        assert_eq!(caches[own].len(), 3);
        caches[own].truncate(0);
    }
}
