//! The draft length of highest throughput.

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

impl Costs {
    /// Tokens by time of a round of `len` draft tokens at acceptance `a`.
    fn throughput(&self, a: f64, len: u32) -> f64 {
        let cost = match len {
            0 => self.alone,
            len => self.fixed + self.per_token * f64::from(len),
        };
        mean_emitted(a, len) / cost
    }
}

/// Tokens that a round of `len` draft tokens emits on average, each accepted with probability `a` if those
/// before it are: `(1 - a^(len + 1)) / (1 - a)` (Leviathan, Kalman, Matias, "Fast Inference from
/// Transformers via Speculative Decoding", equation 1).
pub fn mean_emitted(a: f64, len: u32) -> f64 {
    let count = f64::from(len) + 1.0;
    if a >= 1.0 {
        return count;
    }
    let log = libm::log(a.max(0.0));
    // 1 - a^n without cancellation where a is near 1.
    -libm::expm1(count * log) / -libm::expm1(log)
}

/// The draft length, at most `most`, of highest throughput at acceptance `a`; the shorter one among
/// equals. 0 where the target alone is faster.
///
/// With `b = fixed / per_token - 1` the real maximum of `(1 - a^(g+1)) / (fixed + per_token g)` is at
/// `g = (u - 1)/|ln a| - b - 1`, where `u - ln u = 1 + b |ln a|` and `u > 1` (branch -1 of Lambert's W);
/// beside it lies the whole one, since the function has one maximum.
pub fn best_len(a: f64, costs: Costs, most: u32) -> u32 {
    let near = real_maximum(a, costs).clamp(0.0, f64::from(most));
    let candidates = [libm::floor(near) as u32, libm::ceil(near) as u32];
    // The target alone has costs of its own, and is always worth a look.
    let mut best = (0, costs.throughput(a, 0));
    for len in candidates {
        let throughput = costs.throughput(a, len);
        if throughput > best.1 {
            best = (len, throughput);
        }
    }
    best.0
}

/// The real draft length of highest throughput, below 0 where drafting does not pay.
fn real_maximum(a: f64, costs: Costs) -> f64 {
    if a >= 1.0 || costs.per_token <= 0.0 {
        // Every token is worth its cost.
        return if a > 0.0 { f64::INFINITY } else { -1.0 };
    }
    let b = costs.fixed / costs.per_token - 1.0;
    if a <= 0.0 || b <= 0.0 {
        return -1.0;
    }
    let log = -libm::log(a);
    excess(b * log) / log - b - 1.0
}

/// `w > 0` with `w - ln(1 + w) = r`, for r > 0, by Newton's method from above, where it cannot overshoot:
/// the bound is that of Chatzigeorgiou, "Bounds on the Lambert Function and Their Application to the
/// Outage Analysis of User Cooperation".
fn excess(r: f64) -> f64 {
    let mut w = r + libm::sqrt(2.0 * r);
    for _ in 0..64 {
        let step = (w - libm::log1p(w) - r) * (1.0 + w) / w;
        w -= step;
        if step.abs() <= 1e-14 * w {
            break;
        }
    }
    w
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::philox::philox;

    /// Uniforms in [0, 1).
    fn uniforms(case: u32) -> [f64; 4] {
        philox([case, 0, 0, 0], [7, 9]).map(|word| f64::from(word) / 4_294_967_296.0)
    }

    #[test]
    fn the_best_length_equals_a_search() {
        let (mut zeros, mut inner, mut capped) = (0, 0, 0);
        for case in 0..4_000 {
            let [u, v, w, x] = uniforms(case);
            // Acceptance up to .995; fixed costs from a tenth of a token's to 200 of them.
            let a = 0.995 * u.sqrt();
            let costs = Costs {
                fixed: libm::exp(libm::log(0.1) + v * libm::log(2_000.0)),
                per_token: 1.0,
                alone: 0.0,
            };
            let costs = Costs {
                alone: costs.fixed * (0.3 + 0.7 * w),
                ..costs
            };
            let most = if x < 0.5 {
                400
            } else {
                ((x - 0.5) * 40.0) as u32
            };
            let search = (0..=most)
                .max_by(|&g, &h| {
                    let (g_rate, h_rate) = (costs.throughput(a, g), costs.throughput(a, h));
                    g_rate.partial_cmp(&h_rate).expect("a rate").then(h.cmp(&g))
                })
                .expect("at least 0");
            let found = best_len(a, costs, most);
            // Two lengths may be equal but for rounding.
            let ratio = costs.throughput(a, found) / costs.throughput(a, search);
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
            zeros > 300 && inner > 300 && capped > 300,
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
        assert_eq!(best_len(0.0, costs, 20), 0);
        assert_eq!(best_len(1.0, costs, 20), 20);
        assert_eq!(best_len(1.0 - 1e-12, costs, 20), 20);
        assert_eq!(best_len(0.9, costs, 0), 0);
        let free = Costs {
            per_token: 0.0,
            ..costs
        };
        assert_eq!(best_len(0.5, free, 20), 20);
        assert_eq!(best_len(0.0, free, 20), 0);
    }

    #[test]
    fn the_mean_is_a_geometric_sum() {
        for a in [0.0, 0.3, 0.8, 1.0 - 1e-9, 1.0] {
            let sum: f64 = (0..=6).map(|i| f64::powi(a, i)).sum();
            assert!((mean_emitted(a, 6) - sum).abs() < 1e-12, "{a}");
        }
    }
}
