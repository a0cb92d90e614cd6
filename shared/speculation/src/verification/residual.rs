//! The residual `(r π - q)_+` that rejection-type verifications resample from.
//!
//! The joint ratio r of the draft tokens before the position is kept as its natural logarithm: 0
//! in token verification, at most 0 in block verification, any value in greedy block verification.
//! Only the residual's direction matters, so a ratio above 1 divides q instead of multiplying π and
//! nothing overflows.

use crate::real::{Real, sum_of_pairs};
use crate::simd::kernel;

/// The two factors a and b with `a : b = r : 1` and the larger of them 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResidualWeights {
    target: f64,
    draft: f64,
}

impl ResidualWeights {
    /// The factors for a joint ratio of natural logarithm `log_ratio`. Up to a ratio of 1 the
    /// target's factor is the ratio itself.
    pub fn of(log_ratio: f64) -> Self {
        Self {
            target: log_ratio.min(0.0).exp_nonpositive(),
            draft: (-log_ratio).min(0.0).exp_nonpositive(),
        }
    }

    /// `(a π - b q)_+` of one token.
    #[inline(always)]
    pub fn excess<F: Real>(self, target: F, draft: F) -> f64 {
        let excess = self.target * target.as_f64() - self.draft * draft.as_f64();
        if excess > 0.0 { excess } else { 0.0 }
    }
}

kernel! {
    /// `Σ (a π - b q)_+` over the vocabulary, in double precision.
    pub fn excess<'a, F: Real>(weights: ResidualWeights, target: &'a [F], draft: &'a [F]) -> f64 {
        sum_of_pairs(target, draft, |pi, q| weights.excess(pi, q))
    }
}

/// Writes the unnormalised residual `(r π - q)_+` (vocab) for a joint ratio of natural logarithm
/// `log_ratio` over `draft`, which holds q. Where rounding leaves no mass, writes π.
pub fn residual<F: Real>(log_ratio: f64, target: &[F], draft: &mut [F]) {
    if !write_over_draft(ResidualWeights::of(log_ratio), target, draft) {
        draft.copy_from_slice(target);
    }
}

kernel! {
    /// Writes the residual over `draft`; whether it has any mass.
    fn write_over_draft<'a, F: Real>(weights: ResidualWeights, target: &'a [F], draft: &'a mut [F]) -> bool {
        let mut any = false;
        for (&pi, q) in target.iter().zip(draft) {
            *q = F::from_f64(weights.excess(pi, *q));
            any |= *q > F::zero();
        }
        any
    }
}

kernel! {
    /// Writes `(a π - b q)_+ / mass` over `target`, which holds π.
    pub(super) fn residual_over_target<'a, F: Real>(
        weights: ResidualWeights,
        mass: f64,
        target: &'a mut [F],
        draft: &'a [F],
    ) -> () {
        for (pi, &q) in target.iter_mut().zip(draft) {
            *pi = F::from_f64(weights.excess(*pi, q) / mass);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Kernel, Level};

    struct Excess<'a>(ResidualWeights, &'a [f32], &'a [f32]);

    impl Kernel for Excess<'_> {
        type Output = f64;

        #[inline(always)]
        fn run(self) -> f64 {
            let Self(weights, target, draft) = self;
            sum_of_pairs(target, draft, |pi, q| weights.excess(pi, q))
        }
    }

    #[test]
    fn the_residual_is_what_the_target_has_beyond_the_draft() {
        let mut residual_of_nine = [0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let target = [0.2, 0.0, 0.2, 0.0, 0.1, 0.0, 0.1, 0.0, 0.4];
        assert!((excess(ResidualWeights::of(0.0), &target, &residual_of_nine) - 0.8).abs() < 1e-15);
        residual(0.0, &target, &mut residual_of_nine);
        assert_eq!(
            residual_of_nine,
            [0.0, 0.0, 0.2, 0.0, 0.1, 0.0, 0.1, 0.0, 0.4]
        );
    }

    #[test]
    fn ratios_of_any_size_keep_the_direction() {
        for log_ratio in [-3.0, -0.5, 0.0, 0.5, 3.0] {
            let ratio = f64::exp(log_ratio);
            let target = [0.2, 0.3, 0.5];
            let mut draft = [0.7, 0.2, 0.1];
            let expected: Vec<f64> = (target.iter().zip(&draft))
                .map(|(pi, q): (&f64, &f64)| (ratio * pi - q).max(0.0))
                .collect();
            let total: f64 = expected.iter().sum();
            residual(log_ratio, &target, &mut draft);
            let mass: f64 = draft.iter().sum();
            for (found, expected) in draft.iter().zip(&expected) {
                // At e^-3 nothing is left, and the target distribution stands instead.
                let expected = if total > 0.0 {
                    expected / total
                } else {
                    target[0]
                };
                assert!((found / mass - expected).abs() < 1e-15 || total == 0.0);
            }
            assert!(total > 0.0 || draft == target);
        }
        let mut draft = [0.5_f32, 0.5, 0.0];
        residual(2000.0, &[0.25, 0.25, 0.5], &mut draft);
        assert_eq!(draft, [0.25, 0.25, 0.5]);
    }

    #[test]
    fn equal_distributions_leave_the_target_distribution() {
        let mut draft = [0.25_f32, 0.75];
        residual(0.0, &[0.25, 0.75], &mut draft);
        assert_eq!(draft, [0.25, 0.75]);
    }

    #[test]
    fn wide_instructions_change_no_bit() {
        let probs = |seed: u32| -> Vec<f32> {
            (0..1003_u32)
                .map(|v| (v.wrapping_mul(seed) % 977) as f32 / 977.0)
                .collect()
        };
        let (target, draft) = (probs(7919), probs(104_729));
        let weights = ResidualWeights::of(-0.3);
        let served = excess(weights, &target, &draft);
        for level in Level::all() {
            assert_eq!(level.run(Excess(weights, &target, &draft)), served);
        }
    }
}
