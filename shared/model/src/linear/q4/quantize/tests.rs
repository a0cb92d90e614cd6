use candle_core::{
    Device, Tensor,
    quantized::{GgmlDType, QTensor},
};
use speculation::simd::{Kernel, Level};

use super::*;
use crate::linear::ggml::q4_k;
use crate::linear::tests::noise;

/// What candle makes of `values`, whole blocks, as numbers that can be compared.
fn by_candle(values: &[f32]) -> Vec<String> {
    let tensor = Tensor::from_slice(values, values.len(), &Device::Cpu).unwrap();
    let blocks = QTensor::quantize(&tensor, GgmlDType::Q4K).unwrap();
    let bytes = blocks.data().unwrap();
    let (blocks, _) = bytes.as_chunks();
    blocks.iter().map(|block| shown(&q4_k(block))).collect()
}

struct Quantize<'a>(&'a [f32; SUPER]);

impl Kernel for Quantize<'_> {
    type Output = Q4KBlock;

    #[inline(always)]
    fn run(self) -> Q4KBlock {
        quantize(self.0)
    }
}

fn shown(block: &Q4KBlock) -> String {
    let scales = [block.scale, block.min_scale].map(f32::to_bits);
    format!(
        "{scales:?} {:?} {:?} {:?}",
        block.scales, block.mins, block.pairs
    )
}

#[track_caller]
fn compare(values: &[f32], what: &str) {
    let expected = by_candle(values);
    for level in Level::all() {
        for (block, expected) in values.as_chunks().0.iter().zip(&expected) {
            let found = shown(&level.run(Quantize(block)));
            assert_eq!(found, *expected, "{what}, {level:?}: {block:?}");
        }
    }
}

#[test]
fn random_numbers_come_out_as_candle_quantises_them() {
    for seed in 0..40 {
        let values = noise(8 * SUPER, seed);
        compare(&values, "even");
        // Many small ones and few that are large, as weights are.
        let cubes: Vec<f32> = values.iter().map(|v| v * v * v * 0.1).collect();
        compare(&cubes, "cubes");
        let above: Vec<f32> = values.iter().map(|v| v + 0.9).collect();
        compare(&above, "above");
        let below: Vec<f32> = values.iter().map(|v| v - 3.0).collect();
        compare(&below, "below");
        // As bf16 has them, in which many are the same.
        let coarse = |v: &f32| f32::from_bits(v.to_bits() & 0xffff_0000);
        let coarse: Vec<f32> = cubes.iter().map(coarse).collect();
        compare(&coarse, "bf16");
        // Halves between two quants.
        let steps: Vec<f32> = values.iter().map(|v| (v * 8.0).round() / 2.0).collect();
        compare(&steps, "steps");
    }
}

#[test]
fn the_smallest_the_largest_and_the_same_come_out_as_of_candle() {
    let noise = noise(SUPER, 3);
    for scale in [
        0.0,
        -0.0,
        f32::MIN_POSITIVE,
        1e-45,
        1e-41,
        1e-38,
        1e-20,
        1e6,
        1e9,
        1e20,
        1e38,
        f32::MAX,
    ] {
        for sign in [1.0, -1.0] {
            let scaled: Vec<f32> = noise.iter().map(|v| v * scale * sign).collect();
            compare(&scaled, "scaled");
            let positive: Vec<f32> = scaled.iter().map(|v| v.abs() * sign).collect();
            compare(&positive, "of one sign");
            compare(&[scale * sign; SUPER], "the same");
            let mut one = [0.0; SUPER];
            one[77] = scale * sign;
            compare(&one, "one");
            one[33..70].fill(-0.0);
            compare(&one, "one, and zeros of both signs");
            let mut mixed = scaled.clone();
            mixed[64..128].fill(sign);
            mixed[128..160].fill(0.0);
            compare(&mixed, "sub-blocks of different sizes");
        }
    }
}

#[test]
fn broken_numbers_make_a_block_nan() {
    for broken in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for at in [0, 100, 255] {
            let mut values = [1.0; SUPER];
            values[at] = broken;
            for level in Level::all() {
                assert!(level.run(Quantize(&values)).scale.is_nan(), "{broken}");
            }
        }
    }
}

#[test]
fn rounding_is_that_of_the_standard_library() {
    let edges = (0..64).flat_map(|half| {
        let at = half as f32 / 4.0;
        [at, at.next_up(), at.next_down(), -at]
    });
    for value in edges.chain([1e9, f32::INFINITY, f32::NEG_INFINITY, f32::MAX]) {
        let expected = (value.round() as i32).clamp(0, 15);
        assert_eq!(rounded(value), expected as f32, "{value:?}");
    }
    assert_eq!(rounded(f32::NAN), 0.0);
}
