//! Target distributions by the names of the files.

use speculation::confidence::Confidence;
use speculation::real::Real;
use speculation::target::{DraftLaw, Rule, TargetDistribution, TargetLaw};

pub(crate) fn rule_named(name: &str) -> Option<Rule> {
    let name = match name {
        "bild_star" => "bild".to_owned(),
        other => other.replace('_', "-"),
    };
    Rule::find(&name)
}

pub(crate) fn confidence<F: Real>(law: &[F]) -> Confidence<F> {
    let entropy = |mass: f64| if mass > 0.0 { -mass * mass.ln() } else { 0.0 };
    Confidence {
        max: law.iter().copied().fold(F::zero(), F::max),
        entropy: F::from_f64(law.iter().map(|mass| entropy(mass.as_f64())).sum()),
    }
}

/// π, from sampling laws and unscaled laws.
pub(crate) fn mixed<F: Real>(
    distribution: TargetDistribution,
    (q, p): (&[F], &[F]),
    (unscaled_q, unscaled_p): (&[F], &[F]),
    greedy: bool,
) -> Vec<F> {
    let mut law = p.to_vec();
    let draft = DraftLaw {
        law: q,
        unscaled: Some(unscaled_q),
        confidence: confidence(unscaled_q),
    };
    let target = TargetLaw {
        law: &mut law,
        unscaled: Some(unscaled_p),
        confidence: confidence(unscaled_p),
    };
    distribution.apply(draft, target, greedy);
    law
}
