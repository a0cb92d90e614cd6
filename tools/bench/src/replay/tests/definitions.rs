//! Target distributions and expected lengths by their definitions, without the shipped functions.

use speculation::TokenId;
use speculation::target::{Beta, TargetDistribution};
use speculation::verification::Verification;

use super::distributions::{Model, Said};

fn tv(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0
}

/// The largest number from `least` to `most` of which `fits` is true, up to rounding.
fn largest(mut least: f64, mut most: f64, fits: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..100 {
        let middle = f64::midpoint(least, most);
        if fits(middle) {
            least = middle;
        } else {
            most = middle;
        }
    }
    least
}

/// q if it is within the budget, else max(min(q, e^s p), p/β): a distribution, and as far from p as the budget allows.
fn within(q: &[f64], p: &[f64], kl_budget: f64) -> Vec<f64> {
    let divergence = |out: &[f64]| -> f64 {
        let pairs = p.iter().zip(out).filter(|(p, _)| **p > 0.0);
        pairs.map(|(p, out)| p * (p / out).ln()).sum()
    };
    if divergence(q) <= kl_budget {
        return q.to_vec();
    }
    let out = |s: f64| -> Vec<f64> {
        let raised = |scale: f64| {
            let pairs = q.iter().zip(p);
            pairs.map(move |(q, p)| q.min(p * s.exp()).max(p * scale))
        };
        raised(largest(0.0, 1.0, |scale| raised(scale).sum::<f64>() <= 1.0)).collect()
    };
    out(largest(0.0, 50.0, |s| divergence(&out(s)) <= kl_budget))
}

/// π and the deferral at a position.
pub(super) fn aimed(aim: &TargetDistribution, q: &Said, p: &Said) -> (Vec<f64>, Option<f64>) {
    let of = |mass: &dyn Fn(usize) -> f64| -> Vec<f64> { (0..q.probs.len()).map(mass).collect() };
    let (rule, alpha) = match *aim {
        TargetDistribution::Exact => return (p.probs.clone(), None),
        TargetDistribution::Lossy { alpha, beta } => {
            let Beta::Fixed(beta) = beta else {
                panic!("not defined here");
            };
            let kept = |v: usize| q.probs[v].min(p.probs[v] / (1.0 - alpha));
            let over = |v: usize| (p.probs[v] / beta - q.probs[v]).max(0.0);
            let refused = 1.0 - (0..q.probs.len()).map(kept).sum::<f64>();
            let total: f64 = (0..q.probs.len()).map(over).sum();
            let drawn = |v: usize| {
                if total > 0.0 {
                    over(v) / total
                } else {
                    p.probs[v]
                }
            };
            return (of(&|v| kept(v) + refused * drawn(v)), None);
        }
        TargetDistribution::LossyWithin { kl_budget } => {
            return (within(&q.probs, &p.probs, kl_budget), None);
        }
        TargetDistribution::Deferral { rule, alpha } => (rule, alpha),
    };
    let cross: f64 = (q.unscaled.iter().zip(&p.unscaled))
        .filter(|(q, _)| **q > 0.0)
        .map(|(q, p)| -q * p.ln())
        .sum();
    let distance = tv(&q.probs, &p.probs);
    let refused = |v: usize| match rule.name {
        "token-v1" => q.unscaled[v] < p.max() - alpha,
        "token-v2" => p.unscaled[v] < p.max() - alpha,
        _ => p.unscaled[v] < p.max() * (1.0 - alpha),
    };
    let defers = match rule.name {
        "chow" => q.max() < 1.0 - alpha,
        "chow-log" => q.entropy() > alpha,
        "diff" => q.max() < p.max() - alpha,
        "diff-log" => p.entropy() < q.entropy() - alpha,
        "opt" => q.max() < p.max() - alpha * distance,
        "opt-log" => p.entropy() < q.entropy() - alpha * distance,
        "bild" => cross > alpha,
        _ => {
            let masses = (0..q.probs.len()).filter(|&v| refused(v));
            let eta: f64 = masses.map(|v| q.probs[v]).sum();
            let kept = |v: usize| if refused(v) { 0.0 } else { q.probs[v] };
            return (of(&|v| kept(v) + eta * p.probs[v]), Some(eta));
        }
    };
    let probs = if defers { &p.probs } else { &q.probs };
    (probs.clone(), Some(f64::from(u8::from(defers))))
}

/// The acceptance of a position.
pub(super) fn acceptance(verification: Verification, q: &[f64], pi: &[f64]) -> f64 {
    (0..q.len())
        .filter(|&v| q[v] > 0.0 && pi[v] > 0.0)
        .map(|v| match verification.name {
            "coupled" => both(q, pi, v),
            _ => q[v].min(pi[v]),
        })
        .sum()
}

/// The probability that coupled sides both choose `v`.
fn both(q: &[f64], pi: &[f64], v: usize) -> f64 {
    let larger = |i: usize| (pi[i] / pi[v]).max(q[i] / q[v]);
    1.0 / (0..q.len()).map(larger).sum::<f64>()
}

/// What is multiplied up along a path.
#[derive(Clone, Copy)]
struct Path {
    /// The product of q.
    drafted: f64,
    /// The product of π.
    target: f64,
    /// min(1, ...) of the joint ratio, at every token.
    clipped: f64,
    /// The product of min(q, π).
    least: f64,
    /// The product of the probabilities that coupled sides both choose the token.
    both: f64,
}

/// 1 + E[accepted draft tokens] of blocks of `len` draft tokens: the sum of the probabilities of at
/// least 1, 2, .. accepted tokens, by the theorem of each verification.
pub(super) fn efficiency(
    verification: Verification,
    aim: &TargetDistribution,
    (draft, target): (Model, Model),
    len: usize,
) -> f64 {
    let nothing = Path {
        drafted: 1.0,
        target: 1.0,
        clipped: 1.0,
        least: 1.0,
        both: 1.0,
    };
    let mut paths: Vec<(Vec<TokenId>, Path)> = vec![(Vec::new(), nothing)];
    let mut expected = 1.0;
    for _ in 0..len {
        let mut longer = Vec::new();
        for (tokens, path) in &paths {
            let (q, p) = (draft.after(tokens), target.after(tokens));
            let (pi, _) = aimed(aim, &q, &p);
            for v in (0..pi.len()).filter(|&v| q.probs[v] > 0.0 && pi[v] > 0.0) {
                let along = Path {
                    drafted: path.drafted * q.probs[v],
                    target: path.target * pi[v],
                    clipped: (path.clipped * pi[v] / q.probs[v]).min(1.0),
                    least: path.least * q.probs[v].min(pi[v]),
                    both: path.both * both(&q.probs, &pi, v),
                };
                longer.push(([&tokens[..], &[v as TokenId]].concat(), along));
            }
        }
        paths = longer;
        expected += (paths.iter())
            .map(|(_, path)| match verification.name {
                "coupled" => path.both,
                "block" => path.drafted * path.clipped,
                "block-greedy" => path.drafted.min(path.target),
                _ => path.least,
            })
            .sum::<f64>();
    }
    expected
}
