//! Cascades of drafters.

mod coupled;
mod ewif;
mod exact;
mod golden;
mod greedy;
mod limits;
mod models;
mod served;

use std::sync::Arc;

use speculation::cascade::CascadeConfig;

/// The cascade of these increments, without Max-Gram or with it, which proposes `mag_tokens`.
pub(crate) fn config(
    k: &[&[u32]],
    max_gram: bool,
    lenience: f64,
    mag_tokens: u32,
) -> Arc<CascadeConfig> {
    let k: Vec<Vec<u32>> = k.iter().map(|row| row.to_vec()).collect();
    let config = CascadeConfig::new(k.len(), max_gram, k, lenience, mag_tokens);
    Arc::new(config.expect("a cascade"))
}

/// Every matrix of `drafts` drafts with entries up to `most` that a cascade takes.
pub(crate) fn every_k(drafts: usize, most: u32) -> Vec<Vec<Vec<u32>>> {
    let places = drafts * (drafts + 1) / 2;
    let count = (most + 1).pow(places as u32);
    let matrix = |mut number: u32| {
        let mut k = vec![vec![0; drafts]; drafts];
        for row in 0..drafts {
            for entry in &mut k[row][row..] {
                *entry = number % (most + 1);
                number /= most + 1;
            }
        }
        k
    };
    (0..count)
        .map(matrix)
        .filter(|k| CascadeConfig::new(drafts, true, k.clone(), 1.0, 1).is_ok())
        .collect()
}
