//! Which random number serves which purpose: the keys and counters of the one generator.
//!
//! Coupled noise is keyed by output position and token id, so that drafter and verifier hold the
//! same noise without exchanging it. The draws of rejection-type verification are keyed by the
//! round's `base_len`, which grows every round: no draw serves twice, and a retry repeats it.
//! (Keyed by position alone, block verification would reuse draws that already influenced its
//! length, and be biased.)

use crate::TokenId;
use crate::philox::{LANES, philox, philox_lanes};

/// What a draw is for; a word of the counter, so that no two purposes ever share a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Purpose {
    /// Gumbel noise shared by drafter and verifier.
    Coupled = 0,
    /// Drawing a draft token.
    Draft = 1,
    /// The accept test of a draft token.
    Accept = 2,
    /// Drawing the recovered token from the residual.
    Residual = 3,
    /// Drawing the bonus token.
    Bonus = 4,
    /// Deriving the key of a further choice of the same request.
    Choice = 5,
    /// Coupled noise of an answer given anew, after another under the same seed was discarded.
    Regenerated = 6,
    /// Drawing a sibling of a draft token.
    Sibling = 7,
    /// Gumbel noise of a verifier that draws by itself; no drafter has it.
    Unshared = 8,
}

/// The noise of one choice of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise {
    key: [u32; 2],
    choice: u32,
    coupled: Purpose,
}

impl Noise {
    /// Largest choice index: it shares a counter word with the cascade level and the start of the
    /// inner call.
    pub const MAX_CHOICE: u32 = (1 << 12) - 1;

    /// Noise of choice `choice` under `seed`. Choice 0 is keyed by the seed itself, choice i by a
    /// Philox of it.
    pub fn new(seed: u64, choice: u32) -> Self {
        let seed_key = [seed as u32, (seed >> 32) as u32];
        let key = if choice == 0 {
            seed_key
        } else {
            let block = philox([choice, 0, Purpose::Choice as u32, 0], seed_key);
            [block[0], block[1]]
        };
        Self {
            key,
            choice,
            coupled: Purpose::Coupled,
        }
    }

    /// The noise of an answer that is given anew: its tokens must not depend on those of the answer
    /// that was discarded.
    #[must_use]
    pub fn regenerated(self) -> Self {
        Self {
            coupled: Purpose::Regenerated,
            ..self
        }
    }

    /// The noise by which a verifier draws a recovered or a bonus token as the largest of scores, where it knows
    /// only a part of the distribution and so cannot draw by one uniform. No drafter has it: draft tokens are
    /// independent of it, as of the accept tests. Each output position takes one such draw.
    #[must_use]
    pub fn unshared(self) -> Self {
        Self {
            coupled: Purpose::Unshared,
            ..self
        }
    }

    /// The uniform of a rejection-type draw, in (0, 1).
    ///
    /// `offset` counts positions within the round, `base_len` is the round's number of committed
    /// output tokens, `call` tells the inner call of a cascade of drafters apart.
    pub fn draw(&self, purpose: Purpose, offset: u32, base_len: u32, call: InnerCall) -> f64 {
        let word = (self.choice << 20) | (u32::from(call.level) << 16) | u32::from(call.start);
        let block = philox([offset, base_len, purpose as u32, word], self.key);
        uniform(block[0].into(), block[1].into())
    }

    /// The uniforms `u_v` of coupled noise at output position `position` for the token ids
    /// `first..first + LANES`, in (0, 1).
    #[inline(always)]
    pub fn coupled(&self, position: u32, first: u32) -> [f64; LANES] {
        let rest = [position, self.coupled as u32, self.choice];
        let [high, low] = philox_lanes(first, rest, self.key);
        let mut uniforms = [0.0; LANES];
        for (u, (high, low)) in uniforms.iter_mut().zip(high.into_iter().zip(low)) {
            *u = uniform(high, low);
        }
        uniforms
    }

    /// The uniform of coupled noise at output position `position` for one token: the first of
    /// [`Self::coupled`] from there on.
    pub fn coupled_of(&self, position: u32, token: TokenId) -> f64 {
        let counter = [token, position, self.coupled as u32, self.choice];
        let block = philox(counter, self.key);
        uniform(block[0].into(), block[1].into())
    }
}

/// Which call of a cascade of drafters draws: level 0 is the verifier, and a drafter on its own, whose
/// purposes differ; level r is the draft model r, the largest being 1. `start` is where the call
/// began, in tokens after `base_len`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InnerCall {
    /// Cascade level, below 16.
    pub level: u8,
    /// Start of the call, in tokens after the round's `base_len`.
    pub start: u16,
}

/// `(k + 1/2) * 2^-52`, where k is the 52 leading bits of the two 32-bit words: never 0, never 1.
#[inline(always)]
fn uniform(high: u64, low: u64) -> f64 {
    const TWO_52: f64 = (1_u64 << 52) as f64;
    let k = (high << 20) | (low >> 12);
    // As the mantissa of a number in [2^52, 2^53), k converts exactly and without a branch.
    let exact = f64::from_bits(TWO_52.to_bits() | k) - TWO_52;
    (exact + 0.5) * (1.0 / TWO_52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniforms_exclude_both_ends() {
        assert_eq!(uniform(1 << 31, 0), 0.5 + 0.5_f64.powi(53));
        assert!(uniform(0, 0) > 0.0);
        assert!(uniform(u32::MAX.into(), u32::MAX.into()) < 1.0);
        // All 52 bits count, and only they do.
        assert_ne!(uniform(0, 0), uniform(0, 1 << 12));
        assert_eq!(uniform(0, 0), uniform(0, (1 << 12) - 1));
    }

    #[test]
    fn every_part_of_the_key_matters() {
        let noise = Noise::new(7, 0);
        let call = InnerCall::default();
        let base = noise.draw(Purpose::Accept, 1, 2, call);
        assert_eq!(base, noise.draw(Purpose::Accept, 1, 2, call));
        assert_ne!(base, noise.draw(Purpose::Draft, 1, 2, call));
        assert_ne!(base, noise.draw(Purpose::Accept, 2, 2, call));
        assert_ne!(base, noise.draw(Purpose::Accept, 1, 3, call));
        let level = InnerCall { level: 1, start: 0 };
        let start = InnerCall { level: 0, start: 1 };
        assert_ne!(base, noise.draw(Purpose::Accept, 1, 2, level));
        assert_ne!(base, noise.draw(Purpose::Accept, 1, 2, start));
        assert_ne!(base, Noise::new(7, 1).draw(Purpose::Accept, 1, 2, call));
        assert_ne!(
            base,
            Noise::new(7 << 32, 0).draw(Purpose::Accept, 1, 2, call)
        );
    }

    #[test]
    fn coupled_noise_is_keyed_by_token_and_position() {
        let noise = Noise::new(7, 0);
        let block = noise.coupled(3, 8);
        assert_eq!(block[1], noise.coupled(3, 9)[0]);
        assert_ne!(block[1], noise.coupled(4, 9)[0]);
        assert_ne!(block[1], noise.regenerated().coupled(3, 9)[0]);
        assert_ne!(block[1], noise.unshared().coupled(3, 9)[0]);
        for token in 8..24 {
            assert_eq!(block[token as usize - 8], noise.coupled_of(3, token));
        }
    }
}
