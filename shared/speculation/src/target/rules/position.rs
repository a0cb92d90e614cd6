//! Rules that judge a position: the draft model speaks there, or the target does.
//!
//! π = (1 - δ) q + δ p with the sampling distributions (Narasimhan et al., "Faster Cascades via Speculative
//! Decoding", §4). A draft token is then refused with probability δ TV(p, q) (Lemma 3).

use super::{Alpha, Judge, Rule};
use crate::confidence::Confidence;
use crate::drafting::StopRule;
use crate::drafting::policies::{CONFIDENCE, ENTROPY};
use crate::real::{Real, argmax, sum_of_pairs};
use crate::simd::kernel;
use crate::target::{DraftProbs, Needs, TargetProbs};

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
        draft: draft.confidence.double(),
        target: target.confidence.double(),
        total_variation: &|| total_variation(target.probs, draft.probs),
        cross_entropy: &|| cross_entropy(draft, target, greedy),
    };
    judge(&evidence, alpha)
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

/// Defers iff D(q, p) > α: BiLD* of the paper (Appendix E.5), by how badly the target model would predict the draft
/// model.
pub const BILD: Rule = Rule {
    name: "bild",
    summary: "defer where the cross entropy of draft and target is above alpha, in nats",
    alpha: Alpha {
        default: 5.0,
        range: (0.0, 100.0),
    },
    needs: |greedy| Needs {
        draft_unscaled: !greedy,
        dense: !greedy,
        target_unscaled: true,
        ..Needs::DRAFT
    },
    judge: Judge::Position(|at, alpha| (at.cross_entropy)() > alpha),
    stop_rule: None,
};

/// Defers iff max q < 1 - α: Chow's rule. The draft model's confidence alone decides, so that a drafter can apply the
/// rule by itself.
pub const CHOW: Rule = Rule {
    name: "chow",
    summary: "defer where the draft model's largest probability is below 1 - alpha",
    alpha: Alpha {
        default: 0.5,
        range: (0.0, 1.0),
    },
    needs: |_| Needs::MAX,
    judge: Judge::Position(|at, alpha| at.draft.max < 1.0 - alpha),
    stop_rule: Some(|alpha| StopRule::new(&CONFIDENCE, 1.0 - alpha)),
};

/// Defers iff H(q) > α, which a drafter can apply by itself, too.
pub const CHOW_LOG: Rule = Rule {
    name: "chow-log",
    summary: "defer where the draft model's entropy is above alpha, in nats",
    alpha: Alpha {
        default: 1.0,
        range: (0.0, 100.0),
    },
    needs: |_| Needs::ENTROPY,
    judge: Judge::Position(|at, alpha| at.draft.entropy > alpha),
    stop_rule: Some(|alpha| StopRule::new(&ENTROPY, alpha)),
};

/// Defers iff max q < max p - α.
pub const DIFF: Rule = Rule {
    name: "diff",
    summary: "defer where the target's largest probability leads by more than alpha",
    alpha: Alpha {
        default: 0.1,
        range: (-1.0, 1.0),
    },
    needs: |_| Needs::MAX,
    judge: Judge::Position(|at, alpha| at.draft.max < at.target.max - alpha),
    stop_rule: None,
};

/// Defers iff H(p) < H(q) - α.
pub const DIFF_LOG: Rule = Rule {
    name: "diff-log",
    summary: "defer where the target's entropy is lower by more than alpha, in nats",
    alpha: Alpha {
        default: 0.1,
        range: (-100.0, 100.0),
    },
    needs: |_| Needs::ENTROPY,
    judge: Judge::Position(|at, alpha| at.target.entropy < at.draft.entropy - alpha),
    stop_rule: None,
};

/// Defers iff max q < max p - α TV(p, q): the optimal rule, of the speculative cascade. What deferring gains stands
/// against α times what it costs in acceptance, which is the distance of the two models (Lemma 3 and equation 8).
pub const OPT: Rule = Rule {
    name: "opt",
    summary: "like diff, with alpha times the distance of the two distributions",
    alpha: Alpha {
        default: 0.5,
        range: (-100.0, 100.0),
    },
    needs: |_| Needs::MAX,
    judge: Judge::Position(|at, alpha| {
        at.draft.max < at.target.max - alpha * (at.total_variation)()
    }),
    stop_rule: None,
};

/// Defers iff H(p) < H(q) - α TV(p, q).
pub const OPT_LOG: Rule = Rule {
    name: "opt-log",
    summary: "like diff-log, with alpha times the distance of the two distributions",
    alpha: Alpha {
        default: 0.5,
        range: (-100.0, 100.0),
    },
    needs: |_| Needs::ENTROPY,
    judge: Judge::Position(|at, alpha| {
        at.target.entropy < at.draft.entropy - alpha * (at.total_variation)()
    }),
    stop_rule: None,
};
