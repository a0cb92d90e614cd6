//! Rules that judge tokens: the draft model speaks where it says an acceptable token.

use super::{DraftLaw, Rule, TargetLaw};
use crate::real::{Real, sum_of_pairs};
use crate::simd::{Kernel, Level};

/// Turns the target's sampling law into `π(v) = q(v) (1 - r(v)) + p(v) η` with the refused share of the
/// draft mass `η = Σ r q / Σ q`, and returns η; r(v) = 1 where token v is refused (Narasimhan et al., "Faster Cascades
/// via Speculative Decoding", §4, token-specific speculative cascades).
///
/// The mask is of the whole vocabulary, not of the drafted token alone, but only counts where the
/// draft law has mass. Equal models do not give π = p: what the mask refuses is drawn anew.
pub(super) fn apply<F: Real>(
    rule: Rule,
    alpha: f64,
    draft: DraftLaw<'_, F>,
    target: &mut TargetLaw<'_, F>,
) -> F {
    let most = target.confidence.max.as_f64();
    let least = match rule {
        Rule::TokenV3 => most * (1.0 - alpha),
        _ => most - alpha,
    };
    let judged = match rule {
        Rule::TokenV1 => Some(draft.unscaled.unwrap_or(draft.law)),
        _ => target.unscaled,
    };
    Level::detect().run(Mix {
        law: target.law,
        draft: draft.law,
        judged,
        least,
    })
}

struct Mix<'a, F> {
    law: &'a mut [F],
    draft: &'a [F],
    /// Unscaled probabilities that decide; none if they are `law` itself.
    judged: Option<&'a [F]>,
    /// A token judged below this is refused.
    least: f64,
}

impl<F: Real> Kernel for Mix<'_, F> {
    type Output = F;

    #[inline(always)]
    fn run(self) -> F {
        let least = self.least;
        let refused = |judged: F| judged.as_f64() < least;
        let judged = self.judged.unwrap_or(self.law);
        let eta = sum_of_pairs(self.draft, judged, |q, judged| {
            if refused(judged) { q.as_f64() } else { 0.0 }
        });
        // A law in single precision has a mass of nearly 1: where all of it is refused, all of p stands.
        let mass = sum_of_pairs(self.draft, judged, |q, _| q.as_f64());
        let eta = F::from_f64(eta / mass);
        let mixed = |p: F, q: F, judged: F| {
            let kept = if refused(judged) { F::zero() } else { q };
            kept + p * eta
        };
        match self.judged {
            Some(judged) => {
                for ((p, &q), &judged) in self.law.iter_mut().zip(self.draft).zip(judged) {
                    *p = mixed(*p, q, judged);
                }
            }
            None => {
                for (p, &q) in self.law.iter_mut().zip(self.draft) {
                    *p = mixed(*p, q, *p);
                }
            }
        }
        eta
    }
}
