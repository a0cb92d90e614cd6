//! Where rejection-type verification meets randomness.
//!
//! Verification needs two random decisions only: an accept test and a token drawn from a distribution. Served, both
//! come from the counter-based generator; proved, an enumerator takes every branch of the same
//! code with its exact probability.

use crate::TokenId;
use crate::noise::{InnerCall, Noise, Purpose};
use crate::real::{Real, sum_of};
use crate::simd::kernel;

/// Makes the random decisions of one round.
pub trait Chance<F> {
    /// Whether the draft token at `offset` in the round passes a test of probability `ratio`
    /// (a ratio of 1 or more always passes).
    fn accepts(&mut self, offset: u32, ratio: F) -> bool;

    /// A token drawn from `probs` (vocab) for `purpose` at `offset` in the round.
    fn token(&mut self, purpose: Purpose, offset: u32, probs: &[F]) -> TokenId;
}

/// The seeded decisions of one round.
#[derive(Clone, Copy, Debug)]
pub struct RoundChance {
    noise: Noise,
    base_len: u32,
    call: InnerCall,
}

impl RoundChance {
    /// Decisions of the round that starts after `base_len` output tokens.
    pub fn new(noise: Noise, base_len: u32, call: InnerCall) -> Self {
        Self {
            noise,
            base_len,
            call,
        }
    }
}

impl<F: Real> Chance<F> for RoundChance {
    fn accepts(&mut self, offset: u32, ratio: F) -> bool {
        let eta = self
            .noise
            .draw(Purpose::Accept, offset, self.base_len, self.call);
        // Strictly: with `<=` an eta of 0 would accept tokens the target forbids.
        eta < ratio.as_f64()
    }

    fn token(&mut self, purpose: Purpose, offset: u32, probs: &[F]) -> TokenId {
        let u = self.noise.draw(purpose, offset, self.base_len, self.call);
        quantile(probs, u)
    }
}

/// Tokens whose mass is added up together.
const BLOCK: usize = 512;

/// The token at which the cumulated `probs`, which need not be normalised, first exceeds the
/// fraction `u` of its mass. Added up in double precision: in single precision the ends of a large
/// vocabulary would be rounded away.
///
/// The distribution is read once, in blocks; only the block that holds the token is read again, token by token.
fn quantile<F: Real>(probs: &[F], u: f64) -> TokenId {
    let masses = block_masses(probs);
    let goal = u * masses.iter().sum::<f64>();
    let (mut mass, mut chosen) = (0.0, None);
    for (block, &of_block) in masses.iter().enumerate() {
        if of_block > 0.0 {
            chosen = Some((block * BLOCK, mass));
            mass += of_block;
            if mass > goal {
                break;
            }
        }
    }
    let Some((first, mut mass)) = chosen else {
        return 0;
    };
    let mut last = first;
    for (token, probability) in probs[first..].iter().take(BLOCK).enumerate() {
        let probability = probability.as_f64();
        if probability > 0.0 {
            mass += probability;
            last = first + token;
            if mass > goal {
                break;
            }
        }
    }
    last as TokenId
}

kernel! {
    /// The mass of each block of `probs`.
    fn block_masses<'a, F: Real>(probs: &'a [F]) -> Masses {
        probs.chunks(BLOCK).map(|block| sum_of(block, Real::as_f64)).collect()
    }
}

/// The masses of blocks.
type Masses = Vec<f64>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_never_leaves_the_support() {
        let probs = [0.0_f32, 0.25, 0.0, 0.75, 0.0];
        assert_eq!(quantile(&probs, 1e-16), 1);
        assert_eq!(quantile(&probs, 0.2499), 1);
        assert_eq!(quantile(&probs, 0.2501), 3);
        assert_eq!(quantile(&probs, 1.0 - 1e-16), 3);
    }

    /// Distributions over several blocks, some of them empty, against the cumulated masses token by token.
    #[test]
    fn the_quantile_is_that_of_the_cumulated_masses() {
        for (len, every) in [
            (1, 1),
            (511, 7),
            (512, 1),
            (513, 512),
            (2_000, 3),
            (5_000, 700),
        ] {
            let probs: Vec<f32> = (0..len)
                .map(|v| {
                    if v % every == 0 {
                        ((v * 31) % 17 + 1) as f32
                    } else {
                        0.0
                    }
                })
                .collect();
            // Whole numbers, so that every order of adding them up is exact.
            let total: f32 = probs.iter().sum();
            for step in 0..200 {
                let u = (f64::from(step) + 0.5) / 200.0;
                let mut mass = 0.0;
                let expected = probs.iter().position(|&value| {
                    mass += f64::from(value);
                    mass > u * f64::from(total)
                });
                assert_eq!(Some(quantile(&probs, u) as usize), expected, "{len} {u}");
            }
        }
        assert_eq!(quantile(&[0.0_f32; 700], 0.5), 0);
    }

    #[test]
    fn a_ratio_of_zero_never_passes_and_of_one_always_does() {
        for base_len in 0..200 {
            let mut chance = RoundChance::new(Noise::new(1, 0), base_len, InnerCall::default());
            assert!(!chance.accepts(0, 0.0_f64));
            assert!(chance.accepts(0, 1.0_f64));
        }
    }

    /// The keys that the verifications rely on: no two draws of a round share a number, nor do two
    /// rounds.
    #[test]
    fn every_draw_is_keyed_by_purpose_offset_and_round() {
        let probs: Vec<f64> = vec![1.0 / 4096.0; 4096];
        let call = InnerCall::default();
        let mut seen = std::collections::HashSet::new();
        for base_len in 0..6 {
            let noise = Noise::new(3, 1);
            let mut chance = RoundChance::new(noise, base_len, call);
            for offset in 0..6 {
                for purpose in [Purpose::Draft, Purpose::Residual, Purpose::Bonus] {
                    let u = noise.draw(purpose, offset, base_len, call);
                    assert_eq!(chance.token(purpose, offset, &probs), quantile(&probs, u));
                    assert!(seen.insert(u.to_bits()));
                }
                let eta = noise.draw(Purpose::Accept, offset, base_len, call);
                assert!(seen.insert(eta.to_bits()));
                assert!(chance.accepts(offset, eta.next_up()));
                assert!(!chance.accepts(offset, eta));
            }
        }
    }
}
