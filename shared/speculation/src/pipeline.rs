//! From a logits row to the distribution a token is drawn from: the probability pipeline.
//!
//! Bans, masks, bias, penalties, then temperature, top-k, top-p, min-p, in this order (another order
//! gives other distributions). Drafter and verifier run the same code, so that what the accept test and the
//! residual see is exactly what a token was drawn from.

mod cut;
mod observe;
mod threshold;

pub use observe::{Observed, Want};

use std::sync::Arc;

use crate::TokenId;
use crate::constraint::mask;
use crate::history::History;
use crate::real::{Real, any_nan, argmax, sum_of};
use crate::sampling::SamplingParams;
use crate::simd::kernel;

/// Names the arithmetic from logits to a token, for the numerics fingerprint: top-p by exact masses, draws by
/// masses of blocks.
pub const FAMILY: &str = "laws-2";

/// Why a logits row gives no distribution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DistributionError {
    /// A logit is NaN or +inf: the model, or a message, is broken.
    #[error("logits row holds {what} at token {token}")]
    NotALogit {
        /// The token id.
        token: usize,
        /// What stands there.
        what: &'static str,
    },
    /// The forward gave fewer rows than positions asked for.
    #[error("the model gave no row for the position")]
    NoRow,
    /// A constraint cannot tell which tokens may come.
    #[error("the grammar cannot go on: {0}")]
    Constraint(String),
    /// Bans and masks left no token.
    #[error("no token is left after bans, mask and bias")]
    NoSupport,
}

/// The pipeline of one request, with its scratch.
#[derive(Clone, Debug)]
pub struct Pipeline {
    params: Arc<SamplingParams>,
    scratch: Vec<f64>,
}

impl Pipeline {
    /// A pipeline for parameters that were validated.
    pub fn new(params: impl Into<Arc<SamplingParams>>) -> Self {
        Self {
            params: params.into(),
            scratch: Vec::new(),
        }
    }

    /// Turns the logits `row` (vocab) of output position `position` into its sampling distribution, in
    /// place. At temperature 0 the distribution is one-hot.
    ///
    /// # Errors
    /// If the row holds NaN or +inf, or no token is left.
    pub fn probs<F: Real>(
        &mut self,
        row: &mut [F],
        history: &History,
        position: u32,
    ) -> Result<(), DistributionError> {
        let best = self.prepare(row, history, position)?;
        self.sampling(row, best);
        Ok(())
    }

    /// Adjusts and checks the logits `row`, and gives the index of the largest.
    fn prepare<F: Real>(
        &self,
        row: &mut [F],
        history: &History,
        position: u32,
    ) -> Result<usize, DistributionError> {
        self.adjust(row, history, position)?;
        let best = argmax(row);
        check(row, best)?;
        Ok(best)
    }

    /// From adjusted logits, the largest at `best`, to the sampling distribution.
    fn sampling<F: Real>(&mut self, row: &mut [F], best: usize) {
        if self.params.temperature == 0.0 {
            row.fill(F::zero());
            row[best] = F::one();
            return;
        }
        let max = row[best];
        softmax(row, max, F::from_f32(self.params.temperature));
        self.cut(row, best);
    }

    /// Bans, masks (a list of tokens, a constraint), bias and penalties: what changes single logits.
    ///
    /// # Errors
    /// If a constraint does not tell what may come.
    fn adjust<F: Real>(
        &self,
        row: &mut [F],
        history: &History,
        position: u32,
    ) -> Result<(), DistributionError> {
        let params = &self.params;
        let banned = F::neg_infinity();
        for &token in &params.banned_tokens {
            row[token as usize] = banned;
        }
        if position < params.min_tokens {
            for &token in &params.end_tokens {
                row[token as usize] = banned;
            }
        }
        if !params.allowed_tokens.is_empty() {
            keep_only(row, &params.allowed_tokens);
        }
        if let Some(constraint) = history.constraint() {
            let allowed = constraint
                .allowed()
                .map_err(DistributionError::Constraint)?;
            if let Some(allowed) = allowed {
                mask(row, &allowed, banned);
            }
        }
        for &(token, bias) in &params.logit_bias {
            row[token as usize] += F::from_f32(bias);
        }
        let repetition = F::from_f32(params.repetition_penalty);
        for (token, seen) in history.seen() {
            let logit = &mut row[token as usize];
            if repetition != F::one() {
                *logit = if *logit > F::zero() {
                    *logit / repetition
                } else {
                    *logit * repetition
                };
            }
            if seen.in_output > 0 {
                let count = F::from_f64(f64::from(seen.in_output));
                *logit -= F::from_f32(params.presence_penalty);
                *logit -= F::from_f32(params.frequency_penalty) * count;
            }
        }
        Ok(())
    }
}

/// Masks every token that is not in `allowed`.
fn keep_only<F: Real>(row: &mut [F], allowed: &[TokenId]) {
    let kept: Vec<(usize, F)> = allowed
        .iter()
        .map(|&t| (t as usize, row[t as usize]))
        .collect();
    row.fill(F::neg_infinity());
    for (token, logit) in kept {
        row[token] = logit;
    }
}

fn check<F: Real>(row: &[F], best: usize) -> Result<(), DistributionError> {
    // First whether there is any, without a branch a token.
    if any_nan(row) {
        let token = row
            .iter()
            .position(|logit| logit.is_nan())
            .unwrap_or_default();
        return Err(DistributionError::NotALogit { token, what: "NaN" });
    }
    if row[best] == F::infinity() {
        return Err(DistributionError::NotALogit {
            token: best,
            what: "+inf",
        });
    }
    if row[best] == F::neg_infinity() {
        return Err(DistributionError::NoSupport);
    }
    Ok(())
}

kernel! {
    /// `softmax(row / temperature)` in place, given the row's maximum.
    fn softmax<'a, F: Real>(row: &'a mut [F], max: F, temperature: F) -> () {
        // A division by 1 changes no bit, and costs as much as the exponential.
        if temperature == F::one() {
            for value in row.iter_mut() {
                *value = (*value - max).exp_nonpositive();
            }
        } else {
            for value in row.iter_mut() {
                *value = ((*value - max) / temperature).exp_nonpositive();
            }
        }
        normalise(row);
    }
}

/// Divides `probs` by its sum.
#[inline(always)]
pub(crate) fn normalise<F: Real>(probs: &mut [F]) {
    // In double precision: a large vocabulary's tail would be rounded away.
    let total = F::from_f64(sum_of(probs, Real::as_f64));
    for value in probs.iter_mut() {
        *value /= total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probs(params: SamplingParams, row: &[f64], output: &[TokenId], position: u32) -> Vec<f64> {
        let history = History::new(&params, &[], output);
        let mut row = row.to_vec();
        Pipeline::new(params)
            .probs(&mut row, &history, position)
            .expect("a distribution");
        row
    }

    fn logs(probabilities: &[f64]) -> Vec<f64> {
        probabilities.iter().map(|p| p.ln()).collect()
    }

    fn assert_close(got: &[f64], expected: &[f64]) {
        for (a, b) in got.iter().zip(expected) {
            assert!((a - b).abs() < 1e-7, "{got:?} is not {expected:?}");
        }
    }

    #[test]
    fn temperature_zero_takes_the_lowest_of_the_most_likely() {
        let params = SamplingParams {
            temperature: 0.0,
            ..Default::default()
        };
        assert_eq!(probs(params, &[0.0, 2.0, 2.0], &[], 0), [0.0, 1.0, 0.0]);
    }

    #[test]
    fn cuts_come_in_order_and_renormalise_between() {
        let row = logs(&[0.4, 0.3, 0.2, 0.1]);
        let two = [4.0 / 7.0, 3.0 / 7.0, 0.0, 0.0];
        for (top_k, top_p, min_p, expected) in [
            (2, 1.0, 0.0, two),
            // Of the two kept by top-k the first alone holds 0.571 of the mass; before it held 0.4.
            (2, 0.55, 0.0, [1.0, 0.0, 0.0, 0.0]),
            (0, 1.0, 0.5, [4.0 / 9.0, 3.0 / 9.0, 2.0 / 9.0, 0.0]),
            // top-p first leaves {0.4, 0.3}, then min-p keeps both; the other order would keep one
            // token more for top-p to count.
            (0, 0.7, 0.5, two),
        ] {
            let params = SamplingParams {
                top_k,
                top_p,
                min_p,
                ..Default::default()
            };
            assert_close(&probs(params, &row, &[], 0), &expected);
        }
    }

    #[test]
    fn top_k_keeps_the_lowest_ids_among_equals() {
        let params = SamplingParams {
            top_k: 2,
            ..Default::default()
        };
        let found = probs(params, &[1.0, 1.0, 1.0, 0.0], &[], 0);
        assert_close(&found, &[0.5, 0.5, 0.0, 0.0]);
    }

    #[test]
    fn bans_mask_bias_and_end_tokens() {
        let params = SamplingParams {
            temperature: 0.0,
            banned_tokens: vec![0],
            allowed_tokens: vec![0, 1, 2],
            logit_bias: vec![(1, 1.5)],
            end_tokens: vec![2],
            min_tokens: 1,
            ..Default::default()
        };
        let row = [9.0, 0.0, 2.0, 8.0];
        assert_eq!(probs(params.clone(), &row, &[], 0), [0.0, 1.0, 0.0, 0.0]);
        assert_eq!(probs(params, &row, &[], 1), [0.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn penalties_count_prompt_and_output_apart() {
        let params = SamplingParams {
            temperature: 1.0,
            repetition_penalty: 2.0,
            presence_penalty: 0.25,
            frequency_penalty: 0.5,
            ..Default::default()
        };
        let history = History::new(&params, &[0], &[1, 1]);
        let mut row = [2.0_f64, -1.0, 0.0];
        let adjusted = Pipeline::new(params).adjust(&mut row, &history, 2);
        assert_eq!(adjusted, Ok(()));
        assert_eq!(row, [1.0, -3.25, 0.0]);
    }

    #[test]
    fn what_is_no_logit_is_refused() {
        let mut pipeline = Pipeline::new(SamplingParams::default());
        let none = History::default();
        for at in 0..3 {
            let mut row = [0.0_f32; 3];
            row[at] = f32::NAN;
            let (token, what) = (at, "NaN");
            let error = DistributionError::NotALogit { token, what };
            assert_eq!(pipeline.probs(&mut row, &none, 0), Err(error));
        }
        let mut row = [f32::NEG_INFINITY; 2];
        assert_eq!(
            pipeline.probs(&mut row, &none, 0),
            Err(DistributionError::NoSupport)
        );
    }
}
