//! The draft length of highest throughput.

/// Longest draft that is looked at.
const LONGEST: u32 = 1 << 12;

/// What a round costs, in any one unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A round with no draft token, the drafter's part included: round trips, and the verifier's forward of
    /// one position.
    pub fixed: f64,
    /// Each draft token: drafting it and scoring it.
    pub per_token: f64,
    /// A step of the target alone, without the drafter's part.
    pub alone: f64,
}

/// The draft length, at most `most`, of highest throughput where the draft token at position i is accepted
/// with probability `accept[i]` if those before it are; the shorter one among equals. 0 where the target alone
/// is faster. `accept` has no end, or the length is at most its own.
///
/// A round of `g` draft tokens emits `1 + S_1 + ... + S_g` tokens on average, where `S_i`, the product of the
/// first `i` probabilities, is that of surviving so far (with equal probabilities `(1 - a^(g + 1)) / (1 - a)`:
/// Leviathan, Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding", equation 1). What
/// a further token adds falls with `g` and what it costs does not, so throughput has one maximum.
pub(super) fn best_len(accept: impl IntoIterator<Item = f64>, costs: Costs, most: u32) -> u32 {
    // The target alone has costs of its own.
    let mut best = (0, 1.0 / costs.alone);
    let (mut survival, mut emitted, mut before) = (1.0, 1.0, 0.0);
    for (len, accept) in (1..=most.min(LONGEST)).zip(accept) {
        survival *= accept;
        emitted += survival;
        let throughput = emitted / (costs.fixed + costs.per_token * f64::from(len));
        if throughput > best.1 {
            best = (len, throughput);
        }
        if throughput <= before {
            break;
        }
        before = throughput;
    }
    best.0
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
    fn throughput(accept: &[f64], costs: Costs, len: usize) -> f64 {
        let survival = |len: usize| accept[..len].iter().product::<f64>();
        let emitted: f64 = (0..=len).map(survival).sum();
        match len {
            0 => emitted / costs.alone,
            len => emitted / (costs.fixed + costs.per_token * len as f64),
        }
    }

    #[test]
    fn the_best_length_equals_a_search() {
        let (mut zeros, mut inner, mut capped) = (0, 0, 0);
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
            let costs = Costs {
                fixed: libm::exp(libm::log(0.1) + v * libm::log(2_000.0)),
                per_token: 1.0,
                alone: 0.0,
            };
            let costs = Costs {
                alone: costs.fixed * (0.3 + 0.7 * w),
                ..costs
            };
            let rate = |len: u32| throughput(&accept, costs, len as usize);
            let search = (0..=most).max_by(|&g, &h| rate(g).total_cmp(&rate(h)).then(h.cmp(&g)));
            let search = search.expect("at least 0");
            let found = best_len(accept.iter().copied(), costs, most);
            // Two lengths may be equal but for rounding.
            let ratio = rate(found) / rate(search);
            assert!(
                found == search || (ratio - 1.0).abs() < 1e-12,
                "{found} is not {search}: a = {a}, {costs:?}, most = {most}"
            );
            match found {
                0 => zeros += 1,
                len if len == most => capped += 1,
                _ => inner += 1,
            }
        }
        assert!(
            zeros > 150 && inner > 150 && capped > 150,
            "{zeros} {inner} {capped}"
        );
    }

    #[test]
    fn the_ends_of_the_range_are_lengths_too() {
        let costs = Costs {
            fixed: 10.0,
            per_token: 1.0,
            alone: 9.0,
        };
        assert_eq!(best_len(repeat(0.0), costs, 20), 0);
        assert_eq!(best_len(repeat(1.0), costs, 20), 20);
        assert_eq!(best_len(repeat(1.0 - 1e-12), costs, 20), 20);
        assert_eq!(best_len(repeat(0.9), costs, 0), 0);
        let free = Costs {
            per_token: 0.0,
            ..costs
        };
        assert_eq!(best_len(repeat(0.5), free, 20), 20);
        assert_eq!(best_len(repeat(0.0), free, 20), 0);
    }
}
