//! From what was asked for to what is carried out.

use super::axes::{cascade_of, drafting_of, method_of, rules_of, target_of, verification_of};
use super::compatibility::Options;
use super::names::{PlanKind, TargetKind};
use super::parameters::{self, ParameterReader};
use super::registry::{Method, find};
use super::spec::MethodSpec;
use super::table::{
    ACCEPT_AT, CODE_VARIANT, FALLBACK, KL_BUDGET, MAX_RUN, PAPER_DEFAULTS, PLAN, PROPOSAL, TARGET,
    VERIFY_ON_FINISH, WINDOW,
};
use super::{Choice, SettingValue, names};
use crate::bad_value::BadValue;
use crate::drafting::policies::CONFIDENCE;
use crate::drafting::{DraftLen, StopRule};
use crate::session::Plan;
use crate::target::TargetDistribution;
use crate::verification::Verification;

/// What the choice depends on beside the method.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// 0 or above.
    pub temperature: f32,
    /// Whether top-k, top-p or min-p cut the sampling distributions.
    pub cuts: bool,
    /// When drafting stops where the request does not say; none stands for `auto` under plan speculative, and for a
    /// fixed length elsewhere.
    pub draft_len: Option<DraftLen>,
}

impl Setup {
    /// Returns a setup in which nothing is cut.
    pub const fn at(temperature: f32) -> Self {
        Self {
            temperature,
            cuts: false,
            draft_len: None,
        }
    }
}

/// What the parameters of a plan and its target distribution come to.
struct ResolvedPlan {
    plan: Plan,
    /// Like `target`, with the rule that acts through the plan, if one does.
    target_kind: TargetKind,
    /// What the verifier draws from.
    target: TargetDistribution,
    verification: Verification,
    stop_rule: StopRule,
}

impl Choice {
    /// Returns what `spec` comes to.
    ///
    /// # Errors
    /// Names the setting that is unknown, out of range, not taken, or does not go with another.
    pub fn resolve(spec: &MethodSpec, setup: Setup) -> Result<Self, BadValue> {
        let method = find(&spec.method)?;
        let plan = spec.read(&PLAN, names::plan)?.unwrap_or(method.plan);
        // A plan that does not leave the other axes open brings the presets of its own method.
        let preset = if plan == method.plan || plan.takes_any_target() {
            method
        } else {
            method_of(plan)
        };
        let target = target_of(spec, plan, preset)?;
        let verification = verification_of(spec, plan, preset)?;
        let mut reader = ParameterReader::new(spec);
        let paper_defaults = if spec.gives(&PAPER_DEFAULTS) {
            reader.read(&PAPER_DEFAULTS, SettingValue::flag)?
        } else {
            false
        };
        let resolved = resolved(
            plan,
            target,
            verification,
            paper_defaults,
            spec,
            &mut reader,
        )?;
        let settings = reader.finish(&described(spec, method)?)?;
        let drafting = drafting_of(spec, plan, setup.draft_len)?;
        let cascade = cascade_of(spec, drafting.drafting, paper_defaults)?;
        let form = spec.read(&PROPOSAL, names::proposal)?;
        let acceptor = spec.read(&ACCEPT_AT, names::accepts_at_coordinator)?;
        let accept_at_coordinator = acceptor.unwrap_or_default();
        let options = Options {
            target: resolved.target,
            verification: resolved.verification,
            drafting: drafting.drafting,
            draft_len: drafting.len,
            tree: drafting.tree,
            schedule: drafting.schedule,
            accept_at_coordinator,
            greedy: setup.temperature == 0.0,
            proposal: form,
            ..Options::default()
        };
        options.check()?;
        form.map_or(Ok(()), |form| options.check_choice(form))?;
        let proposal = form.unwrap_or_else(|| options.default_form());
        Ok(Self {
            method,
            plan: resolved.plan,
            target: resolved.target,
            verification: resolved.verification,
            proposal,
            accept_at_coordinator,
            stop_rule: match drafting.len {
                DraftLen::Stop(rule) => rule,
                DraftLen::Fixed | DraftLen::Auto => resolved.stop_rule,
            },
            drafting: drafting.drafting,
            cascade,
            auto: drafting.len == DraftLen::Auto,
            tree: drafting.tree,
            schedule: drafting.schedule,
            draft_most: drafting.most,
            target_kind: resolved.target_kind,
            options,
            unscaled_is_sampling: setup.temperature == 1.0 && !setup.cuts,
            settings,
        })
    }
}

/// Reads the parameters of `plan` and `target`, and carries them over into both.
fn resolved(
    plan: PlanKind,
    target: TargetDistribution,
    verification: Verification,
    paper_defaults: bool,
    spec: &MethodSpec,
    reader: &mut ParameterReader<'_>,
) -> Result<ResolvedPlan, BadValue> {
    let target = match (target, parameters::kl_budget(spec)?) {
        (TargetDistribution::Lossy { .. }, Some(kl_budget)) => {
            TargetDistribution::LossyWithin { kl_budget }
        }
        _ => target,
    };
    let target = parameters_of_target(plan, target, reader)?;
    let mut resolved = ResolvedPlan {
        plan: Plan::Speculative,
        target_kind: TargetKind::of(target),
        target,
        verification,
        stop_rule: StopRule::NEVER,
    };
    match plan {
        PlanKind::Speculative => {}
        PlanKind::TargetOnly => resolved.plan = Plan::TargetOnly,
        PlanKind::DraftOnly => resolved.plan = Plan::DraftOnly,
        PlanKind::OracleCascade => resolved.plan = Plan::OracleCascade,
        PlanKind::TokenCascade => {
            if let TargetDistribution::Deferral { rule, alpha } = target
                && let Some(stop_rule) = rule.stop_rule
            {
                resolved.stop_rule = stop_rule(alpha);
            }
            let max_run = match reader.read(&MAX_RUN, SettingValue::count)? {
                0 => u32::MAX,
                max_run => max_run,
            };
            resolved.plan = Plan::TokenCascade { max_run };
        }
        PlanKind::SequenceCascade => {
            let alpha = match target {
                TargetDistribution::Deferral { alpha, .. } => alpha,
                TargetDistribution::Exact
                | TargetDistribution::Lossy { .. }
                | TargetDistribution::LossyWithin { .. } => 1.0,
            };
            resolved.plan = Plan::SequenceCascade {
                threshold: libm::log(1.0 - alpha),
                mean: reader.read(&parameters::mean(paper_defaults), SettingValue::flag)?,
            };
        }
        PlanKind::Bild => {
            let rollback = parameters::rollback(verification.rollback());
            let rollback = reader.read(&rollback, SettingValue::number)?;
            let fallback = reader.read(&FALLBACK, SettingValue::number)?;
            resolved.stop_rule = StopRule::new(&CONFIDENCE, fallback);
            let window = reader.read(&WINDOW, SettingValue::count)?;
            let verify_on_finish = reader.read(&VERIFY_ON_FINISH, SettingValue::flag)?;
            let code_variant = reader.read(&CODE_VARIANT, SettingValue::flag)?;
            resolved.verification = if code_variant {
                Verification::bild_code(rollback)
            } else {
                Verification::bild(rollback)
            };
            resolved.plan = Plan::Bild {
                window,
                verify_on_finish,
                code_variant,
            };
        }
    }
    if !plan.takes_any_target() {
        // The rule acts through the plan; what the verifier draws, it draws from p.
        resolved.target = TargetDistribution::Exact;
    }
    Ok(resolved)
}

fn parameters_of_target(
    plan: PlanKind,
    target: TargetDistribution,
    reader: &mut ParameterReader<'_>,
) -> Result<TargetDistribution, BadValue> {
    Ok(match target {
        TargetDistribution::Exact => target,
        TargetDistribution::LossyWithin { .. } => {
            reader.take(&KL_BUDGET)?;
            target
        }
        TargetDistribution::Lossy { alpha, beta } => {
            let alpha = reader.read(&parameters::lossy_alpha(alpha), SettingValue::number)?;
            let beta = reader.read(&parameters::lossy_beta(alpha, beta), SettingValue::beta)?;
            reader.take(&KL_BUDGET)?;
            TargetDistribution::Lossy { alpha, beta }
        }
        TargetDistribution::Deferral { rule, .. } => {
            let rule = reader.read(
                &parameters::rule_among(rules_of(plan), rule),
                SettingValue::rule,
            )?;
            let alpha = if plan == PlanKind::SequenceCascade {
                parameters::sequence_alpha()
            } else {
                parameters::rule_alpha(rule)
            };
            let alpha = reader.read(&alpha, SettingValue::number)?;
            TargetDistribution::Deferral { rule, alpha }
        }
    })
}

/// Returns the method and the axes that are given beside it, in words.
fn described(spec: &MethodSpec, method: &Method) -> Result<String, BadValue> {
    let given = [&PLAN, &TARGET].map(|axis| match spec.text(axis) {
        Some(value) => format!(" with {} '{value}'", axis.name),
        None => String::new(),
    });
    let mut words = format!("method '{}'{}", method.name, given.concat());
    let target = spec.read(&TARGET, names::target)?;
    let target = target.unwrap_or(TargetKind::of(method.target));
    if target == TargetKind::Lossy && parameters::kl_budget(spec)?.is_some() {
        words += " with kl_budget";
    }
    Ok(words)
}
