//! The canonical order of all sums, one query and one number after the other.

use half::f16;

use super::{HEADS, KV_HEADS, key, query, value};
use crate::{
    attention::{AttentionScoring, CHUNK, exponential::exponential},
    cache::KvFormat,
};

/// Attention of one query head over keys and values by position.
trait Products {
    /// The product of the query with the key at `position`.
    fn score(&self, position: usize) -> f32;

    /// The sums of the values from position `first` on times `weights`.
    fn mix(&self, first: usize, weights: &[f32]) -> Vec<f32>;
}

/// The result of row `row`, of keys and values that are held in `format`. `slots` holds the slot of each position.
pub(super) fn canonical(
    format: KvFormat,
    row: usize,
    slots: &[usize],
    head_dim: usize,
    scoring: AttentionScoring,
) -> Vec<f32> {
    let query = query(row, head_dim);
    let of_head = |(head, query): (usize, &[f32])| {
        let first = head / (HEADS / KV_HEADS) * head_dim;
        let held = |number: fn(usize, usize, usize) -> f32| -> Vec<Vec<f32>> {
            let head = |slot: &usize| {
                (first..first + head_dim)
                    .map(|i| number(*slot, i, head_dim))
                    .collect()
            };
            slots.iter().map(head).collect()
        };
        let (keys, values) = (held(key), held(value));
        match format {
            KvFormat::Q8_0 => {
                let query = Block::all(query, |scale| scale);
                let blocks = |rows: Vec<Vec<f32>>| {
                    let half = |scale| f16::from_f32(scale).to_f32();
                    rows.iter().map(|row| Block::all(row, half)).collect()
                };
                let (keys, values) = (blocks(keys), blocks(values));
                attend(
                    &Bytes {
                        query,
                        keys,
                        values,
                    },
                    slots.len(),
                    scoring,
                )
            }
            KvFormat::F16 | KvFormat::F32 => {
                let rounded = |number| match format {
                    KvFormat::F16 => f16::from_f32(number).to_f32(),
                    _ => number,
                };
                let rows = |rows: Vec<Vec<f32>>| {
                    let row = |row: Vec<f32>| row.into_iter().map(rounded).collect();
                    rows.into_iter().map(row).collect()
                };
                let (query, keys, values) = (query.to_vec(), rows(keys), rows(values));
                attend(
                    &Numbers {
                        query,
                        keys,
                        values,
                    },
                    slots.len(),
                    scoring,
                )
            }
        }
    };
    query
        .chunks(head_dim)
        .enumerate()
        .flat_map(of_head)
        .collect()
}

/// Attention to the last of `len` positions' view: chunk by chunk, then over the chunks.
fn attend(products: &impl Products, len: usize, scoring: AttentionScoring) -> Vec<f32> {
    let first = (scoring.window).map_or(0, |window| len.saturating_sub(window));
    let score = |position: usize| {
        let score = products.score(position) * scoring.scale;
        (scoring.softcap).map_or(score, |cap| cap * crate::activation::tanh(score / cap))
    };
    let (mut largest, mut total) = (f32::MIN, 0.0_f32);
    let mut sums: Vec<f32> = Vec::new();
    for chunk in first / CHUNK..len.div_ceil(CHUNK) {
        let positions = first.max(chunk * CHUNK)..len.min((chunk + 1) * CHUNK);
        let scores: Vec<f32> = positions.clone().map(score).collect();
        let own = scores.iter().copied().fold(f32::MIN, f32::max);
        let weights: Vec<f32> = scores
            .iter()
            .map(|score| exponential(score - own))
            .collect();
        let mut lanes = [0.0_f32; 16];
        for (position, weight) in positions.clone().zip(&weights) {
            lanes[position % 16] += weight;
        }
        let both = own.max(largest);
        let (before, now) = (exponential(largest - both), exponential(own - both));
        largest = both;
        total = total * before + crate::norm::sum_lanes(lanes) * now;
        let more = products.mix(positions.start, &weights);
        sums.resize(more.len(), 0.0);
        for (sum, more) in sums.iter_mut().zip(more) {
            *sum = *sum * before + more * now;
        }
    }
    sums.into_iter().map(|sum| sum / total).collect()
}

/// What is held as numbers: chains of fused multiply-adds, values over even and odd positions apart.
struct Numbers {
    query: Vec<f32>,
    keys: Vec<Vec<f32>>,
    values: Vec<Vec<f32>>,
}

impl Products for Numbers {
    fn score(&self, position: usize) -> f32 {
        let both = self.query.iter().zip(&self.keys[position]);
        both.fold(0.0, |sum, (q, k)| q.mul_add(*k, sum))
    }

    fn mix(&self, first: usize, weights: &[f32]) -> Vec<f32> {
        let of_dimension = |d: usize| {
            let mut sums = [0.0_f32; 2];
            for (position, weight) in (first..).zip(weights) {
                let sum = &mut sums[position % 2];
                *sum = weight.mul_add(self.values[position][d], *sum);
            }
            sums[0] + sums[1]
        };
        (0..self.query.len()).map(of_dimension).collect()
    }
}

/// What is held in blocks of 32 whole numbers with a scale.
struct Bytes {
    query: Vec<Block>,
    keys: Vec<Vec<Block>>,
    values: Vec<Vec<Block>>,
}

struct Block {
    scale: f32,
    quants: Vec<i64>,
}

impl Block {
    /// The blocks of `numbers`, with rounded scales.
    fn all(numbers: &[f32], rounded: impl Fn(f32) -> f32) -> Vec<Self> {
        let of_block = |numbers: &[f32]| {
            let largest = numbers.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
            let quants = numbers
                .iter()
                .map(|x| (x * (127.0 / largest)).round_ties_even() as i64);
            Self {
                scale: rounded(largest / 127.0),
                quants: quants.collect(),
            }
        };
        numbers.chunks(32).map(of_block).collect()
    }
}

impl Products for Bytes {
    fn score(&self, position: usize) -> f32 {
        let both = self.query.iter().zip(&self.keys[position]);
        both.fold(0.0, |total, (query, key)| {
            let products = query.quants.iter().zip(&key.quants).map(|(q, k)| q * k);
            let products = products.sum::<i64>() as f32 * key.scale;
            query.scale.mul_add(products, total)
        })
    }

    fn mix(&self, first: usize, weights: &[f32]) -> Vec<f32> {
        let of_block = |block: usize| {
            let values: Vec<&Block> = self.values[first..]
                .iter()
                .map(|value| &value[block])
                .collect();
            let shares = weights
                .iter()
                .zip(&values)
                .map(|(weight, value)| weight * value.scale);
            let shares: Vec<f32> = shares.collect();
            let largest = shares.iter().copied().fold(0.0, f32::max);
            let rounded = |share: &f32| (share * (16_383.0 / largest)).round_ties_even() as i64;
            let shares: Vec<i64> = shares.iter().map(rounded).collect();
            let of_dimension = move |d: usize| {
                let products = shares
                    .iter()
                    .zip(&values)
                    .map(|(share, value)| share * value.quants[d]);
                products.sum::<i64>() as f32 * (largest / 16_383.0)
            };
            (0..self.query[block].quants.len())
                .map(of_dimension)
                .collect::<Vec<f32>>()
        };
        (0..self.query.len()).flat_map(of_block).collect()
    }
}
