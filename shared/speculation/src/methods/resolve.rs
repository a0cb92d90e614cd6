//! From what was asked for to what is carried out.

use super::axes::{method_of, rules_of, target_of, verification_of};
use super::compatibility::Options;
use super::drafting::drafting_of;
use super::names::{PlanKind, TargetKind};
use super::parameters::{
    self, CODE_VARIANT, FALLBACK, KL_BUDGET, MAX_RUN, MEAN, Parameters, Reader, SEQUENCE_ALPHA,
    VERIFY_ON_FINISH, WINDOW,
};
use super::registry::{Method, find};
use super::{BadValue, Choice};
use crate::drafting::policies::CONFIDENCE;
use crate::drafting::{DraftLen, Drafting, StopRule, TreeShape};
use crate::proposal::ProposalForm;
use crate::session::Plan;
use crate::target::TargetDistribution;
use crate::verification::Verification;

/// What a request asked for. The default asks for the default method.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MethodRequest<'a> {
    /// Name or alias of the method; empty is the default one.
    pub method: &'a str,
    /// The plan, if not the method's.
    pub plan: Option<PlanKind>,
    /// The target distribution, if not the method's.
    pub target: Option<TargetKind>,
    /// The verification, if not the method's.
    pub verification: Option<Verification>,
    /// The form in which the draft distribution is sent to the verifier, if not the least that it needs.
    pub proposal: Option<ProposalForm>,
    /// Whether the coordinator decides acceptance, rather than the verifier.
    pub accept_at_coordinator: bool,
    /// Who proposes, if not the draft model.
    pub drafting: Option<Drafting>,
    /// When drafting stops; none stands for `auto` under plan speculative, and for a fixed length elsewhere.
    pub draft_len: Option<DraftLen>,
    /// The shape of blocks, if not a chain.
    pub tree: Option<TreeShape>,
    /// Parameters.
    pub parameters: Parameters,
}

/// What the parameters of a plan and its target distribution come to.
struct Carried {
    plan: Plan,
    /// With the rule that acts through the plan, if one does.
    aim: TargetDistribution,
    /// What the verifier draws from.
    target: TargetDistribution,
    verification: Verification,
    stop_rule: StopRule,
}

impl Choice {
    /// What `requested` comes to at `temperature`, 0 or above. `cuts` tells whether top-k, top-p or min-p
    /// cut the sampling distributions.
    ///
    /// # Errors
    /// Names the field that is unknown, out of range, not taken, or does not go with another.
    pub fn resolve(
        requested: &MethodRequest<'_>,
        temperature: f32,
        cuts: bool,
    ) -> Result<Self, BadValue> {
        let method = find(requested.method)?;
        let plan = requested.plan.unwrap_or(method.plan);
        // A plan that does not leave the other axes open brings the presets of its own method.
        let preset = if plan == method.plan || plan.takes_any_target() {
            method
        } else {
            method_of(plan)
        };
        let target = target_of(requested, plan, preset)?;
        let verification = verification_of(requested, plan, preset)?;
        let mut reader = Reader::default();
        let carried = carried(
            plan,
            target,
            verification,
            &requested.parameters,
            &mut reader,
        )?;
        let settings = reader.finish(&requested.parameters, &described(requested, method))?;
        let drafting = drafting_of(requested, plan)?;
        let options = Options {
            target: carried.target,
            verification: carried.verification,
            drafting: drafting.drafting,
            draft_len: drafting.len,
            tree: drafting.tree,
            accept_at_coordinator: requested.accept_at_coordinator,
            greedy: temperature == 0.0,
            proposal: requested.proposal,
            ..Options::default()
        };
        options.check()?;
        let axes = options.axes();
        requested
            .proposal
            .map_or(Ok(()), |form| axes.check_choice(form))?;
        let proposal = requested.proposal.unwrap_or_else(|| axes.default_form());
        Ok(Self {
            method,
            plan: carried.plan,
            target: carried.target,
            verification: carried.verification,
            proposal,
            accept_at_coordinator: requested.accept_at_coordinator,
            stop_rule: match drafting.len {
                DraftLen::Stop(rule) => rule,
                DraftLen::Fixed | DraftLen::Auto => carried.stop_rule,
            },
            drafting: drafting.drafting,
            auto: drafting.len == DraftLen::Auto,
            tree: drafting.tree,
            aim: TargetKind::of(carried.aim),
            axes,
            unscaled_is_sampling: temperature == 1.0 && !cuts,
            settings,
        })
    }
}

/// Reads the parameters of `plan` and `target`, and carries them over into both.
fn carried(
    plan: PlanKind,
    target: TargetDistribution,
    verification: Verification,
    requested: &Parameters,
    reader: &mut Reader,
) -> Result<Carried, BadValue> {
    let target = match (target, requested.kl_budget) {
        (TargetDistribution::Lossy { .. }, Some(kl_budget)) => {
            TargetDistribution::LossyWithin { kl_budget }
        }
        _ => target,
    };
    let target = parameters_of_target(plan, target, requested, reader)?;
    let mut carried = Carried {
        plan: Plan::Speculative,
        aim: target,
        target,
        verification,
        stop_rule: StopRule::NEVER,
    };
    match plan {
        PlanKind::Speculative => {}
        PlanKind::TargetOnly => carried.plan = Plan::TargetOnly,
        PlanKind::DraftOnly => carried.plan = Plan::DraftOnly,
        PlanKind::OracleCascade => carried.plan = Plan::OracleCascade,
        PlanKind::TokenCascade => {
            if let TargetDistribution::Deferral { rule, alpha } = target
                && let Some(stop_rule) = rule.stop_rule
            {
                carried.stop_rule = stop_rule(alpha);
            }
            let max_run = match reader.take(MAX_RUN, requested.max_run)? {
                0 => u32::MAX,
                max_run => max_run,
            };
            carried.plan = Plan::TokenCascade { max_run };
        }
        PlanKind::SequenceCascade => {
            let alpha = match target {
                TargetDistribution::Deferral { alpha, .. } => alpha,
                TargetDistribution::Exact
                | TargetDistribution::Lossy { .. }
                | TargetDistribution::LossyWithin { .. } => 1.0,
            };
            carried.plan = Plan::SequenceCascade {
                threshold: libm::log(1.0 - alpha),
                mean: reader.take(MEAN, requested.mean)?,
            };
        }
        PlanKind::Bild => {
            let rollback = parameters::rollback(verification.rollback());
            let rollback = reader.take(rollback, requested.alpha)?;
            carried.stop_rule =
                StopRule::new(&CONFIDENCE, reader.take(FALLBACK, requested.fallback)?);
            carried.verification = Verification::bild(rollback);
            carried.plan = Plan::Bild {
                window: reader.take(WINDOW, requested.window)?,
                verify_on_finish: reader.take(VERIFY_ON_FINISH, requested.verify_on_finish)?,
                code_variant: reader.take(CODE_VARIANT, requested.code_variant)?,
            };
            if let Plan::Bild {
                code_variant: true, ..
            } = carried.plan
            {
                carried.verification = Verification::bild_code(rollback);
            }
        }
    }
    if !plan.takes_any_target() {
        // The rule acts through the plan; what the verifier draws, it draws from p.
        carried.target = TargetDistribution::Exact;
    }
    Ok(carried)
}

fn parameters_of_target(
    plan: PlanKind,
    target: TargetDistribution,
    requested: &Parameters,
    reader: &mut Reader,
) -> Result<TargetDistribution, BadValue> {
    Ok(match target {
        TargetDistribution::Exact => target,
        TargetDistribution::LossyWithin { kl_budget } => {
            reader.take(KL_BUDGET, Some(Some(kl_budget)))?;
            target
        }
        TargetDistribution::Lossy { alpha, beta } => {
            let alpha = reader.take(parameters::lossy_alpha(alpha), requested.alpha)?;
            let beta = reader.take(parameters::lossy_beta(alpha, beta), requested.beta)?;
            reader.take(KL_BUDGET, None)?;
            TargetDistribution::Lossy { alpha, beta }
        }
        TargetDistribution::Deferral { rule, .. } => {
            let rule = reader.take(parameters::rule(rules_of(plan), rule), requested.rule)?;
            let alpha = if plan == PlanKind::SequenceCascade {
                SEQUENCE_ALPHA
            } else {
                parameters::rule_alpha(rule)
            };
            let alpha = reader.take(alpha, requested.alpha)?;
            TargetDistribution::Deferral { rule, alpha }
        }
    })
}

/// The method and the axes asked for beside it, in words.
fn described(requested: &MethodRequest<'_>, method: &Method) -> String {
    let plan = requested
        .plan
        .map(|plan| format!(" with plan '{}'", plan.name()));
    let target = requested
        .target
        .map(|target| format!(" with target '{}'", target.name()));
    let budget = requested.parameters.kl_budget.filter(|_| {
        let target = requested.target.unwrap_or(TargetKind::of(method.target));
        target == TargetKind::Lossy
    });
    format!(
        "method '{}'{}{}{}",
        method.name,
        plan.unwrap_or_default(),
        target.unwrap_or_default(),
        budget.map_or("", |_| " with kl_budget")
    )
}
