//! How sure a model is of its next token, read from its unscaled distribution.

use crate::real::{Real, maximum, sum_of};
use crate::simd::kernel;

/// Confidence of one model at one position, read from its unscaled distribution (temperature 1, no cuts),
/// whatever the request samples with (Narasimhan et al., "Faster Cascades via Speculative Decoding",
/// first version, Remark 3).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Confidence<F> {
    /// The largest probability, 0 to 1.
    pub max: F,
    /// The entropy in nats, with 0 ln 0 = 0. Zero where nobody asked for it.
    pub entropy: F,
}

impl<F: Real> Confidence<F> {
    /// The confidence of the distribution `unscaled` (vocab), with its entropy if `entropy`.
    ///
    /// The entropy is that of the normalised distribution, in double precision: what rounding left of a large
    /// vocabulary's mass does not count.
    pub fn of(unscaled: &[F], entropy: bool) -> Self {
        observe(unscaled, entropy)
    }

    /// The same in double precision.
    pub(crate) fn double(self) -> Confidence<f64> {
        Confidence {
            max: self.max.as_f64(),
            entropy: self.entropy.as_f64(),
        }
    }
}

kernel! {
    fn observe<'a, F: Real>(unscaled: &'a [F], entropy: bool) -> Confidence<F> {
        let max = maximum(unscaled);
        if !entropy {
            let entropy = F::zero();
            return Confidence { max, entropy };
        }
        let mass = sum_of(unscaled, F::as_f64);
        // p ln p, and 0 at 0: the smallest normal number stands in for 0 in the logarithm only.
        let negative = sum_of(unscaled, |p| {
            p.as_f64() * p.max(F::min_positive_value()).ln_portable().as_f64()
        });
        let entropy = (mass.ln_portable() - negative / mass).max(0.0);
        Confidence {
            max,
            entropy: F::from_f64(entropy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entropy_is_that_of_the_distribution_however_much_mass_rounding_took() {
        let uniform = [0.25_f64, 0.0, 0.25, 0.25, 0.0, 0.25, 0.0, 0.0, 0.0];
        for (probs, max, support) in [
            (&uniform[..], 0.25, 4.0_f64),
            (&[0.0, 1.0, 0.0], 1.0, 1.0),
            (&[0.375, 0.375, 0.0], 0.375, 2.0),
        ] {
            let found = Confidence::of(probs, true);
            assert_eq!(found.max, max);
            assert!((found.entropy - support.ln()).abs() < 1e-15, "{probs:?}");
            // Nobody asked for it.
            assert_eq!(Confidence::of(probs, false).entropy, 0.0);
        }
        let certain = Confidence::of(&[0.0_f32, 1.0, 0.0], true);
        assert_eq!((certain.max, certain.entropy), (1.0, 0.0));
    }

    #[test]
    fn single_precision_holds_over_a_large_vocabulary() {
        // Flat tails are the worst case: every rounding of a sum goes the same way.
        for (head, tail) in [(0.3_f64, 152_000), (0.0, 152_000), (0.9, 31_999)] {
            let mut exact = vec![(1.0 - head) / f64::from(tail); tail as usize];
            exact.push(head);
            let served: Vec<f32> = exact.iter().map(|&p| p as f32).collect();
            let (exact, served) = (Confidence::of(&exact, true), Confidence::of(&served, true));
            let difference = exact.entropy - f64::from(served.entropy);
            assert!(difference.abs() < 2e-5, "{difference:e}");
        }
    }
}
