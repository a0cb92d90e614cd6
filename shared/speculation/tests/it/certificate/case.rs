//! Random rows, what an engine returns of them, and sampling parameters of every kind.

use half::bf16;
use speculation::TokenId;
use speculation::certificate::{KeyedUniforms, NoiseRanking, PartialRow, TokenUniforms, must_ask};
use speculation::history::History;
use speculation::logprobs::Likely;
use speculation::noise::Noise;
use speculation::pipeline::Pipeline;
use speculation::sampling::SamplingParams;

use super::random::Random;

/// Output position of every case.
pub(crate) const POSITION: u32 = 3;

/// A row and what is asked of it.
pub(crate) struct Case {
    pub(crate) logprobs: Vec<f64>,
    pub(crate) mass_error: f64,
    pub(crate) params: SamplingParams,
    pub(crate) history: History,
    pub(crate) noise: Noise,
    /// Tokens of the draft distribution and their probabilities, ascending by token.
    pub(crate) draft: Vec<(TokenId, f64)>,
}

impl Case {
    /// Case `number` with at most `most_tokens` in the vocabulary.
    pub(crate) fn new(number: u64, most_tokens: usize) -> Self {
        let mut random = Random::new(number);
        let vocab = 2 + random.below(most_tokens - 1);
        let logprobs = logprobs(&mut random, vocab);
        let mass: f64 = logprobs.iter().map(|logprob| logprob.exp()).sum();
        let (params, history) = loop {
            let params = params(&mut random, vocab);
            if params.validate(vocab as u32).is_ok() {
                let output: Vec<TokenId> = (0..random.below(6))
                    .map(|_| random.below(vocab) as TokenId)
                    .collect();
                break (params.clone(), History::new(&params, &[0], &output));
            }
        };
        Self {
            mass_error: (mass - 1.0).abs() * 1.001 + 1e-9,
            draft: draft(&mut random, &logprobs),
            logprobs,
            params,
            history,
            noise: Noise::new(number, 0),
        }
    }

    pub(crate) fn vocab(&self) -> usize {
        self.logprobs.len()
    }

    /// The sampling distribution by the shipped pipeline on the whole row; none where nothing may be drawn.
    pub(crate) fn probs(&self) -> Option<Vec<f64>> {
        let mut row = self.logprobs.clone();
        let mut pipeline = Pipeline::new(self.params.clone());
        pipeline.probs(&mut row, &self.history, POSITION).ok()?;
        Some(row)
    }

    pub(crate) fn ranking(&self, noise: Noise, count: usize) -> NoiseRanking<KeyedUniforms> {
        let position = POSITION;
        NoiseRanking::new(KeyedUniforms { noise, position }, self.vocab(), count)
    }

    pub(crate) fn whole(&self) -> PartialRow {
        PartialRow::whole(&self.logprobs, self.mass_error).expect("a row")
    }

    /// Returns the part of a row that an engine gives when it is asked for the `top` most likely tokens, the `noise`
    /// tokens of most noise, those that must be known, and the draft distribution's. Which of equals it puts first
    /// depends on `order`.
    pub(crate) fn part<U: TokenUniforms>(
        &self,
        (top, noise): (usize, usize),
        ranking: &NoiseRanking<U>,
        order: u64,
    ) -> PartialRow {
        let likely = |token: TokenId| Likely {
            token,
            logprob: self.logprobs[token as usize],
        };
        let mut random = Random::new(order ^ 0xabcd);
        let mut sorted: Vec<(f64, Likely)> = (0..self.vocab() as TokenId)
            .map(|token| (random.uniform(), likely(token)))
            .collect();
        sorted.sort_by(|(tie, a), (other, b)| {
            b.logprob.total_cmp(&a.logprob).then(tie.total_cmp(other))
        });
        let top: Vec<Likely> = sorted.iter().take(top).map(|&(_, likely)| likely).collect();
        let mut asked: Vec<TokenId> = ranking.tokens().take(noise).collect();
        asked.extend(must_ask(&self.params, &self.history, 64));
        asked.extend(self.draft.iter().map(|&(token, _)| token));
        asked.sort_unstable();
        asked.dedup();
        let asked: Vec<Likely> = asked.into_iter().map(likely).collect();
        PartialRow::new(self.vocab(), top.len(), &top, &asked, self.mass_error).expect("a row")
    }
}

/// Log probabilities as an engine has them: with ties, rounded to bf16 before or after the softmax or not at all, in
/// single precision, some of them without mass.
pub(crate) fn logprobs(random: &mut Random, vocab: usize) -> Vec<f64> {
    let scale = random.between(0.2, 5.0);
    let kind = random.below(4);
    let values = 1 + random.below(4);
    let masked = if random.happens(0.2) { 0.3 } else { 0.0 };
    let mut logits: Vec<f64> = (0..vocab)
        .map(|_| {
            if random.happens(masked) {
                return f64::NEG_INFINITY;
            }
            match kind {
                0 => random.below(values) as f64 * scale,
                1 => -random.uniform().ln() * scale,
                _ => random.normal() * scale,
            }
        })
        .collect();
    // At least one has mass.
    let certain = random.below(vocab);
    logits[certain] = logits[certain].max(scale);
    let rounding = random.below(3);
    if rounding == 1 {
        for logit in &mut logits {
            *logit = bf16::from_f64(*logit).to_f64();
        }
    }
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mass: f64 = logits.iter().map(|logit| (logit - largest).exp()).sum();
    let normaliser = largest + mass.ln();
    let rounded = |logit: f64| {
        let logprob = logit - normaliser;
        if rounding == 2 {
            bf16::from_f64(logprob).to_f64()
        } else {
            f64::from(logprob as f32)
        }
    };
    logits.into_iter().map(rounded).collect()
}

fn params(random: &mut Random, vocab: usize) -> SamplingParams {
    let temperatures = [0.0, 0.1, 0.3, 0.7, 0.7, 1.0, 1.0, 1.0, 1.4, 4.0];
    let mut params = SamplingParams {
        temperature: temperatures[random.below(temperatures.len())],
        ..Default::default()
    };
    let some = |random: &mut Random, most: usize| -> Vec<TokenId> {
        let count = 1 + random.below(most.min(vocab));
        (0..count).map(|_| random.below(vocab) as TokenId).collect()
    };
    // Half of the rows are cut or changed in one way, and some of the others in several.
    let changes = [0, 1, 1, 2, 4][random.below(5)];
    for _ in 0..changes {
        match random.below(9) {
            0 => params.top_k = 1 + random.below(vocab + 1) as u32,
            1 | 2 => params.top_p = random.between(0.05, 1.0) as f32,
            3 => params.min_p = [1.0, random.between(0.0, 0.4) as f32][random.below(2)],
            4 => params.banned_tokens = some(random, 8),
            5 => {
                let tokens = some(random, 5).into_iter();
                params.logit_bias = tokens
                    .map(|token| (token, random.between(-3.0, 2.0) as f32))
                    .collect();
            }
            6 => {
                params.presence_penalty = random.between(-0.7, 2.0) as f32;
                params.frequency_penalty = random.between(-0.5, 1.0) as f32;
            }
            7 => params.allowed_tokens = some(random, 90),
            _ => {
                params.end_tokens = some(random, 2);
                params.min_tokens = random.below(8) as u32;
            }
        }
    }
    params
}

/// A draft distribution over a few tokens, mostly likely ones.
pub(crate) fn draft(random: &mut Random, logprobs: &[f64]) -> Vec<(TokenId, f64)> {
    let count = 1 + random.below(8);
    let mut tokens: Vec<TokenId> = (0..count)
        .map(|_| {
            let mut pick = || random.below(logprobs.len());
            let (one, other) = (pick(), pick());
            let likelier = if logprobs[one] > logprobs[other] {
                one
            } else {
                other
            };
            likelier as TokenId
        })
        .collect();
    tokens.sort_unstable();
    tokens.dedup();
    let near = random.happens(0.5);
    let weights: Vec<f64> = tokens
        .iter()
        .map(|&token| {
            let likeness = if near {
                logprobs[token as usize].exp() + 1e-3
            } else {
                1.0
            };
            likeness * random.between(0.5, 1.5)
        })
        .collect();
    let total: f64 = weights.iter().sum();
    let probs = weights.into_iter().map(|weight| weight / total);
    tokens.into_iter().zip(probs).collect()
}
