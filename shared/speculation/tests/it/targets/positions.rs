//! Random positions: two models' logits and the settings they are sampled with.

use speculation::noise::{InnerCall, Noise, Purpose};
use speculation::sampling::SamplingParams;

use crate::model::Model;

/// A position.
#[derive(Debug)]
pub(crate) struct Position {
    pub(crate) q: Model<f64>,
    pub(crate) p: Model<f64>,
    pub(crate) greedy: bool,
    /// Whether the two models are the same.
    pub(crate) equal: bool,
}

/// Logits of `vocab` tokens by `seed`: anything, or with forbidden tokens, or of three values only,
/// or almost certain.
fn logits(seed: u64, vocab: u32) -> Vec<f64> {
    let uniform = |purpose, v| Noise::new(seed, 0).draw(purpose, v, 0, InnerCall::default());
    let value = |v| {
        let u = uniform(Purpose::Draft, v);
        match seed % 4 {
            0 => 6.0 * u,
            1 if uniform(Purpose::Accept, v) < 0.4 && v > 0 => f64::NEG_INFINITY,
            2 => (3.0 * u).floor(),
            3 if v == 1 => 12.0,
            _ => 3.0 * u,
        }
    };
    (0..vocab).map(value).collect()
}

/// Random positions at temperatures 0, 1/2, 1, 2, cut and uncut: also with equal models, and with
/// models that have no token in common.
pub(crate) fn positions() -> Vec<Position> {
    let mut positions = Vec::new();
    for seed in 0..160_u64 {
        let vocab = 2 + (seed / 4 % 7) as u32;
        let mut small = logits(seed, vocab);
        let mut big = logits(seed * 31 + seed / 16 + 1_000, vocab);
        match seed % 9 {
            7 => big.clone_from(&small),
            8 => {
                let forbidden = f64::NEG_INFINITY;
                small
                    .iter_mut()
                    .step_by(2)
                    .for_each(|logit| *logit = forbidden);
                big.iter_mut()
                    .skip(1)
                    .step_by(2)
                    .for_each(|logit| *logit = forbidden);
                (small[1], big[0]) = (1.0, 1.0);
            }
            _ => {}
        }
        for temperature in [0.0, 0.5, 1.0, 2.0] {
            for (top_k, top_p) in [(0, 1.0), (2, 1.0), (0, 0.75)] {
                let params = SamplingParams {
                    temperature,
                    top_k,
                    top_p,
                    ..Default::default()
                };
                positions.push(Position {
                    q: Model::of(&small, &params),
                    p: Model::of(&big, &params),
                    greedy: temperature == 0.0,
                    equal: small == big,
                });
            }
        }
    }
    positions
}
