//! The draft length of highest throughput.

/// Longest draft that is looked at.
const LONGEST: u32 = 1 << 12;

/// What a round costs, in any one unit of time: the session's own time, and the time that other sequences wait for
/// it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundCosts {
    /// A round with no draft token, the drafter's part included: round trips, and the verifier's forward of
    /// one position.
    pub fixed: f64,
    /// Each draft token: drafting it and scoring it.
    pub per_token: f64,
    /// A step of the target alone, without the drafter's part.
    pub alone: f64,
}

/// A draft length, and its throughput.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Best {
    /// The length, at least 1 unless the most is 0.
    pub(super) len: u32,
    /// Its throughput over that of the target alone.
    pub(super) gain: f64,
}

impl RoundCosts {
    /// The least probability of survival at which a draft token pays, where rounds make `gain` times the tokens of
    /// the target alone in the same time: the cost of a draft token over that of a token in such rounds.
    pub(super) fn min_survival(&self, gain: f64) -> f64 {
        (self.per_token * gain / self.alone).clamp(0.0, 1.0)
    }

    /// Returns what a round of `len` draft tokens costs.
    pub(super) fn round(&self, len: u32) -> f64 {
        self.fixed + self.per_token * f64::from(len)
    }
}

/// The draft length of 1 to `most` of highest throughput where the draft token at position i is accepted
/// with probability `accept[i]` if those before it are; the shorter one among equals. `accept` has no end, or the
/// length is at most its own.
///
/// A round of `g` draft tokens emits `1 + S_1 + ... + S_g` tokens on average, where `S_i`, the product of the
/// first `i` probabilities, is that of surviving so far (with equal probabilities `(1 - a^(g + 1)) / (1 - a)`:
/// Leviathan, Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding", equation 1). What
/// a further token adds falls with `g` and what it costs does not, so throughput has one maximum.
pub(super) fn best_len(
    accept: impl IntoIterator<Item = f64>,
    costs: RoundCosts,
    most: u32,
) -> Best {
    let mut best = Best::default();
    let (mut survival, mut emitted) = (1.0, 1.0);
    for (len, accept) in (1..=most.min(LONGEST)).zip(accept) {
        survival *= accept;
        emitted += survival;
        let gain = emitted * costs.alone / costs.round(len);
        if gain <= best.gain {
            break;
        }
        best = Best { len, gain };
    }
    best
}

#[cfg(test)]
mod tests {
    use std::iter::repeat;

    use super::*;
    use crate::philox::philox;

    /// Uniforms in [0, 1).
    fn uniforms(case: u32, at: u32) -> [f64; 4] {
        philox([case, at, 0, 0], [7, 9]).map(|word| f64::from(word) / 4_294_967_296.0)
    }

    /// Tokens by time of a round of `len` draft tokens, by its definition.
    fn throughput(accept: &[f64], costs: RoundCosts, len: usize) -> f64 {
        let survival = |len: usize| accept[..len].iter().product::<f64>();
        let emitted: f64 = (0..=len).map(survival).sum();
        match len {
            0 => emitted / costs.alone,
            len => emitted / (costs.fixed + costs.per_token * len as f64),
        }
    }

    fn by_position_product(accept: &[f64], len: u32) -> f64 {
        accept[..len as usize].iter().product()
    }

    #[test]
    fn the_best_length_equals_a_search() {
        let (mut losing, mut inner, mut capped) = (0, 0, 0);
        for case in 0..2_000 {
            let [u, v, w, x] = uniforms(case, 0);
            // Acceptance up to .995, alike or by position; fixed costs from a tenth of a token's to 200 of them.
            let a = 0.995 * u.sqrt();
            let most = if x < 0.5 {
                160
            } else {
                ((x - 0.5) * 40.0) as u32
            };
            let by_position = |at| match case % 2 {
                0 => a,
                _ => a + (0.999 - a) * (uniforms(case, at)[0] - 0.5),
            };
            let accept: Vec<f64> = (1..=most).map(by_position).collect();
            let costs = RoundCosts {
                fixed: libm::exp(libm::log(0.1) + v * libm::log(2_000.0)),
                per_token: 1.0,
                alone: 0.0,
            };
            let costs = RoundCosts {
                alone: costs.fixed * (0.3 + 0.7 * w),
                ..costs
            };
            let rate = |len: u32| throughput(&accept, costs, len as usize);
            let search = (1..=most).max_by(|&g, &h| rate(g).total_cmp(&rate(h)).then(h.cmp(&g)));
            let Some(search) = search else {
                assert_eq!(best_len([], costs, most), Best::default());
                continue;
            };
            let found = best_len(accept.iter().copied(), costs, most);
            // Two lengths may be equal but for rounding.
            let ratio = rate(found.len) / rate(search);
            assert!(
                found.len == search || (ratio - 1.0).abs() < 1e-12,
                "{found:?} is not {search}: a = {a}, {costs:?}, most = {most}"
            );
            let gain = rate(found.len) / rate(0);
            assert!((found.gain / gain - 1.0).abs() < 1e-12, "{found:?}");
            // Where drafting pays the last token is worth its cost; and the next one would not be.
            let survival = |len: u32| by_position_product(&accept, len);
            let min_survival = costs.min_survival(found.gain);
            assert!(
                gain < 1.0 || survival(found.len) >= min_survival - 1e-12,
                "{found:?} {costs:?}"
            );
            if found.len < most && min_survival < 1.0 {
                assert!(
                    survival(found.len + 1) <= min_survival + 1e-12,
                    "{found:?} {costs:?}"
                );
            }
            match found.len {
                _ if gain < 1.0 => losing += 1,
                len if len == most => capped += 1,
                _ => inner += 1,
            }
        }
        assert!(
            losing > 150 && inner > 150 && capped > 150,
            "{losing} {inner} {capped}"
        );
    }

    #[test]
    fn the_ends_of_the_range_are_lengths_too() {
        let costs = RoundCosts {
            fixed: 10.0,
            per_token: 1.0,
            alone: 9.0,
        };
        let len = |accept, costs, most| best_len(repeat(accept), costs, most).len;
        assert_eq!(len(0.0, costs, 20), 1);
        assert_eq!(len(1.0, costs, 20), 20);
        assert_eq!(len(1.0 - 1e-12, costs, 20), 20);
        assert_eq!(len(0.9, costs, 0), 0);
        let free = RoundCosts {
            per_token: 0.0,
            ..costs
        };
        assert_eq!(len(0.5, free, 20), 20);
        // No draft token is ever accepted, and all lengths have the same throughput.
        assert_eq!(len(0.0, free, 20), 1);
    }
}
