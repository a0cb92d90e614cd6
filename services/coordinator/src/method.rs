//! Which method a request asks for, from the message to a checked choice.

use speculation::drafting::Drafting;
use speculation::methods::names::{beta_of, of_drafting, rule};
use speculation::methods::{Asked, BadChoice, Choice, METHODS, Parameters, PlanKind, TargetAsked};
use speculation::sampling::SamplingParams;
use speculation::target::Beta;
use wire::status::BadField;
use wire::v1::target_distribution::Kind;
use wire::{open, proposal, v1};

use crate::config::CoordinatorConfig;
use crate::peers::Group;
use crate::request::DraftingAsked;

/// Reads the axes and parameters of `request`, and checks them against each other, against the
/// deployment and against the peers of `group`.
///
/// # Errors
/// Names the field that is unknown, out of range, not taken, or not allowed here.
pub(crate) fn choose(
    request: &v1::GenerateRequest,
    drafting: DraftingAsked,
    sampling: &SamplingParams,
    group: &Group,
    config: &CoordinatorConfig,
) -> Result<Choice, BadField> {
    let (target, parameters) = target_and_parameters(request)?;
    let is_sparse = request.proposal_form == i32::from(v1::ProposalForm::Sparse);
    if request.proposal_top != 0 && !is_sparse {
        let problem = "goes with proposal_form SPARSE only";
        return Err(BadField::new("proposal_top", problem));
    }
    let proposal = match request.proposal_form {
        0 => None,
        form => Some(proposal::form_from_wire(form, request.proposal_top)?),
    };
    let verification = match request.verification {
        0 => None,
        wire if wire == i32::from(v1::Verification::Bild) => {
            let problem = "BILD goes with plan 'bild' only; ask for method 'bild'";
            return Err(BadField::new("verification", problem));
        }
        wire => Some(open::verification_from_wire(wire, 0.0)?),
    };
    let asked = Asked {
        method: &request.method,
        plan: plan(request.plan)?,
        target,
        verification,
        proposal,
        accept_at_coordinator: open::accepts_at_coordinator(request.accept_at)?,
        drafting: drafting.drafting,
        draft_len: drafting.draft_len,
        tree: drafting.tree,
        parameters,
    };
    let choice = Choice::resolve(&asked, sampling.temperature, cuts(sampling));
    let choice = choice.map_err(|error| match &error.field[..] {
        // A number goes with everything: it is the policy that does not.
        "draft_len" => BadField::new("draft_length", error.problem),
        _ => bad_field(error),
    })?;
    if config.lossless_only && !choice.is_lossless() {
        let problem = format!(
            "'{}' as it is asked for is not lossless, and only lossless methods are allowed here; \
             choose one of {}",
            choice.name(),
            lossless_methods().join(", ")
        );
        return Err(BadField::new("method", problem));
    }
    if choice.depends_on_draft() && !group.has_drafters() {
        let problem = format!(
            "'{}' needs a drafter, model '{}' has none",
            choice.name(),
            group.name()
        );
        return Err(BadField::new("method", problem));
    }
    if request.report_laws && !choice.accept_at_coordinator {
        let problem = "laws come to the coordinator only where it decides; set accept_at to it";
        return Err(BadField::new("report_laws", problem));
    }
    if request.report_laws && choice.drafting != Drafting::Model {
        let problem = format!(
            "tells the unscaled laws and confidences of a draft model, and drafting '{}' tells of its \
             tokens nothing but their laws; leave it out, or choose drafting model",
            of_drafting(choice.drafting)
        );
        return Err(BadField::new("report_laws", problem));
    }
    Ok(choice)
}

/// Whether the sampling laws are cut.
pub(crate) fn cuts(sampling: &SamplingParams) -> bool {
    sampling.top_k > 0 || sampling.top_p < 1.0 || sampling.min_p > 0.0
}

/// The fault of a choice; parameters are called by their own names.
fn bad_field(error: BadChoice) -> BadField {
    BadField::new(error.field, error.problem)
}

fn lossless_methods() -> Vec<&'static str> {
    let lossless = METHODS.iter().filter(|method| method.is_lossless());
    lossless.map(|method| method.name).collect()
}

fn target_and_parameters(
    request: &v1::GenerateRequest,
) -> Result<(Option<TargetAsked>, Parameters), BadField> {
    let asked = request.parameters.clone().unwrap_or_default();
    let named = asked.rule.as_deref().map(rule).transpose();
    let mut parameters = Parameters {
        rule: named.map_err(bad_field)?,
        alpha: asked.alpha,
        beta: beta_of(asked.beta, asked.beta_tuned).map_err(bad_field)?,
        fallback: asked.fallback,
        window: asked.window,
        verify_on_finish: asked.verify_on_finish,
        max_run: asked.max_run,
        mean: asked.mean,
    };
    let Some(target) = &request.target else {
        return Ok((None, parameters));
    };
    if let Some(alpha) = target.alpha {
        once("target.alpha", &mut parameters.alpha, alpha)?;
    }
    if let Some(beta) = beta_of(target.beta, target.beta_tuned).map_err(bad_field)? {
        let beta: Beta = beta;
        once("target.beta", &mut parameters.beta, beta)?;
    }
    let kind = Kind::try_from(target.kind);
    if !target.rule.is_empty() && kind != Ok(Kind::Deferral) {
        let problem = format!("'{}' goes with kind DEFERRAL only", target.rule);
        return Err(BadField::new("target.rule", problem));
    }
    let target = match kind {
        Ok(Kind::Exact) => TargetAsked::Exact,
        Ok(Kind::Lossy) => TargetAsked::Lossy,
        Ok(Kind::Deferral) => {
            let rule = rule(&target.rule);
            TargetAsked::Rule(rule.map_err(|error| BadField::new("target.rule", error.problem))?)
        }
        Ok(Kind::Unspecified) => return Err(BadField::new("target.kind", "missing")),
        Err(_) => {
            let found = target.kind;
            let problem = format!("{found} is no kind of target distribution, expected 1 to 3");
            return Err(BadField::new("target.kind", problem));
        }
    };
    Ok((Some(target), parameters))
}

/// Sets a parameter that may stand in two places, if it does not stand in both with different
/// values.
fn once<T: PartialEq>(field: &str, place: &mut Option<T>, value: T) -> Result<(), BadField> {
    if place.as_ref().is_some_and(|before| *before != value) {
        return Err(BadField::new(
            field,
            "stands in parameters too, with another value",
        ));
    }
    *place = Some(value);
    Ok(())
}

fn plan(wire: i32) -> Result<Option<PlanKind>, BadField> {
    let plan =
        v1::Plan::try_from(wire).map_err(|_| BadField::not_in::<v1::Plan>("plan", wire, "plan"))?;
    Ok(match plan {
        v1::Plan::Unspecified => None,
        v1::Plan::Speculative => Some(PlanKind::Speculative),
        v1::Plan::TargetOnly => Some(PlanKind::TargetOnly),
        v1::Plan::DraftOnly => Some(PlanKind::DraftOnly),
        v1::Plan::TokenCascade => Some(PlanKind::TokenCascade),
        v1::Plan::SequenceCascade => Some(PlanKind::SequenceCascade),
        v1::Plan::OracleCascade => Some(PlanKind::OracleCascade),
        v1::Plan::Bild => Some(PlanKind::Bild),
    })
}
