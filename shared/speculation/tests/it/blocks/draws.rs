//! What keys the draws of a round.

use speculation::TokenId;
use speculation::chance::{Chance, RoundChance};
use speculation::noise::{InnerCall, Noise, Purpose};
use speculation::verification::Verification;

use super::{VERIFICATIONS, setup};
use crate::tree::{Distributions, OutputDistribution, Pair, Setup, enumerate};

/// Moves the keys of a round's draws.
struct Keyed<'a, C> {
    chance: &'a mut C,
    first_key: u32,
}

impl<C: Chance<f64>> Chance<f64> for Keyed<'_, C> {
    fn accepts(&mut self, offset: u32, ratio: f64) -> bool {
        self.chance.accepts(self.first_key + offset, ratio)
    }

    fn token(&mut self, purpose: Purpose, offset: u32, probs: &[f64]) -> TokenId {
        self.chance.token(purpose, self.first_key + offset, probs)
    }
}

/// How far the first three tokens of two or more rounds are off the target model's distribution, if the draws of a
/// round after `base_len` tokens are keyed from `first_key(base_len)` on.
fn bias(setup: &Setup<'_>, first_key: fn(u32) -> u32) -> f64 {
    let len = 3;
    let mut probs: OutputDistribution = setup.expected(len);
    enumerate(|branch| {
        let (mut output, mut layers) = (Vec::new(), Vec::new());
        while output.len() < len {
            let mut keyed = Keyed {
                first_key: first_key(output.len() as u32),
                chance: &mut *branch,
            };
            let verdict = setup.round(&output, &layers, &mut keyed);
            output.extend(verdict.emitted);
            layers = verdict.layers;
        }
        output.truncate(len);
        *probs.entry(output).or_default() -= branch.weight();
    });
    probs.values().fold(0.0, |worst, off| off.abs().max(worst))
}

/// A uniform that already had a say in how long a block is must not decide again at its position.
#[test]
fn draws_must_be_keyed_by_the_rounds_start() {
    for verification in VERIFICATIONS {
        let mut by_position = 0.0;
        for seed in 0..4 {
            let (draft, target) = (
                Distributions::random(seed, 2),
                Distributions::random(seed + 100, 2),
            );
            let pair = Pair {
                name: String::new(),
                draft,
                target,
            };
            let setup = setup(&pair, verification, |_| 2);
            let by_round = bias(&setup, |base_len| 100 * base_len);
            assert!(by_round < 1e-12, "{verification:?}: {by_round:e}");
            by_position = bias(&setup, |base_len| base_len).max(by_position);
        }
        let biased = verification != Verification::TOKEN;
        assert_eq!(
            by_position > 1e-3,
            biased,
            "{verification:?}: {by_position:e}"
        );
        assert!(biased || by_position < 1e-12, "{by_position:e}");
    }
}

#[test]
fn rounds_at_one_position_draw_different_uniforms() {
    let probs = [1.0_f64; 1_000];
    let noise = Noise::new(23, 0);
    for purpose in [Purpose::Draft, Purpose::Residual, Purpose::Bonus] {
        for position in 1..20 {
            let mut draws: Vec<TokenId> = (0..=position)
                .map(|base_len| {
                    let mut chance = RoundChance::new(noise, base_len, InnerCall::default());
                    chance.token(purpose, position - base_len, &probs)
                })
                .collect();
            draws.sort_unstable();
            draws.dedup();
            assert!(
                draws.len() > position as usize * 9 / 10,
                "{purpose:?} {draws:?}"
            );
        }
    }
    // Nor do rounds at one offset.
    let accepted = |base_len| {
        let mut chance = RoundChance::new(noise, base_len, InnerCall::default());
        [chance.accepts(64 - base_len, 0.5), chance.accepts(0, 0.5)]
    };
    for at in 0..2 {
        let accepted: Vec<bool> = (0..=64).map(|base_len| accepted(base_len)[at]).collect();
        assert!(accepted.contains(&true) && accepted.contains(&false));
    }
}
