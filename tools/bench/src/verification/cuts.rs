//! What cuts and penalties cost beside the softmax that they follow or precede.

use std::cmp::Ordering;
use std::time::{Duration, Instant};

use speculation::TokenId;
use speculation::history::History;
use speculation::pipeline::Pipeline;
use speculation::sampling::SamplingParams;

use super::inputs::{POSITIONS, VerificationInputs, softmax};
use crate::timing::{median, microseconds};

/// Tokens of output that penalties have seen.
const SEEN: usize = 1024;

const TOP_P: f32 = 0.95;

/// A row's way from logits to its distribution.
pub(super) struct RowCut {
    pub(super) name: &'static str,
    /// Softmaxes that it may cost, the one that it contains included.
    pub(super) goal: f64,
    probs: Probs,
}

enum Probs {
    Served(SamplingParams),
    /// Top-p by sorting the whole vocabulary, to compare with.
    Sorted,
}

/// What was measured.
pub(super) struct RowTimes {
    pub(super) softmax_us: f64,
    pub(super) row_us: f64,
    /// Softmaxes that a row costs: the median of the ratios.
    pub(super) ratio: f64,
}

impl RowCut {
    pub(super) fn all() -> Vec<Self> {
        let default = SamplingParams::default;
        let served = |name, goal, params| Self {
            name,
            goal,
            probs: Probs::Served(params),
        };
        vec![
            served(
                "top-p 0.95",
                3.0,
                SamplingParams {
                    top_p: TOP_P,
                    ..default()
                },
            ),
            Self {
                name: "top-p 0.95, by sorting",
                goal: f64::INFINITY,
                probs: Probs::Sorted,
            },
            served(
                "top-k 50",
                2.0,
                SamplingParams {
                    top_k: 50,
                    ..default()
                },
            ),
            served(
                "min-p 0.05",
                2.0,
                SamplingParams {
                    min_p: 0.05,
                    ..default()
                },
            ),
            served(
                "penalties, 1,024 tokens seen",
                2.0,
                SamplingParams {
                    repetition_penalty: 1.1,
                    frequency_penalty: 0.1,
                    ..default()
                },
            ),
        ]
    }

    /// Measures `repeats` times over all rows, block by block between softmaxes of the same rows.
    pub(super) fn measure(&self, inputs: &mut VerificationInputs, repeats: usize) -> RowTimes {
        let params = match &self.probs {
            Probs::Served(params) => params.clone(),
            Probs::Sorted => SamplingParams::default(),
        };
        let seen: Vec<TokenId> = (0..SEEN)
            .map(|i| (i * 7919 % inputs.vocab) as TokenId)
            .collect();
        let history = History::new(&params, &[], &seen);
        let mut pipeline = Pipeline::new(params);
        let mut order = Vec::new();
        let mut probs = |row: &mut [f32]| {
            let made = pipeline.probs(row, &history, 0);
            made.expect("finite logits give a distribution");
            if matches!(self.probs, Probs::Sorted) {
                cut_by_sorting(row, &mut order);
            }
        };
        let mut plain = inputs.pipeline.clone();
        let (mut softmaxes, mut each, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        // The first time fills the caches and counts not.
        for repeat in 0..=repeats {
            let (mut baseline, mut measured) = (Duration::ZERO, Duration::ZERO);
            for block in 0..inputs.blocks {
                baseline += time(inputs, block, |row| softmax(&mut plain, row));
                measured += time(inputs, block, &mut probs);
            }
            if repeat > 0 {
                let rows = (inputs.blocks * POSITIONS) as f64;
                softmaxes.push(microseconds(baseline) / rows);
                each.push(microseconds(measured) / rows);
                ratios.push(microseconds(measured) / microseconds(baseline));
            }
        }
        RowTimes {
            softmax_us: median(softmaxes),
            row_us: median(each),
            ratio: median(ratios),
        }
    }
}

/// How long `probs` takes for the rows of `block`.
fn time(
    inputs: &mut VerificationInputs,
    block: usize,
    mut probs: impl FnMut(&mut [f32]),
) -> Duration {
    let mut work = std::mem::take(&mut inputs.work);
    work.copy_from_slice(inputs.of_block(&inputs.logits, block));
    let began = Instant::now();
    for row in work.chunks_mut(inputs.vocab) {
        probs(row);
    }
    let took = began.elapsed();
    inputs.work = work;
    took
}

/// Top-p as it is defined: in the order of probabilities until they suffice.
fn cut_by_sorting(probs: &mut [f32], order: &mut Vec<u32>) {
    order.clear();
    order.extend(0..probs.len() as u32);
    order.sort_unstable_by(|&a, &b| {
        let by_probability = probs[b as usize].partial_cmp(&probs[a as usize]);
        by_probability.unwrap_or(Ordering::Equal).then(a.cmp(&b))
    });
    let mut mass = 0.0;
    let kept = order.iter().position(|&token| {
        mass += probs[token as usize];
        mass >= TOP_P
    });
    for &token in &order[kept.map_or(order.len(), |last| last + 1)..] {
        probs[token as usize] = 0.0;
    }
    let total: f32 = probs.iter().sum();
    for value in probs {
        *value /= total;
    }
}
