//! Both distributions of a row at once: the one to sample from, and the one a model's confidence is read from.

use super::{DistributionError, Pipeline, softmax};
use crate::confidence::Confidence;
use crate::history::History;
use crate::real::Real;
use crate::target::Needs;

/// What is wanted of a row beside its sampling distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// The largest unscaled probability.
    pub max: bool,
    /// The entropy of the unscaled distribution.
    pub entropy: bool,
    /// The unscaled distribution, where it is another than the sampling distribution.
    pub unscaled: bool,
}

/// What the pipeline computed of a row beside its sampling distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observed<F> {
    /// Confidence of the unscaled distribution, if its maximum or entropy was wanted.
    pub confidence: Option<Confidence<F>>,
    /// Whether the caller's scratch row holds the unscaled distribution. If not, and it was wanted, the
    /// sampling distribution is the unscaled distribution.
    pub unscaled: bool,
}

impl Want {
    /// What a target distribution that needs `needs` wants of the target model.
    pub fn of_target(needs: Needs) -> Self {
        Self {
            max: needs.max,
            entropy: needs.entropy,
            unscaled: needs.target_unscaled,
        }
    }
}

impl Pipeline {
    /// Like [`Pipeline::probs`], and computes what `want` names of the unscaled distribution (temperature 1, no
    /// cuts) of the same row. `unscaled` is scratch that the caller keeps; it is resized here. Nothing is
    /// computed twice where the two distributions are one.
    ///
    /// # Errors
    /// If the row holds NaN or +inf, or no token is left.
    pub fn distributions<F: Real>(
        &mut self,
        row: &mut [F],
        unscaled: &mut Vec<F>,
        want: Want,
        history: &History,
        position: u32,
    ) -> Result<Observed<F>, DistributionError> {
        let best = self.prepare(row, history, position)?;
        let confidence =
            |probs: &[F]| (want.max || want.entropy).then(|| Confidence::of(probs, want.entropy));
        if self.params.temperature == 1.0 {
            softmax(row, row[best], F::one());
            let seen = Observed {
                confidence: confidence(row),
                unscaled: want.unscaled && self.params.cuts(),
            };
            if seen.unscaled {
                unscaled.clear();
                unscaled.extend_from_slice(row);
            }
            self.cut(row, best);
            return Ok(seen);
        }
        let mut seen = Observed::default();
        if want != Want::default() {
            unscaled.clear();
            unscaled.extend_from_slice(row);
            softmax(unscaled, row[best], F::one());
            seen.confidence = confidence(unscaled);
            seen.unscaled = true;
        }
        self.sampling(row, best);
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::SamplingParams;

    const ROW: [f64; 5] = [0.5, 2.0, -1.0, f64::NEG_INFINITY, 1.25];

    fn settings() -> Vec<SamplingParams> {
        let base = SamplingParams {
            logit_bias: vec![(2, 0.75)],
            ..Default::default()
        };
        let cut = SamplingParams {
            top_p: 0.75,
            ..base.clone()
        };
        let hot = SamplingParams {
            temperature: 1.5,
            ..cut.clone()
        };
        let greedy = SamplingParams {
            temperature: 0.0,
            ..base.clone()
        };
        vec![base, cut, hot, greedy]
    }

    const MAX: u32 = 1;
    const ENTROPY: u32 = 2;
    const UNSCALED: u32 = 4;

    fn want(bits: u32) -> Want {
        Want {
            max: bits & MAX != 0,
            entropy: bits & ENTROPY != 0,
            unscaled: bits & UNSCALED != 0,
        }
    }

    #[test]
    fn both_distributions_are_those_computed_apart() {
        let none = History::default();
        for params in settings() {
            let mut pipeline = Pipeline::new(params);
            let mut probs = ROW;
            pipeline
                .probs(&mut probs, &none, 0)
                .expect("a distribution");
            let mut plain = ROW;
            let best = pipeline.prepare(&mut plain, &none, 0).expect("in order");
            let max = plain[best];
            softmax(&mut plain, max, 1.0);
            for want in (0..8).map(want) {
                let (mut row, mut scratch) = (ROW, vec![9.0; 7]);
                let seen = pipeline
                    .distributions(&mut row, &mut scratch, want, &none, 0)
                    .expect("distributions");
                assert_eq!(row, probs);
                let requested = want.max || want.entropy;
                let expected = requested.then(|| Confidence::of(&plain, want.entropy));
                assert_eq!(seen.confidence, expected);
                if seen.unscaled {
                    assert_eq!(scratch, plain);
                } else if want.unscaled {
                    assert_eq!(row.as_slice(), plain);
                }
            }
        }
    }

    #[test]
    fn one_distribution_is_not_computed_twice() {
        let none = History::default();
        let held: Vec<bool> = settings()
            .into_iter()
            .map(|params| {
                let (mut row, mut scratch, want) = (ROW, Vec::new(), want(UNSCALED));
                let seen =
                    Pipeline::new(params).distributions(&mut row, &mut scratch, want, &none, 0);
                seen.expect("distributions").unscaled
            })
            .collect();
        assert_eq!(held, [false, true, true, true]);
    }

    #[test]
    fn each_cut_that_is_set_makes_the_distributions_differ() {
        let changes: [fn(&mut SamplingParams); 4] = [
            |_| {},
            |params| params.top_k = 2,
            |params| params.top_p = 0.9,
            |params| params.min_p = 0.1,
        ];
        let cuts = changes.map(|change| {
            let mut params = SamplingParams::default();
            change(&mut params);
            params.cuts()
        });
        assert_eq!(cuts, [false, true, true, true]);
    }

    #[test]
    fn of_the_target_model_is_wanted_what_is_needed_of_it() {
        let sure = Needs {
            max: true,
            draft_unscaled: true,
            ..Default::default()
        };
        let flat = Needs {
            entropy: true,
            target_unscaled: true,
            ..Default::default()
        };
        assert_eq!(Want::of_target(sure), want(MAX));
        assert_eq!(Want::of_target(flat), want(ENTROPY | UNSCALED));
    }
}
