//! A method and its axes by the names that people write, on the command line and in JSON.

use speculation::bad_value::BadValue;
use speculation::drafting::{DraftLen, Drafting};
use speculation::methods::names::{self, DRAFT_CAP};
use speculation::methods::{PlanKind, TargetKind};
use speculation::target::Beta;
use v1::target_distribution::Kind;

use crate::drafting::{self, Length};
use crate::{proposal, v1};

/// A method, and what overrides its presets. What is none is left to the coordinator.
#[derive(Clone, Debug, Default)]
pub struct NamedMethod {
    /// Name of the method; empty is the default one.
    pub method: String,
    /// Trade-off between the two models.
    pub alpha: Option<f64>,
    /// Name of a deferral rule.
    pub rule: Option<String>,
    /// Residual parameter of lossy sampling, a number or `tuned`.
    pub beta: Option<String>,
    /// Budget of divergence of lossy sampling, in nats.
    pub kl_budget: Option<f64>,
    /// BiLD: the drafter hands over where its confidence is below this.
    pub fallback: Option<f64>,
    /// BiLD: most draft tokens before the verifier looks.
    pub window: Option<u32>,
    /// BiLD: whether the verifier looks at the last tokens too.
    pub verify_on_finish: Option<bool>,
    /// BiLD: whether it runs as its authors' code does.
    pub code_variant: Option<bool>,
    /// Token cascade: most draft tokens in a row.
    pub max_run: Option<u32>,
    /// Sequence cascade: whether an answer's score is a mean.
    pub mean: Option<bool>,
    /// How the models take turns.
    pub plan: Option<String>,
    /// The distribution aimed at.
    pub target: Option<String>,
    /// How draft blocks are verified.
    pub verification: Option<String>,
    /// What is sent of the draft distribution.
    pub proposal: Option<String>,
    /// Who decides acceptance.
    pub accept_at: Option<String>,
    /// Who drafts, how much and in which shape.
    pub drafting: NamedDrafting,
}

/// Who drafts, how much and in which shape.
#[derive(Clone, Debug, Default)]
pub struct NamedDrafting {
    /// Who proposes.
    pub drafting: Option<String>,
    /// Draft tokens a round: a number, or what decides.
    pub draft_len: Option<String>,
    /// Most draft tokens a round where a policy or a cascade decides.
    pub draft_cap: Option<u32>,
    /// Shape of blocks.
    pub tree: Option<String>,
}

impl NamedMethod {
    /// Writes the choice to `request`.
    ///
    /// # Errors
    /// Names the axis whose value is unknown. Whether they go together, the coordinator checks.
    pub fn apply(&self, request: &mut v1::GenerateRequest) -> Result<(), BadValue> {
        request.method.clone_from(&self.method);
        if let Some(plan) = &self.plan {
            request.plan = plan_to_wire(names::plan(plan)?).into();
        }
        if let Some(target) = &self.target {
            request.target = Some(target_to_wire(names::target(target)?));
        }
        if let Some(verification) = &self.verification {
            request.verification = names::verification(verification)?.wire;
        }
        if let Some(form) = &self.proposal {
            let (form, top) = proposal::form_to_wire(names::proposal(form)?);
            (request.proposal_form, request.proposal_top) = (form.into(), top);
        }
        if let Some(who) = &self.accept_at {
            let accept_at = if names::accepts_at_coordinator(who)? {
                v1::AcceptAt::Coordinator
            } else {
                v1::AcceptAt::Verifier
            };
            request.accept_at = accept_at.into();
        }
        let beta = self.beta.as_deref().map(names::beta).transpose()?;
        request.parameters = Some(v1::MethodParameters {
            alpha: self.alpha,
            rule: self.rule.clone(),
            beta: match beta {
                Some(Beta::Fixed(beta)) => Some(beta),
                Some(Beta::Tuned) | None => None,
            },
            beta_tuned: beta == Some(Beta::Tuned),
            kl_budget: self.kl_budget,
            fallback: self.fallback,
            window: self.window,
            verify_on_finish: self.verify_on_finish,
            code_variant: self.code_variant,
            max_run: self.max_run,
            mean: self.mean,
        });
        self.drafting.apply(request)
    }
}

impl NamedDrafting {
    /// Writes the choice to `request`, in which a fixed number of draft tokens may stand already.
    ///
    /// # Errors
    /// Names the axis whose value is unknown, and `draft_cap` where a number is the length. Whether they go
    /// together, the coordinator checks.
    pub fn apply(&self, request: &mut v1::GenerateRequest) -> Result<(), BadValue> {
        let who = self.drafting.as_deref().map(names::drafting).transpose()?;
        let len = self.draft_len.as_deref().map(names::draft_len);
        let len = len.transpose()?;
        if let Some(who) = who {
            request.drafting = drafting::to_wire(who).into();
        }
        if let Some(shape) = &self.tree {
            request.tree = drafting::shape_to_wire(names::tree(shape)?);
        }
        let is_decided = match len {
            Some((DraftLen::Fixed, number)) => {
                request.draft_len = number.or(request.draft_len);
                false
            }
            Some((policy, _)) => {
                request.draft_length = Some(drafting::length_to_wire(Length::Policy(policy)));
                true
            }
            None if request.draft_len.is_some() => who == Some(Drafting::Cascade),
            None => true,
        };
        if is_decided {
            // The number that stood there is a fixed length; a cascade has a limit of its own instead.
            let was_fixed = request.draft_len.is_some() && len.is_none();
            request.draft_len = self.draft_cap.or(was_fixed.then_some(DRAFT_CAP));
            if self.draft_cap.is_some() && request.draft_length.is_none() && !was_fixed {
                let auto = Length::Policy(DraftLen::Auto);
                request.draft_length = Some(drafting::length_to_wire(auto));
            }
            return Ok(());
        }
        match self.draft_cap {
            None => Ok(()),
            Some(cap) => {
                let problem = format!(
                    "{cap} bounds what a policy or a cascade decides; draft_len is the length itself"
                );
                Err(BadValue::new("draft_cap", problem))
            }
        }
    }
}

fn plan_to_wire(plan: PlanKind) -> v1::Plan {
    match plan {
        PlanKind::Speculative => v1::Plan::Speculative,
        PlanKind::TargetOnly => v1::Plan::TargetOnly,
        PlanKind::DraftOnly => v1::Plan::DraftOnly,
        PlanKind::TokenCascade => v1::Plan::TokenCascade,
        PlanKind::SequenceCascade => v1::Plan::SequenceCascade,
        PlanKind::OracleCascade => v1::Plan::OracleCascade,
        PlanKind::Bild => v1::Plan::Bild,
    }
}

fn target_to_wire(target: TargetKind) -> v1::TargetDistribution {
    let (kind, rule) = match target {
        TargetKind::Exact => (Kind::Exact, String::new()),
        TargetKind::Lossy => (Kind::Lossy, String::new()),
        TargetKind::Rule(rule) => (Kind::Deferral, rule.name.to_owned()),
    };
    v1::TargetDistribution {
        kind: kind.into(),
        rule,
        ..Default::default()
    }
}
