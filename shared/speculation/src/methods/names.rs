//! Names and values of the axes, for command line, wire and reports.

mod cascade;
mod drafting;

use std::str::FromStr;

use strum::VariantArray;

use super::BadValue;
use super::setting::AxisValue;
use crate::proposal::{ProposalForm, SPARSE_MOST};
use crate::target::{RULES, Rule, TargetDistribution};
use crate::verification::{VERIFICATIONS, Verification};

pub use crate::session::PlanKind;
pub use cascade::{
    cascade_k, cascade_ks, cascade_lenience, cascade_leniences, cascade_max_gram,
    cascade_max_gram_tokens, of_cascade_k,
};
pub use drafting::{
    ALTERNATES, AUTO, COMB, DRAFT_CAP, DRAFT_MOST, draft_len, draft_lens, drafting, draftings,
    of_draft_len, of_drafting, of_schedule, of_tree, schedule, schedules, tree, trees,
};

impl PlanKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether the verifier draws from a target distribution of the request's own choosing, rather
    /// than from the one the plan is made for.
    pub fn takes_any_target(self) -> bool {
        matches!(self, Self::Speculative | Self::OracleCascade)
    }
}

/// A target distribution by name; its parameters stand beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// The target model's distribution itself.
    Exact,
    /// Lossy speculative sampling.
    Lossy,
    /// A deferral rule.
    Rule(Rule),
}

impl TargetKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Lossy => "lossy",
            Self::Rule(rule) => rule.name,
        }
    }

    /// What `target` is, its parameters apart.
    pub fn of(target: TargetDistribution) -> Self {
        match target {
            TargetDistribution::Exact => Self::Exact,
            TargetDistribution::Lossy { .. } | TargetDistribution::LossyWithin { .. } => {
                Self::Lossy
            }
            TargetDistribution::Deferral { rule, .. } => Self::Rule(rule),
        }
    }
}

/// Returns a value that stands for itself.
fn plain(form: &'static str, help: &'static str) -> AxisValue {
    ranged(form, String::new(), help)
}

/// Returns a form of values, with the range of its number.
fn ranged(form: &'static str, range: String, help: &'static str) -> AxisValue {
    AxisValue { form, range, help }
}

/// The plans, the default first, as in the functions that follow.
pub fn plans() -> Vec<AxisValue> {
    let plans = PlanKind::VARIANTS.iter();
    plans.map(|plan| plain(plan.name(), "")).collect()
}

/// The target distributions.
pub fn targets() -> Vec<AxisValue> {
    let whole = [TargetKind::Exact, TargetKind::Lossy];
    let rules = RULES.iter().copied().map(TargetKind::Rule);
    let targets = whole.into_iter().chain(rules);
    targets.map(|target| plain(target.name(), "")).collect()
}

/// The verifications that a request can choose.
pub fn verifications() -> Vec<AxisValue> {
    let choosable = VERIFICATIONS.iter().filter(|one| one.is_choosable);
    choosable.map(|one| plain(one.name, one.summary)).collect()
}

/// The forms of proposals; K stands for a number of tokens.
pub fn proposals() -> Vec<AxisValue> {
    vec![
        plain("none", "nothing"),
        plain(
            "point",
            "only that the draft is certain: temperature 0, max-gram",
        ),
        ranged(
            "sparse:K",
            format!("1 to {SPARSE_MOST}"),
            "its K most likely tokens; drafts are then drawn from these alone",
        ),
        plain("dense:f32", "all of it"),
        plain("dense:f16", "all of it, rounded"),
    ]
}

/// Those who can decide acceptance.
pub fn acceptors() -> Vec<AxisValue> {
    vec![plain("verifier", ""), plain("coordinator", "")]
}

/// The plan called `text`.
///
/// # Errors
/// If there is none; the message lists them all. So for the functions that follow.
pub fn plan(text: &str) -> Result<PlanKind, BadValue> {
    text.parse().map_err(|_| unknown("plan", text, &plans()))
}

/// The target distribution called `text`: exact, lossy, or a deferral rule.
pub fn target(text: &str) -> Result<TargetKind, BadValue> {
    match text {
        "exact" => Ok(TargetKind::Exact),
        "lossy" => Ok(TargetKind::Lossy),
        _ => match Rule::find(text) {
            Some(rule) => Ok(TargetKind::Rule(rule)),
            None => Err(unknown("target", text, &targets())),
        },
    }
}

/// The verification called `text`.
pub fn verification(text: &str) -> Result<Verification, BadValue> {
    let known = Verification::find(text).filter(|found| found.is_choosable);
    known.ok_or_else(|| unknown("verification", text, &verifications()))
}

/// The proposal form called `text`: `none`, `point`, `sparse:K`, `dense` or `dense:f32`,
/// `dense:f16`.
pub fn proposal(text: &str) -> Result<ProposalForm, BadValue> {
    match text {
        "none" => Ok(ProposalForm::None),
        "point" => Ok(ProposalForm::Point),
        "dense" | "dense:f32" => Ok(ProposalForm::Dense { half: false }),
        "dense:f16" => Ok(ProposalForm::Dense { half: true }),
        _ => match text.strip_prefix("sparse:").map(u32::from_str) {
            Some(Ok(top)) if (1..=SPARSE_MOST).contains(&top) => Ok(ProposalForm::Sparse { top }),
            Some(_) => {
                let range = format!("sparse:1 to sparse:{SPARSE_MOST}");
                Err(out_of_range("proposal", text, &range))
            }
            None => Err(unknown("proposal", text, &proposals())),
        },
    }
}

/// The name of `form`.
pub fn of_proposal(form: ProposalForm) -> String {
    match form {
        ProposalForm::None => "none".to_owned(),
        ProposalForm::Point => "point".to_owned(),
        ProposalForm::Sparse { top } => format!("sparse:{top}"),
        ProposalForm::Dense { half: false } => "dense:f32".to_owned(),
        ProposalForm::Dense { half: true } => "dense:f16".to_owned(),
    }
}

/// Whether `text` says that the coordinator decides acceptance, rather than the verifier.
pub fn accepts_at_coordinator(text: &str) -> Result<bool, BadValue> {
    match text {
        "verifier" => Ok(false),
        "coordinator" => Ok(true),
        _ => Err(unknown("accept_at", text, &acceptors())),
    }
}

fn unknown(field: &str, text: &str, known: &[AxisValue]) -> BadValue {
    BadValue::unknown(field, text, known.iter().map(|value| value.form))
}

fn out_of_range(field: &str, text: &str, expected: &str) -> BadValue {
    let problem = format!("'{text}' is out of range, expected {expected}");
    BadValue::new(field, problem)
}
