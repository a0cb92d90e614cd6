//! The paired bootstrap: how a figure of many requests depends on which requests they were.
//!
//! "An Introduction to the Bootstrap" (Efron, Tibshirani, 1993), §6 and §16; for BLEU, which is no mean over outputs,
//! "Statistical Significance Tests for Machine Translation Evaluation" (Koehn, 2004).

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How many samples are drawn.
const SAMPLES: usize = 1000;

/// Samples of requests, drawn with replacement: the same for all that is compared.
#[derive(Clone, Debug)]
pub(super) struct Bootstrap {
    /// Each has as many as there are requests.
    picks: Vec<Vec<usize>>,
}

impl Bootstrap {
    /// Draws from `repeats` outputs of each of `prompts`, those of a repeat standing together. Outputs of a prompt are drawn
    /// together, as they are alike.
    pub(super) fn new(prompts: usize, repeats: usize, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut sample = || -> Vec<usize> {
            let drawn: Vec<usize> = (0..prompts)
                .map(|_| random.random_range(0..prompts))
                .collect();
            let repeats = 0..repeats;
            let of_repeat = |repeat| drawn.iter().map(move |pick| repeat * prompts + pick);
            repeats.flat_map(of_repeat).collect()
        };
        Self {
            picks: (0..SAMPLES).map(|_| sample()).collect(),
        }
    }

    /// Returns how likely a difference at least so large is if there is none: two-sided, 1 where nothing differs.
    pub(super) fn p(&self, difference: impl Fn(&[usize]) -> f64) -> f64 {
        let (mut below, mut above) = (0, 0);
        for picks in &self.picks {
            let difference = difference(picks);
            // What is no number counts for both sides.
            below += usize::from(difference <= 0.0 || difference.is_nan());
            above += usize::from(difference >= 0.0 || difference.is_nan());
        }
        let rarer = below.min(above) + 1;
        (2.0 * rarer as f64 / (SAMPLES + 1) as f64).min(1.0)
    }

    /// Returns the standard error of a figure.
    pub(super) fn error(&self, figure: impl Fn(&[usize]) -> f64) -> f64 {
        let figures: Vec<f64> = self.picks.iter().map(|picks| figure(picks)).collect();
        let mean = figures.iter().sum::<f64>() / SAMPLES as f64;
        let squares = figures.iter().map(|it| (it - mean).powi(2));
        (squares.sum::<f64>() / (SAMPLES - 1) as f64).sqrt()
    }
}

/// A ratio of two sums over requests: calls a token, time a token.
#[derive(Clone, Debug)]
pub(super) struct Ratio {
    /// One for each request, above and below the line.
    pub(super) parts: Vec<[f64; 2]>,
}

impl Ratio {
    /// Returns the ratio over the requests at `picks`; 0 where there is nothing below the line.
    pub(super) fn of(&self, picks: &[usize]) -> f64 {
        let sum = |side: usize| -> f64 { picks.iter().map(|&pick| self.parts[pick][side]).sum() };
        let below = sum(1);
        if below > 0.0 { sum(0) / below } else { 0.0 }
    }

    /// Returns the ratio over all requests.
    pub(super) fn whole(&self) -> f64 {
        self.of(&whole(self.parts.len()))
    }
}

/// Returns each of `count` requests once.
pub(super) fn whole(count: usize) -> Vec<usize> {
    (0..count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(values: &[f64], picks: &[usize]) -> f64 {
        picks.iter().map(|&pick| values[pick]).sum::<f64>() / picks.len() as f64
    }

    #[test]
    fn what_differs_shows_and_what_does_not_shows_nothing() {
        let bootstrap = Bootstrap::new(40, 1, 3);
        let noise: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 40) - 19.5).collect();
        let shifted: Vec<f64> = noise.iter().map(|it| it + 10.0).collect();
        assert!(bootstrap.p(|picks| mean(&noise, picks)) > 0.5);
        // Ten is more than five standard errors.
        assert!(bootstrap.p(|picks| mean(&shifted, picks)) < 0.01);
        assert!(bootstrap.p(|picks| -mean(&shifted, picks)) < 0.01);
        assert_eq!(bootstrap.p(|_| 0.0), 1.0);
        // Of 40 numbers in steps of 1 the deviation is 11.54; that of their mean 1.825.
        let error = bootstrap.error(|picks| mean(&noise, picks));
        assert!((error - 1.825).abs() < 0.2, "{error}");
    }

    #[test]
    fn outputs_of_a_prompt_are_drawn_together() {
        let bootstrap = Bootstrap::new(5, 3, 0);
        for picks in &bootstrap.picks {
            assert_eq!(picks.len(), 15);
            for index in 0..5 {
                assert_eq!(picks[5 + index], 5 + picks[index]);
                assert_eq!(picks[10 + index], 10 + picks[index]);
            }
        }
    }

    #[test]
    fn a_ratio_weighs_its_requests() {
        let ratio = Ratio {
            parts: vec![[1.0, 4.0], [3.0, 4.0], [0.0, 0.0]],
        };
        assert_eq!(ratio.whole(), 0.5);
        assert_eq!(ratio.of(&[1, 1]), 0.75);
        assert_eq!(ratio.of(&[2]), 0.0);
    }
}
