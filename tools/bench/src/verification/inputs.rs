//! Distributions to measure on: heavy-tailed, and the draft model near the target model.

use speculation::history::History;
use speculation::noise::{InnerCall, Noise, Purpose};
use speculation::pipeline::Pipeline;
use speculation::sampling::SamplingParams;

/// Largest vocabulary: a few times what any tokenizer has.
pub(super) const MOST_VOCAB: usize = 1 << 20;

/// Draft tokens of a block.
pub(super) const DRAFTS: usize = 4;

/// Positions of a block: its draft tokens, and the one after them.
pub(super) const POSITIONS: usize = DRAFTS + 1;

/// How fast a logit falls with the logarithm of its rank: from near flat to sure, as positions of
/// a text are.
const EXPONENTS: [f64; 4] = [1.1, 1.4, 1.8, 2.4];

/// Standard deviation of a logit around what its rank says.
const SCATTER: f64 = 1.0;

/// Standard deviation of the draft model's logit around the target's.
const APART: f64 = 0.7;

/// The rows of some blocks, (blocks, POSITIONS, vocab) each.
pub(super) struct VerificationInputs {
    pub(super) vocab: usize,
    pub(super) blocks: usize,
    /// The target's logits.
    pub(super) logits: Vec<f32>,
    /// The target's distributions.
    pub(super) target: Vec<f32>,
    /// The draft model's distributions.
    pub(super) draft: Vec<f32>,
    /// Rows of one block, to be overwritten.
    pub(super) work: Vec<f32>,
    /// Temperature 1, nothing cut.
    pub(super) pipeline: Pipeline,
}

impl VerificationInputs {
    /// `blocks` blocks over `vocab` tokens: always the same.
    pub(super) fn new(vocab: usize, blocks: usize) -> Self {
        let mut pipeline = Pipeline::new(SamplingParams::default());
        let rows = blocks * POSITIONS;
        let (mut logits, mut draft) = (Vec::new(), Vec::new());
        for row in 0..rows {
            let mut scatter = Gaussian::new(row as u64, 0);
            let mut apart = Gaussian::new(row as u64, 1);
            let exponent = EXPONENTS[row % EXPONENTS.len()];
            for rank in ranks(vocab, row as u64) {
                let zipf = -exponent * f64::from(rank + 1).ln();
                let logit = zipf + SCATTER * scatter.next();
                logits.push(logit as f32);
                draft.push((logit + APART * apart.next()) as f32);
            }
        }
        let mut target = logits.clone();
        for row in target.chunks_mut(vocab).chain(draft.chunks_mut(vocab)) {
            softmax(&mut pipeline, row);
        }
        Self {
            vocab,
            blocks,
            logits,
            target,
            draft,
            work: vec![0.0; POSITIONS * vocab],
            pipeline,
        }
    }

    /// Σ min(q, p), mean over the rows: the share of draft tokens that token verification keeps.
    pub(super) fn overlap(&self) -> f64 {
        let shared = self.target.iter().zip(&self.draft);
        let shared: f64 = shared.map(|(&p, &q)| f64::from(p.min(q))).sum();
        shared / (self.blocks * POSITIONS) as f64
    }

    /// The rows of `block` among `rows`.
    pub(super) fn of_block<'a>(&self, rows: &'a [f32], block: usize) -> &'a [f32] {
        let size = POSITIONS * self.vocab;
        &rows[block * size..][..size]
    }
}

/// Turns a logits row into its distribution, as a verifier does.
pub(super) fn softmax(pipeline: &mut Pipeline, row: &mut [f32]) {
    let probs = pipeline.probs(row, &History::default(), 0);
    probs.expect("finite logits give a distribution");
}

/// A rank for each token id, in a seeded order: likely tokens stand anywhere in a vocabulary.
fn ranks(vocab: usize, seed: u64) -> Vec<u32> {
    let noise = Noise::new(seed, 2);
    let key = |id: &u32| noise.draw(Purpose::Draft, *id, 0, InnerCall::default());
    let mut ids: Vec<u32> = (0..vocab as u32).collect();
    ids.sort_by_cached_key(|id| key(id).to_bits());
    ids
}

/// Normal deviates from seeded uniforms (Box and Muller 1958, one of each pair).
struct Gaussian {
    noise: Noise,
    drawn: u32,
}

impl Gaussian {
    fn new(seed: u64, stream: u32) -> Self {
        let noise = Noise::new(seed, stream);
        Self { noise, drawn: 0 }
    }

    fn next(&mut self) -> f64 {
        let draw = |purpose| {
            self.noise
                .draw(purpose, self.drawn, 0, InnerCall::default())
        };
        let (radius, angle) = (draw(Purpose::Accept), draw(Purpose::Residual));
        self.drawn += 1;
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_distributions_and_heavy_tailed() {
        let inputs = VerificationInputs::new(4096, 1);
        for row in inputs.target.chunks(4096).chain(inputs.draft.chunks(4096)) {
            let mass: f32 = row.iter().sum();
            assert!((mass - 1.0).abs() < 1e-4, "{mass}");
            let mut sorted = row.to_vec();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let head: f32 = sorted[..32].iter().sum();
            assert!((0.3..0.9999).contains(&head), "{head}");
        }
        assert!(
            (0.55..0.95).contains(&inputs.overlap()),
            "{}",
            inputs.overlap()
        );
    }

    #[test]
    fn every_token_has_one_rank() {
        let mut ranks = ranks(1000, 5);
        assert_ne!(ranks[..10], (0..10).collect::<Vec<_>>());
        ranks.sort_unstable();
        assert_eq!(ranks, (0..1000).collect::<Vec<_>>());
    }
}
