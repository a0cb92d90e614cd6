//! Lossy speculative sampling with a budget of divergence in place of α, also called mentored decoding.
//!
//! Narasimhan et al., "Faster Cascades via Speculative Decoding", first version, D.3: of all distributions `out`
//! with `KL(p ‖ out) <= R` aim at the one of which most draft tokens are accepted, `Σ min(q, out)`. It is q
//! where q itself is within the budget. Else it is lossy sampling's `max(min(q, p/(1 - α)), p/β)`, with tuned β and
//! the α that spends the budget: the best of what the target may say, for a token that p never has is refused at
//! every α. The divergence grows with α, so α is found by bisection.
//!
//! Sums of single-precision probabilities may differ from 1 by some 1e-5, which is more than a small budget. So divergences
//! are those of p and `out` divided by their sums.

use crate::real::Real;

/// The factor 1/(1 - α) by which p is loosened, such that `KL(p ‖ out)` is at most `budget`, in nats; infinite where
/// q itself is within the budget.
///
/// Where q has tokens that p never has, these are refused for every α, and the budget may be more than all other
/// tokens can spend: then the factor is the least with which the others are always accepted.
pub(super) fn loosened<F: Real>(draft: &[F], target: &[F], budget: f64) -> f64 {
    let ratios = Ratios::of(draft, target);
    if ratios.draft_divergence() <= budget {
        return f64::INFINITY;
    }
    let (mut within, mut beyond) = (1.0, ratios.largest());
    if beyond <= within || ratios.divergence(beyond) <= budget {
        return beyond.max(within);
    }
    loop {
        // The middle of the logarithms: the factor may have any magnitude.
        let middle = within.sqrt() * beyond.sqrt();
        if middle <= within || middle >= beyond {
            return within;
        }
        if ratios.divergence(middle) <= budget {
            within = middle;
        } else {
            beyond = middle;
        }
    }
}

/// The tokens that both models may say, by growing q/p, and sums over those before each of them, or over it and those
/// after it: differences of the one would lose what is small in the other. Sums have one entry more than `sorted`.
struct Ratios {
    /// q/p.
    sorted: Vec<f64>,
    draft_below: Vec<f64>,
    target_below: Vec<f64>,
    draft_above: Vec<f64>,
    target_above: Vec<f64>,
    /// Of `p ln(p/q)`, below.
    divergence: Vec<f64>,
    /// What the draft model says of tokens that the target never says: refused for every α.
    only_draft: f64,
    /// What the target says of tokens that the draft model never says.
    only_target: f64,
    /// Sum of p.
    of_target: f64,
    /// Logarithm of the sum of q, which is that of `out`, over the sum of p.
    excess: f64,
}

impl Ratios {
    fn of<F: Real>(draft: &[F], target: &[F]) -> Self {
        let sum = |probs: &[F]| probs.iter().map(|prob| prob.as_f64()).sum::<f64>();
        let (of_draft, of_target) = (sum(draft), sum(target));
        let (mut only_draft, mut only_target) = (0.0, 0.0);
        let mut shared = Vec::new();
        for (q, p) in draft.iter().zip(target) {
            match (q.as_f64(), p.as_f64()) {
                (q, p) if q > 0.0 && p > 0.0 => shared.push(((q / p).min(f64::MAX), q, p)),
                (q, p) => {
                    only_draft += q;
                    only_target += p;
                }
            }
        }
        shared.sort_by(|(left, ..), (right, ..)| left.total_cmp(right));
        let below = |term: fn(f64, f64) -> f64| sums(shared.iter().map(|&(_, q, p)| term(q, p)));
        let above = |term: fn(f64, f64) -> f64| {
            let mut sums = sums(shared.iter().rev().map(|&(_, q, p)| term(q, p)));
            sums.reverse();
            sums
        };
        Self {
            draft_below: below(|q, _| q),
            target_below: below(|_, p| p),
            draft_above: above(|q, _| q),
            target_above: above(|_, p| p),
            divergence: below(|q, p| p * (p / q).ln_portable()),
            sorted: shared.iter().map(|&(ratio, ..)| ratio).collect(),
            only_draft,
            only_target,
            of_target,
            excess: (of_draft / of_target).ln_portable(),
        }
    }

    /// The divergence of the distributions divided by their sums, from `Σ p ln(p/out)`.
    fn of_normalised(&self, sum: f64) -> f64 {
        sum / self.of_target + self.excess
    }

    /// The largest q/p; 0 where the models have no token in common.
    fn largest(&self) -> f64 {
        self.sorted.last().copied().unwrap_or_default()
    }

    /// KL(p ‖ q).
    fn draft_divergence(&self) -> f64 {
        if self.only_target > 0.0 {
            return f64::INFINITY;
        }
        self.of_normalised(self.divergence[self.sorted.len()])
    }

    /// KL(p ‖ out) where p is loosened by `factor`: `out` is `factor p` at the ratios above `factor`, q at those
    /// below, and p/β at the least ones, where β makes up for what is refused.
    fn divergence(&self, factor: f64) -> f64 {
        let kept = self.sorted.partition_point(|&ratio| ratio <= factor);
        let loosened = self.target_above[kept];
        let refused = self.only_draft + self.draft_above[kept] - factor * loosened;
        if refused <= 0.0 {
            return self.draft_divergence();
        }
        // Σ (λp - q)+ with λ = 1/β at a ratio: it grows with the ratio, and is what is refused between two of them.
        let held = |at: usize| {
            let raised = self.only_target + self.target_below[at];
            self.sorted[at] * raised - self.draft_below[at]
        };
        let (mut raised, mut after) = (0, kept);
        while raised < after {
            let middle = usize::midpoint(raised, after);
            if held(middle) < refused {
                raised = middle + 1;
            } else {
                after = middle;
            }
        }
        let mass = self.only_target + self.target_below[raised];
        let scale = (refused + self.draft_below[raised]) / mass;
        let unchanged = self.divergence[kept] - self.divergence[raised];
        let sum = unchanged - loosened * factor.ln_portable() - mass * scale.ln_portable();
        self.of_normalised(sum)
    }
}

/// The sums of the first 0, 1, 2, ... terms.
fn sums(terms: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sum = 0.0;
    let grown = terms.map(|term| {
        sum += term;
        sum
    });
    std::iter::once(0.0).chain(grown).collect()
}

#[cfg(test)]
mod tests {
    use super::super::lossy::apply_within;

    /// KL(p ‖ out) of the distributions divided by their sums.
    fn divergence(target: &[f32], out: &[f32]) -> f64 {
        let sum = |probs: &[f32]| probs.iter().map(|&prob| f64::from(prob)).sum::<f64>();
        let (of_target, of_out) = (sum(target), sum(out));
        let terms = target.iter().zip(out).map(|(&p, &out)| {
            let (p, out) = (f64::from(p) / of_target, f64::from(out) / of_out);
            p * (p / out).ln()
        });
        terms.sum()
    }

    #[test]
    fn a_small_budget_is_spent_where_sums_differ_from_one() {
        for off in [-3e-5_f32, 0.0, 3e-5] {
            let target = [0.5_f32, 0.25, 0.15, 0.1].map(|prob| prob * (1.0 + off));
            let draft = [0.45_f32, 0.3, 0.1, 0.15].map(|prob| prob * (1.0 - off));
            for budget in [1e-6, 1e-5, 1e-3] {
                let mut out = target;
                apply_within(budget, &draft, &mut out);
                let spent = divergence(&target, &out);
                assert!(
                    (spent - budget).abs() < 2e-7 + 1e-3 * budget,
                    "{off}: {spent} of {budget}"
                );
            }
        }
    }
}
