//! The axes in effect, those of drafting too: what was asked for, else the preset, and what does not go together.

use super::names::{self, PlanKind, TargetKind};
use super::parameters;
use super::registry::{LOSSY, METHODS, Method};
use super::spec::MethodSpec;
use super::table::{
    CASCADE_K, CASCADE_LENIENCE, CASCADE_MAX_GRAM_TOKENS, DRAFT_LEN, DRAFTING, SCHEDULE, TARGET,
    TREE, VERIFICATION,
};
use crate::bad_value::BadValue;
use crate::cascade::CascadeSettings;
use crate::drafting::{DraftLen, Drafting, Schedule, TreeShape};
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
    let Some(target) = spec.read(&TARGET, names::target)? else {
        return Ok(preset.target);
    };
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
    let requested = spec.read(&VERIFICATION, names::verification)?;
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

/// Who proposes, how much, in which shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct DraftingAxes {
    pub(super) drafting: Drafting,
    pub(super) len: DraftLen,
    pub(super) tree: TreeShape,
    pub(super) schedule: Schedule,
    /// Most tokens of a chain, or levels of a tree, if the request says.
    pub(super) most: Option<u32>,
}

/// Returns the effective axes of drafting under `plan`. A request that does not say how much is drafted leaves it to
/// `usual`; a stream has no rounds to have one.
pub(super) fn drafting_of(
    spec: &MethodSpec,
    plan: PlanKind,
    usual: Option<DraftLen>,
) -> Result<DraftingAxes, BadValue> {
    let drafting = spec.read(&DRAFTING, names::drafting)?;
    let tree = spec.read(&TREE, names::tree)?;
    let schedule = spec.read(&SCHEDULE, names::schedule)?.flatten();
    let schedule = schedule.unwrap_or_default();
    let (len, most) = length_of(spec)?;
    let (proposer, usual) = match schedule {
        Schedule::Rounds => (Drafting::default(), usual),
        Schedule::Stream => (Drafting::MaxGram, None),
    };
    let axes = DraftingAxes {
        drafting: drafting.unwrap_or(proposer),
        schedule,
        len: match len.or(usual) {
            None if plan == PlanKind::Speculative => DraftLen::Auto,
            None => DraftLen::Fixed,
            Some(len) => len,
        },
        tree: tree.unwrap_or_default(),
        most,
    };
    axes.fit_plan(plan)?;
    Ok(axes)
}

/// Returns what `spec` sets of its drafter's cascade; where it sets nothing, what the paper has if `paper_defaults`.
///
/// # Errors
/// If one is wrong, or if `drafting` is another.
pub(super) fn cascade_of(
    spec: &MethodSpec,
    drafting: Drafting,
    paper_defaults: bool,
) -> Result<CascadeSettings, BadValue> {
    let given = CascadeSettings {
        k: spec.read(&CASCADE_K, names::cascade_k)?,
        lenience: spec.read(&CASCADE_LENIENCE, names::cascade_lenience)?,
        max_gram_tokens: spec.read(&CASCADE_MAX_GRAM_TOKENS, names::cascade_max_gram)?,
    };
    if drafting == Drafting::Cascade {
        return Ok(if paper_defaults {
            given.or(CascadeSettings::paper())
        } else {
            given
        });
    }
    let settings = [&CASCADE_K, &CASCADE_LENIENCE, &CASCADE_MAX_GRAM_TOKENS];
    settings
        .into_iter()
        .find(|it| spec.gives(it))
        .map_or(Ok(given), |it| {
            let drafting = names::of_drafting(drafting);
            let problem =
                format!("goes with drafting 'cascade', and it is '{drafting}'; leave it out");
            Err(BadValue::new(it.name, problem))
        })
}

/// Checks what can be told of a length without the rest of `spec`.
///
/// # Errors
/// If it is unknown, or given twice.
pub fn check_length(spec: &MethodSpec) -> Result<(), BadValue> {
    length_of(spec).map(drop)
}

/// Returns how many tokens `spec` asks for in a round, and the most, where it says so.
fn length_of(spec: &MethodSpec) -> Result<(Option<DraftLen>, Option<u32>), BadValue> {
    let cap = parameters::cap(spec)?;
    let Some(len) = spec.read(&DRAFT_LEN, names::draft_len)? else {
        // A cap alone bounds what is measured to pay.
        return Ok((cap.map(|_| DraftLen::Auto), cap));
    };
    match (len, cap) {
        ((DraftLen::Fixed, Some(number)), Some(cap)) => {
            let problem = format!(
                "{cap} bounds what a policy or a cascade decides; draft_len is the length itself, {number}"
            );
            Err(BadValue::new("draft_cap", problem))
        }
        ((len, number), cap) => Ok((Some(len), number.or(cap))),
    }
}

impl DraftingAxes {
    fn fit_plan(&self, plan: PlanKind) -> Result<(), BadValue> {
        if plan == PlanKind::Speculative {
            return Ok(());
        }
        let plan = plan.name();
        let (field, value) = if self.schedule != Schedule::Rounds {
            ("schedule", names::of_schedule(self.schedule).to_owned())
        } else if self.drafting != Drafting::Model {
            ("drafting", names::of_drafting(self.drafting).to_owned())
        } else if self.len != DraftLen::Fixed {
            ("draft_len", names::of_draft_len(self.len))
        } else if self.tree != TreeShape::Chain {
            ("tree", names::of_tree(self.tree))
        } else {
            return Ok(());
        };
        let problem = format!(
            "'{value}' goes with plan speculative only, and the plan is '{plan}'; leave it out, or choose plan \
             speculative"
        );
        Err(BadValue::new(field, problem))
    }
}
