use super::*;
use speculation::simd::Level;

use crate::cache::LlamaCache;

const HEADS: usize = 6;
const KV_HEADS: usize = 2;

fn noise(i: usize) -> f32 {
    ((i as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.0
}

/// A cache of `positions` positions and a query.
fn setting(positions: usize, head_dim: usize) -> (LlamaCache, Vec<f32>) {
    let mut cache = LlamaCache::new(1, KV_HEADS, head_dim);
    cache.reserve(positions);
    let width = KV_HEADS * head_dim;
    for position in 0..positions {
        let row = |seed: usize| -> Vec<f32> {
            (0..width)
                .map(|i| noise(seed + position * width + i))
                .collect()
        };
        cache.layers[0].write(position, &row(0), &row(1 << 20));
    }
    (
        cache,
        (0..HEADS * head_dim).map(|i| 3.0 * noise(i + 77)).collect(),
    )
}

fn attend(level: Level, cache: &LlamaCache, query: &[f32], visible: usize) -> Vec<f32> {
    let mut output = vec![0.0; query.len()];
    level.run(Attention {
        query,
        cache: &cache.layers[0],
        visible,
        branch: &[],
        scores: &mut Vec::new(),
        output: &mut output,
    });
    output
}

/// The textbook formula in double precision.
fn expected(query: &[f32], visible: usize, head_dim: usize) -> Vec<f64> {
    let width = KV_HEADS * head_dim;
    let mut result = Vec::new();
    for (head, query) in query.chunks(head_dim).enumerate() {
        let offset = head / (HEADS / KV_HEADS) * head_dim;
        let weights: Vec<f64> = (0..visible)
            .map(|t| {
                let dot: f64 = (0..head_dim)
                    .map(|d| f64::from(query[d]) * f64::from(noise(t * width + offset + d)))
                    .sum();
                (dot / (head_dim as f64).sqrt()).exp()
            })
            .collect();
        let total: f64 = weights.iter().sum();
        result.extend((0..head_dim).map(|d| {
            let value = |t: usize| f64::from(noise((1 << 20) + t * width + offset + d));
            weights
                .iter()
                .enumerate()
                .map(|(t, w)| w / total * value(t))
                .sum::<f64>()
        }));
    }
    result
}

#[test]
fn matches_the_formula() {
    for head_dim in [8, 32, 40, 64] {
        let (cache, query) = setting(100, head_dim);
        for visible in [1, 2, 15, 16, 17, 33, 100] {
            let found = attend(Level::detect(), &cache, &query, visible);
            for (found, expected) in found.iter().zip(expected(&query, visible, head_dim)) {
                assert!(
                    (f64::from(*found) - expected).abs() < 2e-6,
                    "head_dim {head_dim}, visible {visible}: {found} is not {expected}"
                );
            }
        }
    }
}

#[test]
fn later_positions_change_no_bit() {
    let (mut cache, query) = setting(40, 64);
    let before = attend(Level::detect(), &cache, &query, 23);
    cache.layers[0].write(23, &[9.0; 128], &[9.0; 128]);
    cache.layers[0].write(31, &[9.0; 128], &[f32::NAN; 128]);
    assert_eq!(attend(Level::detect(), &cache, &query, 23), before);
}

#[test]
fn every_level_gives_the_same_bits() {
    let (cache, query) = setting(61, 64);
    let expected = attend(Level::Baseline, &cache, &query, 61);
    for level in Level::all() {
        assert_eq!(attend(level, &cache, &query, 61), expected, "{level:?}");
    }
}
