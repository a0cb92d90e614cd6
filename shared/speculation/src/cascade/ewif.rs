//! What speculation is worth: the expected walltime improvement factor, tokens a round over what it costs, in forwards of
//! the target.
//!
//! Chen et al., "Cascade Speculative Drafting for Even Faster LLM Inference" (2024), §4: Theorems 4.1 and 4.3 for a vertical
//! cascade, 4.5 for a horizontal one, and an exact Markov chain for any matrix K. Acceptance is taken to be independent: a reviewer
//! keeps each token of a draft with the same probability. A cost is a draft's forward over the target's.

use super::CascadeConfig;

/// Tokens of one draft of a horizontal cascade.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DraftShare {
    /// The probability with which the target keeps each.
    pub acceptance: f64,
    /// Their number.
    pub tokens: u32,
    /// Cost of each.
    pub cost: f64,
}

/// Returns the factor of a horizontal cascade (Theorem 4.5), whose `drafts` draft one behind the other, each token by token:
/// `Σ_i Π_{j <= i} a_j / (1 + Σ_i c_i)` over the draft tokens i, with `a_0 = 1` and no cost for the target's own. Of one draft it is
/// that of speculative decoding (Leviathan et al. 2023, Theorem 3.8).
pub fn horizontal(drafts: &[DraftShare]) -> f64 {
    let (mut tokens, mut accepted, mut cost) = (1.0, 1.0, 1.0);
    for draft in drafts {
        for _ in 0..draft.tokens {
            accepted *= draft.acceptance;
            tokens += accepted;
            cost += draft.cost;
        }
    }
    tokens / cost
}

/// Returns the probability generating function `φ(x)` of the tokens that a review of `draft_len` tokens emits, each accepted
/// with probability `acceptance` (Theorem 4.1): `1 + (x - 1) (1 - a^(k+1) x^(k+1)) / (1 - a x)`.
pub fn generating(acceptance: f64, draft_len: u32, x: f64) -> f64 {
    let step = acceptance * x;
    // The quotient as a sum, which is right at a x = 1 too.
    let series: f64 = (0..=draft_len).map(|power| step.powi(power as i32)).sum();
    1.0 + (x - 1.0) * series
}

/// Returns the factor of a vertical cascade (Theorem 4.3): the target reviews, with `acceptance`, what `reviews` reviews of the
/// first draft emit, each of `inner.tokens` tokens of the second, which the first accepts with `inner.acceptance`:
/// `(1 - a φ(a)^n) / ((1 - a) (1 + n c_1 + n k c_2))`, with `reviewer_cost` for c_1 and `inner.cost` for c_2.
pub fn vertical(acceptance: f64, reviews: u32, reviewer_cost: f64, inner: DraftShare) -> f64 {
    let made = f64::from(reviews);
    let kept = generating(inner.acceptance, inner.tokens, acceptance).powi(reviews as i32);
    let tokens = if acceptance < 1.0 {
        (1.0 - acceptance * kept) / (1.0 - acceptance)
    } else {
        let each = (0..=inner.tokens).map(|power| inner.acceptance.powi(power as i32));
        1.0 + made * each.sum::<f64>()
    };
    tokens / (1.0 + made * (reviewer_cost + f64::from(inner.tokens) * inner.cost))
}

/// What a round of a cascade is expected to bring and to cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Tokens emitted by the target.
    pub tokens: f64,
    /// Calls of each draft: forwards of a model, proposals of Max-Gram.
    pub calls: Vec<f64>,
}

impl Expected {
    /// Returns the factor, where a call of each draft costs so much.
    ///
    /// # Panics
    /// If there is not one cost for each draft.
    pub fn ewif(&self, costs: &[f64]) -> f64 {
        assert_eq!(costs.len(), self.calls.len(), "one cost for each draft");
        let spent = self.calls.iter().zip(costs);
        let spent: f64 = spent.map(|(calls, cost)| calls * cost).sum();
        self.tokens / (1.0 + spent)
    }
}

/// Returns what a round of any cascade is expected to bring, by an exact Markov chain, by which a matrix K can be
/// judged. Lenience counts as far as `acceptance` does.
///
/// `acceptance` (drafts, drafts) holds in row r the probability with which reviewer r (0: the target)
/// keeps a token that the draft of the column emitted last.
///
/// # Panics
/// If `acceptance` has no entry where K has one.
pub fn expected(config: &CascadeConfig, acceptance: &[Vec<f64>]) -> Expected {
    // The calls of each draft, the smallest first: those of larger ones are made of them.
    let mut drafts: Vec<CallDistribution> = vec![CallDistribution::default(); config.drafts()];
    for draft in (0..config.drafts()).rev() {
        let mut call = if is_max_gram(config, draft) {
            CallDistribution::of_max_gram(config)
        } else {
            CallDistribution::of_review(config, draft + 1, &drafts, acceptance)
        };
        call.calls[draft] += 1.0;
        drafts[draft] = call;
    }
    let target = CallDistribution::of_review(config, 0, &drafts, acceptance);
    let mean = |(tokens, chance): (usize, &f64)| tokens as f64 * chance;
    Expected {
        tokens: target.tokens.iter().enumerate().map(mean).sum(),
        calls: target.calls,
    }
}

/// What one call gives.
#[derive(Clone, Debug, Default)]
struct CallDistribution {
    /// How likely each number of tokens is.
    tokens: Vec<f64>,
    /// The expected calls of each draft in it.
    calls: Vec<f64>,
}

impl CallDistribution {
    fn of_max_gram(config: &CascadeConfig) -> Self {
        let count = config.mag_tokens() as usize;
        let mut tokens = vec![0.0; count + 1];
        tokens[count] = 1.0;
        Self {
            tokens,
            calls: vec![0.0; config.drafts()],
        }
    }

    /// A review, as a Markov chain whose state is the number of tokens drafted: how likely it is, and
    /// how likely together with the reviewer accepting all of them.
    fn of_review(
        config: &CascadeConfig,
        reviewer: usize,
        drafts: &[Self],
        acceptance: &[Vec<f64>],
    ) -> Self {
        let mut states = vec![(1.0, 1.0)];
        let mut calls = vec![0.0; config.drafts()];
        let mut tokens: Vec<f64> = Vec::new();
        let add = |tokens: &mut Vec<f64>, count: usize, chance: f64| {
            tokens.resize(tokens.len().max(count + 1), 0.0);
            tokens[count] += chance;
        };
        for draft in reviewer..config.drafts() {
            for added in 0..threshold(config, reviewer, draft) {
                let Some(state) = states.get_mut(added) else {
                    break;
                };
                let (reached, standing) = std::mem::take(state);
                if reached == 0.0 {
                    continue;
                }
                let keeps = acceptance[reviewer][draft];
                for (sum, each) in calls.iter_mut().zip(&drafts[draft].calls) {
                    *sum += reached * each;
                }
                for (more, &chance) in drafts[draft].tokens.iter().enumerate() {
                    let mut standing = standing * chance;
                    for kept in 0..more {
                        add(&mut tokens, added + kept + 1, standing * (1.0 - keeps));
                        standing *= keeps;
                    }
                    let len = states.len().max(added + more + 1);
                    states.resize(len, (0.0, 0.0));
                    states[added + more].0 += reached * chance;
                    states[added + more].1 += standing;
                }
            }
        }
        for (added, &(_, standing)) in states.iter().enumerate() {
            add(&mut tokens, added + 1, standing);
        }
        Self { tokens, calls }
    }
}

/// Whether draft `draft`, a column of K, is Max-Gram.
fn is_max_gram(config: &CascadeConfig, draft: usize) -> bool {
    config.max_gram() && draft + 1 == config.drafts()
}

/// Tokens after which `reviewer` turns from draft `draft` to the next.
fn threshold(config: &CascadeConfig, reviewer: usize, draft: usize) -> usize {
    config.k()[reviewer][..=draft].iter().sum::<u32>() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(acceptance: f64, tokens: u32, cost: f64) -> DraftShare {
        DraftShare {
            acceptance,
            tokens,
            cost,
        }
    }

    fn speculative(acceptance: f64, tokens: u32, cost: f64) -> f64 {
        horizontal(&[share(acceptance, tokens, cost)])
    }

    /// The paper's Table 1, at the acceptance of its small and base models and the costs that reproduce it.
    #[test]
    fn the_simulated_table_comes_out() {
        let (small, base) = (0.0069, 0.022);
        for (found, printed) in [
            (speculative(0.65, 9, small), 2.65),
            (speculative(0.73, 8, base), 2.96),
            (
                horizontal(&[share(0.73, 5, base), share(0.65, 3, small)]),
                3.03,
            ),
            (speculative(0.75, 12, small), 3.61),
            (speculative(0.80, 11, base), 3.75),
            (
                horizontal(&[share(0.80, 5, base), share(0.75, 8, small)]),
                3.93,
            ),
        ] {
            assert!((found - printed).abs() < 0.006, "{found} is not {printed}");
        }
    }

    /// `φ` is the mean of `x^N` over the tokens N that a review emits.
    #[test]
    fn the_generating_function_is_that_of_a_review() {
        for (a, k) in [(0.0, 3), (0.3, 0), (0.65, 5), (1.0, 4)] {
            for x in [0.0, 0.4, 1.0, 1.0 / 0.65] {
                let power = |base: f64, kept: u32| base.powi(kept as i32);
                let refused = (0..k).map(|kept| power(a, kept) * (1.0 - a) * power(x, kept + 1));
                let mean = refused.sum::<f64>() + power(a, k) * power(x, k + 1);
                assert!((generating(a, k, x) - mean).abs() < 1e-12);
            }
        }
    }

    /// A quota of 1 is one call, for each gives at least one token.
    #[test]
    fn the_formulas_are_the_expectation_of_the_chain() {
        for draft_len in 0..5 {
            let k = vec![vec![1, 0], vec![0, draft_len]];
            let config = CascadeConfig::new(2, false, k, 1.0, 1).expect("a cascade");
            let chain = expected(&config, &[vec![0.7, 0.0], vec![0.0, 0.6]]);
            let formula = vertical(0.7, 1, 0.1, share(0.6, draft_len, 0.02));
            assert!((chain.ewif(&[0.1, 0.02]) - formula).abs() < 1e-12);
        }
        let k = vec![vec![5, 3], vec![0, 0]];
        let config = CascadeConfig::new(2, false, k, 1.0, 1).expect("a cascade");
        let chain = expected(&config, &[vec![0.73, 0.65], vec![0.0, 0.0]]);
        let formula = horizontal(&[share(0.73, 5, 0.022), share(0.65, 3, 0.0069)]);
        assert!((chain.ewif(&[0.022, 0.0069]) - formula).abs() < 1e-12);
    }
}
