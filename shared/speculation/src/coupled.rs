//! Gumbel-coupled choice: drafter and verifier draw with the same noise.
//!
//! Daliri, Musco, Suresh, "Coupling without Communication and Drafter-Invariant Speculative
//! Decoding" (2024). A side with distribution f chooses `argmax_v (ln f(v) + G_v)` with Gumbel noise
//! `G_v = -ln E_v`, `E_v = -ln u_v`, which is `argmin_v E_v / f(v)` over the support: an exact
//! sample of f. Two sides with near distributions and equal noise mostly choose the same token.

use crate::TokenId;
use crate::noise::Noise;
use crate::philox::LANES;
use crate::real::Real;
use crate::simd::kernel;

kernel! {
    /// The choice of a side with distribution `probs` (vocab) at output position `position`; ties go to the
    /// lowest id. A one-hot distribution gives its token.
    pub fn choice<'a, F: Real>(probs: &'a [F], noise: &'a Noise, position: u32) -> TokenId {
        let mut best = (f64::INFINITY, 0);
        for (block, masses) in probs.chunks(LANES).enumerate() {
            if masses.iter().all(|&mass| mass == F::zero()) {
                continue;
            }
            let first = (block * LANES) as u32;
            let uniforms = noise.coupled(position, first);
            // -ln u >= 1 - u, so the logarithm is needed only where this bound undercuts the best;
            // after the first few blocks that is rare.
            let undercuts = |(&mass, &u): (&F, &f64)| 1.0 - u < best.0 * mass.as_f64();
            if !masses
                .iter()
                .zip(&uniforms)
                .fold(false, |any, lane| any | undercuts(lane))
            {
                continue;
            }
            for (lane, (&mass, u)) in masses.iter().zip(uniforms).enumerate() {
                let mass = mass.as_f64();
                if mass > 0.0 && 1.0 - u < best.0 * mass {
                    let score = u.ln_portable() / -mass;
                    if score < best.0 {
                        best = (score, first + lane as u32);
                    }
                }
            }
        }
        best.1
    }
}

/// The probability that sides with distributions `draft` and `target` (vocab) choose the same token:
/// `Σ_j 1 / Σ_i max(π_i/π_j, q_i/q_j)` over tokens both may draw. Lies between
/// `(1 - TV)/(1 + TV)` and `1 - TV`. O(V log V).
pub fn acceptance<F: Real>(draft: &[F], target: &[F]) -> F {
    // With r = π/q, the sum for j is (Σ_{r_i >= r_j} π_i + r_j Σ_{r_i < r_j} q_i) / π_j.
    let mut tokens: Vec<(F, F, F)> = draft
        .iter()
        .zip(target)
        .filter(|&(&q, &pi)| q > F::zero() || pi > F::zero())
        .map(|(&q, &pi)| (if q > F::zero() { pi / q } else { F::infinity() }, q, pi))
        .collect();
    tokens.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(std::cmp::Ordering::Equal));
    let mut target_above = tokens.iter().fold(F::zero(), |mass, token| mass + token.2);
    let mut draft_below = F::zero();
    let mut accepted = F::zero();
    for &(ratio, q, pi) in &tokens {
        if q > F::zero() && pi > F::zero() {
            accepted += pi / (target_above + ratio * draft_below);
        }
        target_above -= pi;
        draft_below += q;
    }
    accepted
}

/// The probability that the side with distribution `target` chooses `token`, given that the side with distribution
/// `draft` chose it: `1 / Σ_i max(q_i, π_i q_x / π_x)`, and 0 where `target` gives the token no mass.
/// At most `min(1, π_x / q_x)`; averaged over tokens drawn from `draft` it is [`acceptance`]. For a
/// one-hot draft distribution it is π_x, as for a draft token that was not made with the noise.
pub fn conditional_acceptance<F: Real>(draft: &[F], target: &[F], token: TokenId) -> F {
    let (q, pi) = (
        draft[token as usize].as_f64(),
        target[token as usize].as_f64(),
    );
    if pi <= 0.0 {
        return F::zero();
    }
    let ratio = q / pi;
    let larger = |(&q_i, &pi_i): (&F, &F)| q_i.as_f64().max(pi_i.as_f64() * ratio);
    F::from_f64(1.0 / draft.iter().zip(target).map(larger).sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAFT: [f64; 5] = [0.4, 0.3, 0.2, 0.1, 0.0];
    const TARGET: [f64; 5] = [0.15, 0.35, 0.2, 0.05, 0.25];

    fn acceptance_by_definition(q: &[f64], pi: &[f64]) -> f64 {
        let shared = (0..q.len()).filter(|&j| q[j] > 0.0 && pi[j] > 0.0);
        let larger = |i: usize, j: usize| (pi[i] / pi[j]).max(q[i] / q[j]);
        let all = |j: usize| (0..q.len()).map(|i| larger(i, j)).sum::<f64>();
        shared.map(|j| 1.0 / all(j)).sum()
    }

    #[test]
    fn acceptance_equals_its_definition() {
        let by_definition = acceptance_by_definition(&DRAFT, &TARGET);
        assert!((acceptance(&DRAFT, &TARGET) - by_definition).abs() < 1e-12);
        assert!((acceptance(&TARGET, &TARGET) - 1.0).abs() < 1e-12);
        assert_eq!(acceptance(&[1.0, 0.0], &[0.0, 1.0]), 0.0);
    }

    #[test]
    fn conditional_acceptance_averages_to_acceptance() {
        for (q, pi) in [(DRAFT, TARGET), (TARGET, DRAFT), (TARGET, TARGET)] {
            let given = |token: usize| conditional_acceptance(&q, &pi, token as TokenId);
            let mean: f64 = (0..5).map(|token| q[token] * given(token)).sum();
            assert!((mean - acceptance(&q, &pi)).abs() < 1e-12);
            for token in 0..5 {
                let bound = if q[token] > 0.0 {
                    pi[token] / q[token]
                } else {
                    1.0
                };
                assert!(given(token) <= bound.min(1.0) + 1e-15);
            }
        }
        assert_eq!(conditional_acceptance(&DRAFT, &DRAFT, 4), 0.0);
        let point = [0.0, 1.0, 0.0, 0.0, 0.0];
        assert!((conditional_acceptance(&point, &TARGET, 1) - TARGET[1]).abs() < 1e-15);
    }

    /// 400,000 seeded positions: each frequency within five standard errors, below .004.
    #[test]
    fn choices_follow_the_distribution_and_agree_as_often_as_the_formula_says() {
        let noise = Noise::new(0x5eed, 0);
        let draws = 400_000_u32;
        let mut counts = [0_u32; 5];
        let mut equal = 0_u32;
        for position in 0..draws {
            let chosen = choice(&TARGET, &noise, position);
            counts[chosen as usize] += 1;
            equal += u32::from(chosen == choice(&DRAFT, &noise, position));
        }
        let within = |count: u32, probability: f64| {
            let error = (probability * (1.0 - probability) / f64::from(draws)).sqrt();
            (f64::from(count) / f64::from(draws) - probability).abs() < 5.0 * error
        };
        for (token, &probability) in TARGET.iter().enumerate() {
            assert!(within(counts[token], probability), "{counts:?}");
        }
        let agree = within(equal, acceptance(&DRAFT, &TARGET));
        assert!(agree, "{equal} of {draws}");
    }

    #[test]
    fn a_one_hot_distribution_gives_its_token() {
        let mut probs = [0.0_f32; 100];
        probs[37] = 1.0;
        assert!((0..100).all(|position| choice(&probs, &Noise::new(3, 0), position) == 37));
    }

    #[test]
    fn the_bound_that_spares_logarithms_changes_nothing() {
        let noise = Noise::new(11, 0);
        let probs: Vec<f64> = (1..=64).map(|v| f64::from(v) / 2080.0).collect();
        for position in 0..500 {
            let race = |v: u32| -noise.coupled(position, v)[0].ln_portable() / probs[v as usize];
            let plain = (0..64).min_by(|&a, &b| race(a).total_cmp(&race(b)));
            assert_eq!(plain, Some(choice(&probs, &noise, position)));
        }
    }
}
