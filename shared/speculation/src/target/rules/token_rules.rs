//! The rules for tokens (§4, token-specific speculative cascades): a token is refused whose probability is too far
//! below the target's largest.

use super::{Alpha, Judge, Judged, Rule};
use crate::real::{Real, sum_of_pairs};
use crate::simd::kernel;
use crate::target::{DraftProbs, Needs, TargetProbs};

/// Refuses token v iff q(v) < max p - α.
pub const TOKEN_V1: Rule = Rule {
    name: "token-v1",
    summary: "refuse tokens whose draft probability is below max p - alpha",
    alpha: Alpha {
        default: 0.1,
        range: (-1.0, 1.0),
    },
    needs: |_| Needs {
        draft_unscaled: true,
        ..Needs::MAX
    },
    judge: Judge::Tokens {
        judged: Judged::Draft,
        bound: |most, alpha| most - alpha,
    },
    stop_rule: None,
};

/// Refuses token v iff p(v) < max p - α.
pub const TOKEN_V2: Rule = Rule {
    name: "token-v2",
    summary: "refuse tokens whose target probability is below max p - alpha",
    alpha: Alpha {
        default: 0.1,
        range: (-1.0, 1.0),
    },
    needs: |_| Needs {
        target_unscaled: true,
        ..Needs::MAX
    },
    judge: Judge::Tokens {
        judged: Judged::Target,
        bound: |most, alpha| most - alpha,
    },
    stop_rule: None,
};

/// Refuses token v iff p(v) < max p (1 - α).
pub const TOKEN_V3: Rule = Rule {
    name: "token-v3",
    summary: "refuse tokens whose target probability is below max p (1 - alpha)",
    alpha: Alpha {
        default: 0.3,
        range: (-1.0, 1.0),
    },
    needs: |_| Needs {
        target_unscaled: true,
        ..Needs::MAX
    },
    judge: Judge::Tokens {
        judged: Judged::Target,
        bound: |most, alpha| most * (1.0 - alpha),
    },
    stop_rule: None,
};

/// Turns the target's sampling distribution into `π(v) = q(v) (1 - r(v)) + p(v) η` with the refused share of the
/// draft mass `η = Σ r q / Σ q`, and returns η; r(v) = 1 where token v is refused (Narasimhan et al., "Faster Cascades
/// via Speculative Decoding", §4, token-specific speculative cascades).
///
/// The mask is of the whole vocabulary, not of the drafted token alone, but only counts where the
/// draft distribution has mass. Equal models do not give π = p: what the mask refuses is drawn anew.
pub(in crate::target) fn apply<F: Real>(
    judged: Judged,
    bound: fn(f64, f64) -> f64,
    alpha: f64,
    draft: DraftProbs<'_, F>,
    target: &mut TargetProbs<'_, F>,
) -> F {
    let least = bound(target.confidence.max.as_f64(), alpha);
    let judged = match judged {
        Judged::Draft => Some(draft.unscaled.unwrap_or(draft.probs)),
        Judged::Target => target.unscaled,
    };
    mix(target.probs, draft.probs, judged, least)
}

kernel! {
    /// `judged` holds the unscaled probabilities that decide, none if they are `probs` itself; a token judged
    /// below `least` is refused.
    fn mix<'a, F: Real>(
        probs: &'a mut [F],
        draft: &'a [F],
        judged: Option<&'a [F]>,
        least: f64,
    ) -> F {
        let refused = |judged: F| judged.as_f64() < least;
        let by = judged.unwrap_or(probs);
        let eta = sum_of_pairs(draft, by, |q, judged| {
            if refused(judged) { q.as_f64() } else { 0.0 }
        });
        // A distribution in single precision has a mass of nearly 1: where all of it is refused, all of p stands.
        let mass = sum_of_pairs(draft, by, |q, _| q.as_f64());
        let eta = F::from_f64(eta / mass);
        let mixed = |p: F, q: F, judged: F| {
            let kept = if refused(judged) { F::zero() } else { q };
            kept + p * eta
        };
        match judged {
            Some(judged) => {
                for ((p, &q), &judged) in probs.iter_mut().zip(draft).zip(judged) {
                    *p = mixed(*p, q, judged);
                }
            }
            None => {
                for (p, &q) in probs.iter_mut().zip(draft) {
                    *p = mixed(*p, q, *p);
                }
            }
        }
        eta
    }
}
