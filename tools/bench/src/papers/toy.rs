//! The toy of paper D, Figure 2: draft and target are coins without memory.
//!
//! Expected draft tokens accepted of a block of L, where the draft says 1 with probability q and the target with p. Token
//! verification accepts each with probability `1 - |p - q|` (Theorem 2). Greedy block verification accepts the most that any
//! coupling can: the sum over lengths l of `Σ_x min(Q(x), P(x))` over blocks x of l symbols (Theorem 1, equation 6). The paper's
//! sums begin at l = 0, which is the target's own token.

/// Returns the tokens that token verification is expected to accept.
pub(super) fn by_tokens(draft: f64, target: f64, len: u32) -> f64 {
    let accepted = 1.0 - (draft - target).abs();
    (1..=len as i32).map(|power| accepted.powi(power)).sum()
}

/// Returns the tokens that greedy block verification is expected to accept.
pub(super) fn by_blocks(draft: f64, target: f64, len: u32) -> f64 {
    (1..=len).map(|len| overlap(draft, target, len)).sum()
}

/// Returns `Σ_x min(Q(x), P(x))` over blocks of `len` symbols: those with as many ones are alike.
fn overlap(draft: f64, target: f64, len: u32) -> f64 {
    let mut blocks = 1.0;
    let mut sum = 0.0;
    for ones in 0..=len {
        let of = |one: f64| one.powi(ones as i32) * (1.0 - one).powi((len - ones) as i32);
        sum += blocks * of(draft).min(of(target));
        blocks = blocks * f64::from(len - ones) / f64::from(ones + 1);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by writing out every block.
    fn enumerated(draft: f64, target: f64, len: u32) -> f64 {
        let blocks = 0..1_u32 << len;
        let of = |block: u32, one: f64| -> f64 {
            let symbols = (0..len).map(|at| if block >> at & 1 == 1 { one } else { 1.0 - one });
            symbols.product()
        };
        blocks
            .map(|block| of(block, draft).min(of(block, target)))
            .sum()
    }

    #[test]
    fn blocks_are_counted_by_their_ones() {
        for (draft, target) in [(0.1, 0.9), (0.5, 0.5), (0.3, 0.45), (0.0, 1.0)] {
            for len in 1..=8 {
                let (found, expected) =
                    (overlap(draft, target, len), enumerated(draft, target, len));
                assert!((found - expected).abs() < 1e-12, "{found} {expected}");
            }
            assert!((overlap(draft, target, 1) - by_tokens(draft, target, 1)).abs() < 1e-12);
            assert!(by_blocks(draft, target, 6) >= by_tokens(draft, target, 6) - 1e-12);
        }
    }
}
