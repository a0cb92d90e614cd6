//! Rules that judge a position: the draft model speaks there, or the target does.
//!
//! π = (1 - δ) q + δ p with the sampling distributions (Narasimhan et al., "Faster Cascades via Speculative
//! Decoding", §4). A draft token is then refused with probability δ TV(p, q) (Lemma 3).

use crate::confidence::Confidence;
use crate::real::{Real, argmax, sum_of_pairs};
use crate::simd::kernel;
use crate::target::{DraftProbs, TargetProbs};

/// The quantities that a rule for positions can read, in double precision. Each function passes over the vocabulary.
pub(in super::super) struct Evidence<'a> {
    /// Confidence of the draft model's unscaled distribution.
    pub draft: Confidence<f64>,
    /// Confidence of the target model's unscaled distribution.
    pub target: Confidence<f64>,
    /// TV(p, q) between the sampling distributions.
    pub total_variation: &'a dyn Fn() -> f64,
    /// D(q, p) between the unscaled distributions.
    pub cross_entropy: &'a dyn Fn() -> f64,
}

/// δ: whether `judge` defers this position to the target.
pub(in super::super) fn defers<F: Real>(
    judge: fn(&Evidence<'_>, f64) -> bool,
    alpha: f64,
    draft: DraftProbs<'_, F>,
    target: &TargetProbs<'_, F>,
    greedy: bool,
) -> bool {
    let evidence = Evidence {
        draft: double(draft.confidence),
        target: double(target.confidence),
        total_variation: &|| total_variation(target.probs, draft.probs),
        cross_entropy: &|| cross_entropy(draft, target, greedy),
    };
    judge(&evidence, alpha)
}

fn double<F: Real>(confidence: Confidence<F>) -> Confidence<f64> {
    Confidence {
        max: confidence.max.as_f64(),
        entropy: confidence.entropy.as_f64(),
    }
}

kernel! {
    /// TV(p, q) = Σ (p - q)_+, between the sampling distributions.
    fn total_variation<'a, F: Real>(target: &'a [F], draft: &'a [F]) -> f64 {
        sum_of_pairs(target, draft, |p, q| (p - q).max(F::zero()).as_f64())
    }
}

/// D(q, p) of BiLD* (Appendix E.5), between the unscaled distributions at every temperature: the cross entropy
/// `-Σ q ln p`, infinite if q has mass where p has none. At temperature 0 it is `-ln p` of the one
/// token the draft model takes; the paper's missing minus is a slip.
fn cross_entropy<F: Real>(
    draft: DraftProbs<'_, F>,
    target: &TargetProbs<'_, F>,
    greedy: bool,
) -> f64 {
    let target = target.unscaled.unwrap_or(target.probs);
    if greedy {
        return -target[argmax(draft.probs)].ln_portable().as_f64();
    }
    let draft = draft.unscaled.unwrap_or(draft.probs);
    sum_of_logarithms(draft, target)
}

kernel! {
    /// `-Σ q ln p`.
    fn sum_of_logarithms<'a, F: Real>(draft: &'a [F], target: &'a [F]) -> f64 {
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
