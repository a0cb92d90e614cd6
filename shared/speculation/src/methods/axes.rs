//! The axes in effect: what was asked for, else the preset, and what does not go together.

use super::names::{self, PlanKind, TargetKind};
use super::parameters;
use super::registry::{LOSSY, METHODS, Method};
use super::spec::MethodSpec;
use super::table::{TARGET, VERIFICATION};
use crate::bad_value::BadValue;
use crate::target::{RULES, Rule, TargetDistribution, rules};
use crate::verification::Verification;

/// The first method with `plan`: the one that is nothing but the plan.
pub(super) fn method_of(plan: PlanKind) -> &'static Method {
    let found = METHODS.iter().find(|method| method.plan == plan);
    found.unwrap_or(&METHODS[0])
}

/// The rules that go with `plan`.
pub(super) fn rules_of(plan: PlanKind) -> &'static [Rule] {
    match plan {
        PlanKind::TokenCascade => rules::for_drafters(),
        PlanKind::SequenceCascade => &[rules::CHOW],
        PlanKind::Speculative
        | PlanKind::TargetOnly
        | PlanKind::DraftOnly
        | PlanKind::OracleCascade
        | PlanKind::Bild => RULES,
    }
}

/// The effective target distribution, its parameters as preset.
pub(super) fn target_of(
    spec: &MethodSpec,
    plan: PlanKind,
    preset: &Method,
) -> Result<TargetDistribution, BadValue> {
    let Some(target) = spec.text(&TARGET) else {
        return Ok(preset.target);
    };
    let target = names::target(&target)?;
    if let (TargetKind::Rule(target), Some(rule)) = (target, parameters::rule(spec)?)
        && target != rule
    {
        let (rule, target) = (rule.name, target.name);
        let problem = format!("'{rule}' contradicts target '{target}', leave one of them out");
        return Err(BadValue::new("rule", problem));
    }
    let fits = match target {
        _ if plan.takes_any_target() => true,
        TargetKind::Rule(rule) => {
            TargetKind::of(preset.target) != TargetKind::Exact && rules_of(plan).contains(&rule)
        }
        TargetKind::Exact | TargetKind::Lossy => target == TargetKind::of(preset.target),
    };
    if !fits {
        let expected = match preset.target {
            TargetDistribution::Deferral { .. } => {
                let names: Vec<_> = rules_of(plan).iter().map(|rule| rule.name).collect();
                names.join(" or ")
            }
            TargetDistribution::Exact
            | TargetDistribution::Lossy { .. }
            | TargetDistribution::LossyWithin { .. } => {
                TargetKind::of(preset.target).name().to_owned()
            }
        };
        let problem = format!(
            "'{}' does not go with plan '{}', expected {expected}; or choose plan speculative or \
             oracle-cascade",
            target.name(),
            plan.name()
        );
        return Err(BadValue::new("target", problem));
    }
    if target == TargetKind::of(preset.target) {
        return Ok(preset.target);
    }
    Ok(match target {
        TargetKind::Exact => TargetDistribution::Exact,
        TargetKind::Lossy => LOSSY,
        TargetKind::Rule(rule) => TargetDistribution::Deferral {
            rule,
            alpha: rule.alpha.default,
        },
    })
}

/// The effective verification, its parameter as preset.
pub(super) fn verification_of(
    spec: &MethodSpec,
    plan: PlanKind,
    preset: &Method,
) -> Result<Verification, BadValue> {
    let requested = spec.text(&VERIFICATION);
    let requested = requested
        .map(|name| names::verification(&name))
        .transpose()?;
    let own = match (plan, preset.verification) {
        (PlanKind::Speculative, own) if !own.is_choosable => Verification::COUPLED,
        (PlanKind::Speculative | PlanKind::Bild, verification) => verification,
        _ => Verification::COUPLED,
    };
    match requested {
        Some(verification) if plan == PlanKind::Speculative => Ok(verification),
        Some(verification) if verification != own => Err(BadValue::new(
            "verification",
            format!(
                "'{}' does not go with plan '{}', which draws as '{}'; leave it out, or choose plan \
                 speculative",
                verification.name,
                plan.name(),
                own.name
            ),
        )),
        _ => Ok(own),
    }
}
