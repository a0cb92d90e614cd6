//! How often the target chooses what a draft model proposes, by how sure the draft model is.

use crate::TokenId;
use crate::noise::Noise;
use crate::philox::LANES;
use crate::real::Real;

/// Tokens that a row proposes, the draft model's own choice first.
pub const CHILDREN: usize = 4;

/// How far a draft model's choice is ahead of its second, in classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Margin(u8);

/// Largest difference, in nats, of each class but the last.
const CLASSES: [f64; 7] = [0.25, 0.5, 1.0, 1.5, 2.5, 4.0, 6.0];

/// How often the first is assumed to be chosen in each class before anything was observed, and the share of the rest for each
/// of the others.
const ASSUMED: [f32; 8] = [0.45, 0.52, 0.6, 0.68, 0.78, 0.87, 0.93, 0.97];
const OTHERS: [f32; CHILDREN - 1] = [0.55, 0.15, 0.07];

/// Observations that the assumption is worth.
const PRIOR: f32 = 8.0;

/// Most observations that a class remembers: older ones count for less.
const REMEMBERED: f32 = 400.0;

/// How often each of the tokens that a row proposes is the target's choice, by the row's [`Margin`].
#[derive(Clone, Copy, Debug)]
pub struct Acceptance {
    /// Of each class: rows whose next token is known, and how often that was each of its tokens.
    classes: [(f32, [f32; CHILDREN]); CLASSES.len() + 1],
}

impl Default for Acceptance {
    fn default() -> Self {
        let of = |first: f32| {
            let mut chosen = [first * PRIOR; CHILDREN];
            for (chosen, share) in chosen[1..].iter_mut().zip(OTHERS) {
                *chosen = (1.0 - first) * share * PRIOR;
            }
            (PRIOR, chosen)
        };
        Self {
            classes: ASSUMED.map(of),
        }
    }
}

impl Acceptance {
    /// Returns the probability that the target chooses the token number `rank` of a row with this margin.
    pub fn of(&self, margin: Margin, rank: usize) -> f32 {
        let (rows, chosen) = &self.classes[usize::from(margin.0)];
        chosen.get(rank).map_or(0.0, |chosen| chosen / rows)
    }

    /// Records that the target chose the token number `rank` of a row with this margin, or none of its tokens.
    pub fn observe(&mut self, margin: Margin, rank: Option<usize>) {
        let (rows, chosen) = &mut self.classes[usize::from(margin.0)];
        let left = (REMEMBERED / (*rows + 1.0)).min(1.0);
        *rows = *rows * left + 1.0;
        for (at, chosen) in chosen.iter_mut().enumerate() {
            *chosen = *chosen * left + f32::from(u8::from(rank == Some(at)));
        }
    }
}

/// Returns how far `first`, the draft model's choice under the shared noise at output position `position`, is ahead of
/// `second`, the next: how much the logarithm of the second's probability would have to grow for the choice to be
/// another. `probs` (vocab) is the distribution that both were drawn from; where it does not hold the second, as at
/// temperature 0, `unscaled` (vocab) ranks the two, without noise.
pub fn margin<F: Real>(
    probs: &[F],
    unscaled: &[F],
    (noise, position): (&Noise, u32),
    first: TokenId,
    second: Option<TokenId>,
) -> Margin {
    let Some(second) = second else {
        return Margin(CLASSES.len() as u8);
    };
    let mass = |row: &[F], token: TokenId| row[token as usize].as_f64();
    // The choice is the least of E / f.
    let race = |token: TokenId| {
        let lane = token as usize % LANES;
        let uniforms = noise.coupled(position, token - lane as u32);
        (uniforms[lane].ln_portable() / -mass(probs, token)).ln_portable()
    };
    let ahead = if mass(probs, second) > 0.0 {
        race(second) - race(first)
    } else {
        mass(unscaled, first).ln_portable() - mass(unscaled, second).ln_portable()
    };
    Margin(CLASSES.partition_point(|&most| most < ahead) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coupled::choice;
    use crate::drafting::{TreeShape, siblings};

    #[test]
    fn what_is_assumed_gives_way_to_what_is_observed() {
        let mut acceptance = Acceptance::default();
        for class in 0..=CLASSES.len() as u8 {
            let sum: f32 = (0..CHILDREN)
                .map(|rank| acceptance.of(Margin(class), rank))
                .sum();
            assert!(sum < 1.0, "{sum}");
            assert_eq!(acceptance.of(Margin(class), CHILDREN), 0.0);
        }
        for turn in 0..3_000 {
            let rank = [Some(0), Some(1), Some(0), None][turn % 4];
            acceptance.observe(Margin(3), rank);
        }
        let found = [0, 1, 2].map(|rank| acceptance.of(Margin(3), rank));
        for (found, expected) in found.into_iter().zip([0.5, 0.25, 0.0]) {
            assert!((found - expected).abs() < 0.02, "{found} {expected}");
        }
        // Another class is as before, and the past fades.
        assert!((acceptance.of(Margin(2), 0) - ASSUMED[2]).abs() < 1e-6);
        for _ in 0..3 * REMEMBERED as usize {
            acceptance.observe(Margin(3), Some(2));
        }
        assert!(acceptance.of(Margin(3), 2) > 0.9);
    }

    /// Raising the second's probability by less than the margin leaves the choice as it was, by more makes it the choice.
    #[test]
    fn the_margin_is_what_the_second_is_short_of() {
        let noise = Noise::new(9, 0);
        let probs: Vec<f64> = (1..=37).map(|v| f64::from(v) / 703.0).collect();
        let shape = TreeShape::Alternates(1);
        let mut classes = [0; CLASSES.len() + 1];
        for position in 0..400 {
            let first = choice(&probs, &noise, position);
            let second = siblings(shape, &probs, &probs, first, &noise, position).pop();
            let class = margin(&probs, &probs, (&noise, position), first, second).0 as usize;
            classes[class] += 1;
            let second = second.expect("many tokens");
            let raised_by = |nats: f64| {
                let mut raised = probs.clone();
                raised[second as usize] *= nats.exp();
                choice(&raised, &noise, position)
            };
            if let Some(&most) = CLASSES.get(class) {
                assert_eq!(raised_by(most + 1e-9), second);
            }
            if let Some(least) = class.checked_sub(1).map(|class| CLASSES[class]) {
                assert_eq!(raised_by(least - 1e-9), first);
            }
        }
        assert!(
            classes.iter().filter(|&&count| count > 10).count() > 4,
            "{classes:?}"
        );
    }

    #[test]
    fn where_one_token_is_left_the_unscaled_distribution_tells() {
        let noise = Noise::new(9, 0);
        let one_hot = [0.0, 1.0, 0.0];
        let unscaled = |second: f64| [second, 0.6, 0.4 - second];
        let of = |second: f64| margin(&one_hot, &unscaled(second), (&noise, 5), 1, Some(0));
        assert_eq!(of(0.39), Margin(1));
        assert_eq!(of(0.3), Margin(2));
        assert_eq!(of(1e-3), Margin(7));
        assert_eq!(margin(&one_hot, &one_hot, (&noise, 5), 1, None), Margin(7));
    }
}
