//! Target distributions on the wire.

use speculation::bad_value::BadValue;
use speculation::target::{Beta, RULES, Rule, TargetDistribution};
use v1::target_distribution::Kind;

use crate::status::BadField;
use crate::v1;

/// Reads a target distribution; absent is the exact one.
///
/// # Errors
/// Names the field that is missing, unknown, or out of range.
pub fn from_wire(wire: Option<&v1::TargetDistribution>) -> Result<TargetDistribution, BadField> {
    let Some(wire) = wire else {
        return Ok(TargetDistribution::Exact);
    };
    let alpha = || {
        wire.alpha
            .ok_or_else(|| BadField::new("target.alpha", "missing"))
    };
    let what = "kind of target distribution";
    let target = match BadField::enumerated("target.kind", wire.kind, what)? {
        Kind::Unspecified | Kind::Exact => TargetDistribution::Exact,
        Kind::Lossy => match wire.kl_budget {
            Some(_) if wire.alpha.is_some() || wire.beta.is_some() || wire.beta_tuned => {
                let problem = "stands in place of alpha and beta; leave these out";
                return Err(BadField::new("target.kl_budget", problem));
            }
            Some(kl_budget) => TargetDistribution::LossyWithin { kl_budget },
            None => TargetDistribution::Lossy {
                alpha: alpha()?,
                beta: if wire.beta_tuned {
                    Beta::Tuned
                } else {
                    Beta::Fixed(wire.beta.unwrap_or(1.0))
                },
            },
        },
        Kind::Deferral => TargetDistribution::Deferral {
            rule: rule_from_wire("target.rule", &wire.rule)?,
            alpha: alpha()?,
        },
    };
    let valid = target.validate();
    valid.map_err(|bad| BadField::new(format!("target.{}", bad.field), bad.problem))?;
    Ok(target)
}

/// Reads the name of a deferral rule that stands in `field`.
///
/// # Errors
/// If there is none of that name; the message lists them all.
pub fn rule_from_wire(field: &str, name: &str) -> Result<Rule, BadField> {
    let known = RULES.iter().map(|rule| rule.name);
    Rule::find(name).ok_or_else(|| BadValue::unknown(field, name, known).into())
}

/// Writes a target distribution.
pub fn to_wire(target: TargetDistribution) -> v1::TargetDistribution {
    match target {
        TargetDistribution::Exact => v1::TargetDistribution {
            kind: Kind::Exact.into(),
            ..Default::default()
        },
        TargetDistribution::Lossy { alpha, beta } => v1::TargetDistribution {
            kind: Kind::Lossy.into(),
            alpha: Some(alpha),
            beta: match beta {
                Beta::Fixed(beta) => Some(beta),
                Beta::Tuned => None,
            },
            beta_tuned: beta == Beta::Tuned,
            ..Default::default()
        },
        TargetDistribution::LossyWithin { kl_budget } => v1::TargetDistribution {
            kind: Kind::Lossy.into(),
            kl_budget: Some(kl_budget),
            ..Default::default()
        },
        TargetDistribution::Deferral { rule, alpha } => v1::TargetDistribution {
            kind: Kind::Deferral.into(),
            rule: rule.name.to_owned(),
            alpha: Some(alpha),
            ..Default::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use speculation::target::rules;

    use super::*;

    #[test]
    fn targets_survive_the_wire() {
        let lossy = |alpha, beta| TargetDistribution::Lossy { alpha, beta };
        let mut targets = vec![
            TargetDistribution::Exact,
            lossy(0.25, Beta::Fixed(1.5)),
            lossy(0.25, Beta::Tuned),
            TargetDistribution::LossyWithin { kl_budget: 0.1 },
        ];
        targets.extend(RULES.iter().map(|&rule| TargetDistribution::Deferral {
            rule,
            alpha: rule.alpha.default,
        }));
        for target in targets {
            assert_eq!(from_wire(Some(&to_wire(target))), Ok(target));
        }
        assert_eq!(from_wire(None), Ok(TargetDistribution::Exact));
    }

    #[test]
    fn each_fault_is_named() {
        type Fault = fn(&mut v1::TargetDistribution);
        let chow = to_wire(TargetDistribution::Deferral {
            rule: rules::CHOW,
            alpha: 0.5,
        });
        let lossy = to_wire(TargetDistribution::Lossy {
            alpha: 0.5,
            beta: Beta::Fixed(1.0),
        });
        let within = to_wire(TargetDistribution::LossyWithin { kl_budget: 0.1 });
        let faults: [(&str, _, Fault); 9] = [
            ("target.rule", &chow, |wire| wire.rule = "chaw".to_owned()),
            ("target.alpha", &chow, |wire| wire.alpha = None),
            ("target.alpha", &chow, |wire| wire.alpha = Some(f64::NAN)),
            ("target.alpha", &lossy, |wire| wire.alpha = Some(1.0)),
            ("target.beta", &lossy, |wire| wire.beta = Some(0.1)),
            ("target.kl_budget", &within, |wire| wire.alpha = Some(0.2)),
            ("target.kl_budget", &within, |wire| wire.beta_tuned = true),
            ("target.kl_budget", &within, |wire| {
                wire.kl_budget = Some(-0.1);
            }),
            ("target.kind", &chow, |wire| wire.kind = 9),
        ];
        for (field, wire, fault) in faults {
            let mut wire = wire.clone();
            fault(&mut wire);
            assert_eq!(from_wire(Some(&wire)).expect_err(field).field, field);
        }
    }
}
