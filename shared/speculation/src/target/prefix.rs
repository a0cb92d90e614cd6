//! Rules that judge a position: the draft model speaks there, or the target does.
//!
//! π = (1 - δ) q + δ p with the sampling laws (Narasimhan et al., "Faster Cascades via Speculative
//! Decoding", §4). A draft token is then refused with probability δ TV(p, q) (Lemma 3).

use super::{DraftLaw, Rule, TargetLaw};
use crate::real::{Real, argmax, sum_of_pairs};
use crate::simd::kernel;

/// δ: whether `rule`, not one of the token rules, defers this position to the target.
///
/// Scalars are compared in double precision.
pub(super) fn defers<F: Real>(
    rule: Rule,
    alpha: f64,
    draft: DraftLaw<'_, F>,
    target: &TargetLaw<'_, F>,
    greedy: bool,
) -> bool {
    let (small, big) = (draft.confidence, target.confidence);
    let (small_max, big_max) = (small.max.as_f64(), big.max.as_f64());
    let (small_entropy, big_entropy) = (small.entropy.as_f64(), big.entropy.as_f64());
    match rule {
        Rule::Chow => small_max < 1.0 - alpha,
        Rule::ChowLog => small_entropy > alpha,
        Rule::Diff => small_max < big_max - alpha,
        Rule::DiffLog => big_entropy < small_entropy - alpha,
        Rule::Opt => small_max < big_max - alpha * total_variation(target.law, draft.law),
        Rule::OptLog => {
            big_entropy < small_entropy - alpha * total_variation(target.law, draft.law)
        }
        Rule::Bild => divergence(draft, target, greedy) > alpha,
        Rule::TokenV1 | Rule::TokenV2 | Rule::TokenV3 => {
            unreachable!("{} judges tokens, not positions", rule.name())
        }
    }
}

kernel! {
    /// TV(p, q) = Σ (p - q)_+, between the sampling laws.
    fn total_variation<'a, F: Real>(target: &'a [F], draft: &'a [F]) -> f64 {
        sum_of_pairs(target, draft, |p, q| (p - q).max(F::zero()).as_f64())
    }
}

/// D(q, p) of BiLD* (Appendix E.5), between the unscaled laws at every temperature: the cross entropy
/// `-Σ q ln p`, infinite if q has mass where p has none. At temperature 0 it is `-ln p` of the one
/// token the draft model takes; the paper's missing minus is a slip.
fn divergence<F: Real>(draft: DraftLaw<'_, F>, target: &TargetLaw<'_, F>, greedy: bool) -> f64 {
    let target = target.unscaled.unwrap_or(target.law);
    if greedy {
        return -target[argmax(draft.law)].ln_portable().as_f64();
    }
    let draft = draft.unscaled.unwrap_or(draft.law);
    cross_entropy(draft, target)
}

kernel! {
    fn cross_entropy<'a, F: Real>(draft: &'a [F], target: &'a [F]) -> f64 {
        sum_of_pairs(draft, target, |q, p| {
            let logarithm = -p.ln_portable().as_f64();
            if q > F::zero() {
                q.as_f64() * logarithm
            } else {
                0.0
            }
        })
    }
}
