//! Which method a request asks for: axes and parameters, read from the message.

use speculation::methods::names::{beta_of, rule};
use speculation::methods::{MethodRequest, Parameters, PlanKind, TargetKind};

use crate::drafting_request::DraftingRequest;
use crate::status::BadField;
use crate::v1::target_distribution::Kind;
use crate::{open, proposal, v1};

/// Reads the axes and parameters of `request`; what it asks of drafting was read before.
///
/// # Errors
/// Names the field that is unknown, out of range, or contradicts another.
pub fn from_wire<'a>(
    request: &'a v1::GenerateRequest,
    drafting: &DraftingRequest,
) -> Result<MethodRequest<'a>, BadField> {
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
        wire => Some(open::verification_from_wire(wire, 0.0)?),
    };
    if let Some(part) = verification.filter(|verification| !verification.is_choosable) {
        let name = part.name;
        let problem = format!(
            "{} goes with plan 'bild' only; ask for method 'bild'",
            name.to_uppercase().replace('-', "_")
        );
        return Err(BadField::new("verification", problem));
    }
    Ok(MethodRequest {
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
    })
}

fn target_and_parameters(
    request: &v1::GenerateRequest,
) -> Result<(Option<TargetKind>, Parameters), BadField> {
    let requested = request.parameters.clone().unwrap_or_default();
    let mut parameters = Parameters {
        rule: requested.rule.as_deref().map(rule).transpose()?,
        alpha: requested.alpha,
        beta: beta_of(requested.beta, requested.beta_tuned)?,
        kl_budget: requested.kl_budget,
        fallback: requested.fallback,
        window: requested.window,
        verify_on_finish: requested.verify_on_finish,
        code_variant: requested.code_variant,
        max_run: requested.max_run,
        mean: requested.mean,
    };
    let Some(target) = &request.target else {
        return Ok((None, parameters));
    };
    if let Some(alpha) = target.alpha {
        once("target.alpha", &mut parameters.alpha, alpha)?;
    }
    if let Some(beta) = beta_of(target.beta, target.beta_tuned)? {
        once("target.beta", &mut parameters.beta, beta)?;
    }
    if let Some(kl_budget) = target.kl_budget {
        once("target.kl_budget", &mut parameters.kl_budget, kl_budget)?;
    }
    let kind = Kind::try_from(target.kind);
    if !target.rule.is_empty() && kind != Ok(Kind::Deferral) {
        let problem = format!("'{}' goes with kind DEFERRAL only", target.rule);
        return Err(BadField::new("target.rule", problem));
    }
    let target = match kind {
        Ok(Kind::Exact) => TargetKind::Exact,
        Ok(Kind::Lossy) => TargetKind::Lossy,
        Ok(Kind::Deferral) => {
            let rule = rule(&target.rule);
            TargetKind::Rule(rule.map_err(|error| BadField::new("target.rule", error.problem))?)
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
