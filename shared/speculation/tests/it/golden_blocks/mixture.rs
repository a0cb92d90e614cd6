//! Target distributions by the names of the files.

use speculation::real::Real;
use speculation::target::{Rule, TargetDistribution};

use crate::model::{Model, apply};

pub(crate) fn rule_named(name: &str) -> Option<Rule> {
    let name = match name {
        "bild_star" => "bild".to_owned(),
        other => other.replace('_', "-"),
    };
    Rule::find(&name)
}

/// π, from sampling distributions and unscaled distributions.
pub(crate) fn mixed<F: Real>(
    distribution: TargetDistribution,
    (q, p): (&[F], &[F]),
    (unscaled_q, unscaled_p): (&[F], &[F]),
    greedy: bool,
) -> Vec<F> {
    let (q, p) = (Model::scaled(q, unscaled_q), Model::scaled(p, unscaled_p));
    apply(distribution, &q, &p, greedy).1
}
