//! Lossy speculative sampling: a draft token may stand more often than the target model's distribution allows.
//!
//! Narasimhan et al., "Faster Cascades via Speculative Decoding", §2 and Appendix E.6: accept x drawn
//! from q with probability `κ(x) = min(1, p(x) / ((1 - α) q(x)))`, else draw from the residual
//! `norm((p/β - q)_+)`, with β >= 1 - α. What comes out is
//!
//! `out = q κ + r norm((p/β - q)_+)`, `r = Σ (q - p/(1 - α))_+`,
//!
//! a distribution for every β, and the distribution that requests aim at here. The paper's Table 1 names
//! `max(min(q, p/(1 - α)), p/β)` instead, which is this distribution if β is tuned and no distribution
//! otherwise (its mass is `1 + TV(p, q) - r` at β = 1).
//!
//! Token verification of `out` is exactly the procedure above at a drafted position. Where κ < 1,
//! p/β <= p/(1 - α) < q: the residual has no mass there, so `out/q = κ`. Where κ = 1, `out >= q`: the
//! token stands, and `(out - q)_+` is the residual up to its mass. The exception is a residual
//! without mass, where p takes its place: then a refused token may be drawn again, `out/q` is above
//! κ, and only the distribution that comes out is the same.

use super::rules::{Rule, TOKEN_V3};
use super::{Beta, kl_budget};
use crate::real::{Real, sum_of_pairs};
use crate::simd::kernel;

/// What decides at temperature 0, where both sampling distributions are one-hot and `κ` knows yes and no alone: a draft token
/// stands whose unscaled probability is at least `(1 - α) max p` (the lenience of Leviathan, Kalman, Matias 2023, for greedy
/// decoding).
pub(super) const GREEDY: Rule = TOKEN_V3;

/// Whether nothing is lost: then `out` is p.
pub(super) fn is_exact(alpha: f64, beta: Beta) -> bool {
    alpha == 0.0 && matches!(beta, Beta::Tuned | Beta::Fixed(1.0))
}

/// Turns the target's sampling distribution into `out`, in place.
pub(super) fn apply<F: Real>(alpha: f64, beta: Beta, draft: &[F], probs: &mut [F]) {
    emitted(probs, draft, 1.0 / (1.0 - alpha), beta);
}

/// The same with the α that spends a budget of divergence, and tuned β. Without a budget the distribution is left
/// bit for bit.
pub(super) fn apply_within<F: Real>(kl_budget: f64, draft: &[F], probs: &mut [F]) {
    if kl_budget == 0.0 {
        return;
    }
    let loosened = kl_budget::loosened(draft, probs, kl_budget);
    if loosened.is_infinite() {
        probs.copy_from_slice(draft);
    } else {
        emitted(probs, draft, loosened, Beta::Tuned);
    }
}

/// The β at which the residual `Σ (p/β - q)_+` holds exactly what is refused,
/// `Σ (q - p/(1 - α))_+`; infinite where nothing is refused. It is never below 1.
///
/// Appendix E.6 asks for this equation and searches a grid of β; here it is solved. With λ = 1/β the
/// left side is convex and piecewise linear with breakpoints q/p, at least the right side at λ = 1.
/// Newton's method from there comes down from the right, is exact once it stands on the right
/// segment, and gets there in few steps: each divides the product of excess and slope by 4 or more.
pub fn tuned_beta<F: Real>(draft: &[F], target: &[F], alpha: f64) -> f64 {
    let loosened = 1.0 / (1.0 - alpha);
    let refused = refused_mass(draft, target, loosened);
    if refused > 0.0 {
        1.0 / tuned_scale(draft, target, refused)
    } else {
        f64::INFINITY
    }
}

/// `Σ (q - p/(1 - α))_+`: the probability that a draft token is refused.
#[inline(always)]
fn refused_mass<F: Real>(draft: &[F], target: &[F], loosened: f64) -> f64 {
    sum_of_pairs(draft, target, |q, p| {
        (q.as_f64() - p.as_f64() * loosened).max(0.0)
    })
}

/// `Σ (λ p - q)_+`.
#[inline(always)]
fn residual_mass<F: Real>(draft: &[F], target: &[F], scale: f64) -> f64 {
    sum_of_pairs(draft, target, |q, p| {
        (p.as_f64() * scale - q.as_f64()).max(0.0)
    })
}

/// λ = 1/β with a residual of mass `refused`, which is more than 0.
#[inline(always)]
fn tuned_scale<F: Real>(draft: &[F], target: &[F], refused: f64) -> f64 {
    let mut scale = 1.0;
    loop {
        let excess = residual_mass(draft, target, scale) - refused;
        let slope = sum_of_pairs(draft, target, |q, p| {
            let p = p.as_f64();
            if p * scale > q.as_f64() { p } else { 0.0 }
        });
        let next = scale - excess / slope;
        // Also ends where rounding left nothing to do, or no slope (then `next` is NaN or beyond).
        let steps_down = next > 0.0 && next < scale * (1.0 - 4.0 * f64::EPSILON);
        if !steps_down {
            return scale;
        }
        scale = next;
    }
}

kernel! {
    /// `loosened` is 1 / (1 - α).
    fn emitted<'a, F: Real>(probs: &'a mut [F], draft: &'a [F], loosened: f64, beta: Beta) -> () {
        let refused = refused_mass(draft, probs, loosened);
        if refused <= 0.0 {
            probs.copy_from_slice(draft);
            return;
        }
        let scale = match beta {
            Beta::Fixed(beta) => 1.0 / beta,
            Beta::Tuned => tuned_scale(draft, probs, refused),
        };
        let residual = residual_mass(draft, probs, scale);
        let accepted = |p: f64, q: f64| q.min(p * loosened);
        if residual > 0.0 {
            let share = refused / residual;
            for (p, &q) in probs.iter_mut().zip(draft) {
                let (target, draft) = (p.as_f64(), q.as_f64());
                let drawn = (target * scale - draft).max(0.0);
                *p = F::from_f64(accepted(target, draft) + drawn * share);
            }
        } else {
            for (p, &q) in probs.iter_mut().zip(draft) {
                let (target, draft) = (p.as_f64(), q.as_f64());
                *p = F::from_f64(accepted(target, draft) + target * refused);
            }
        }
    }
}
