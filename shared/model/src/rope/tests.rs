mod golden;

use std::{f64::consts::PI, sync::Arc};

use super::*;

/// A rotation by base 10000 of heads of `head_dim`, `dims` of which rotate, in a context of 512 tokens.
fn rotary(head_dim: usize, dims: Option<usize>, scaling: RopeScaling) -> Rotary {
    let rope = RopeConfig {
        theta: 10_000.0,
        scaling,
        dims,
    };
    let mut rotary = Rotary::new(&rope, head_dim, 512);
    rotary.reserve(64);
    rotary
}

fn long_rope(original_context_len: usize) -> RopeScaling {
    RopeScaling::LongRope(Arc::new(LongRope {
        short_factors: vec![1.0, 2.0],
        long_factors: vec![4.0, 8.0],
        original_context_len,
        attention_factor: 1.5,
    }))
}

#[test]
fn every_level_gives_the_bits_of_the_formula() {
    for (head_dim, dims) in [(38, 38), (48, 38)] {
        let rotary = rotary(head_dim, Some(dims), RopeScaling::Default);
        let heads: Vec<f32> = (0..2 * head_dim).map(|i| (i as f32 * 0.7).sin()).collect();
        let (cos, sin) = rotary.at(9);
        for level in Level::all() {
            let mut rotated = heads.clone();
            rotary.apply(level, &mut rotated, 9);
            for (head, rotated) in heads.chunks(head_dim).zip(rotated.chunks(head_dim)) {
                for i in 0..19 {
                    let (a, b) = (head[i], head[19 + i]);
                    assert_eq!(rotated[i], a * cos[i] - b * sin[i], "{level:?} {i}");
                    assert_eq!(rotated[19 + i], b * cos[i] + a * sin[i], "{level:?} {i}");
                }
                assert_eq!(rotated[dims..], head[dims..], "{level:?}");
            }
        }
    }
}

#[test]
fn linear_scaling_divides_positions() {
    let rotated = |scaling, position| {
        let mut head = [0.3, -1.0, 0.5, 0.2, 0.9, 0.1, -0.4, 0.7];
        rotary(8, None, scaling).apply(Level::detect(), &mut head, position);
        head
    };
    let plain = rotated(RopeScaling::Default, 5);
    let scaled = rotated(RopeScaling::Linear { factor: 8.0 }, 40);
    for (a, b) in plain.iter().zip(scaled) {
        assert!((a - b).abs() < 1e-6, "{a} is not {b}");
    }
}

#[test]
fn llama3_keeps_high_and_divides_low_frequencies() {
    let scaling = RopeScaling::Llama3 {
        factor: 8.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_context_len: 8192,
    };
    // The second pair of two turns by one over the base.
    let scaled = |frequency: f64| scaling.frequency(1, frequency.recip(), 2, 131_072);
    assert_eq!(scaled(1.0), 1.0);
    assert_eq!(scaled(1e-4), 1e-4 / 8.0);
    // 2.5 waves in the original context: half way.
    let middle = 2.5 * 2.0 * PI / 8192.0;
    assert!((scaled(middle) - middle * (0.5 / 8.0 + 0.5)).abs() < 1e-9);
}

#[test]
fn long_rope_divides_each_frequency_and_scales_scores() {
    // The context is 512 tokens.
    for (original, divisors) in [(512, [1.0, 2.0]), (511, [4.0, 8.0])] {
        let rotary = rotary(4, None, long_rope(original));
        let (cos, sin) = rotary.at(7);
        for i in 0..2 {
            let angle = 7.0 / divisors[i] / [1.0, 100.0][i];
            assert!((f64::from(cos[i]) - 1.5 * f64::cos(angle)).abs() < 1e-6);
            assert!((f64::from(sin[i]) - 1.5 * f64::sin(angle)).abs() < 1e-6);
        }
    }
}
