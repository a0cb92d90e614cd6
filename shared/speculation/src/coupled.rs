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

#[cfg(test)]
mod tests {
    use super::*;

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
