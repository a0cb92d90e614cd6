//! Which method a request asks for, from the message to a checked choice.

use speculation::bad_value::BadValue;
use speculation::drafting::{DraftLen, Drafting};
use speculation::methods::names::of_drafting;
use speculation::methods::{Choice, METHODS, MethodRequest};
use speculation::sampling::SamplingParams;
use wire::drafting_request::DraftingRequest;
use wire::status::BadField;
use wire::{method, v1};

use crate::config::CoordinatorConfig;
use crate::peer::pool::ServedModel;

/// Reads the axes and parameters of `request`, and checks them against each other, against the
/// deployment and against the peers of `model`. Where it does not say who proposes, `usual` does.
///
/// # Errors
/// Names the field that is unknown, out of range, not taken, or not allowed here.
pub(super) fn choose(
    request: &v1::GenerateRequest,
    drafting: &DraftingRequest,
    sampling: &SamplingParams,
    model: &ServedModel,
    config: &CoordinatorConfig,
    usual: Drafting,
) -> Result<Choice, BadField> {
    let mut requested = method::from_wire(request, drafting)?;
    if requested.draft_len.is_none() && config.draft_len.fixed().is_some() {
        requested.draft_len = Some(DraftLen::Fixed);
    }
    let choice = resolve(&requested, usual, sampling);
    let choice = choice.map_err(|error| match &error.field[..] {
        // A number goes with everything: it is the policy that does not.
        "draft_len" => BadField::new("draft_length", error.problem),
        _ => BadField::new(error.field, error.problem),
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
    if choice.depends_on_draft() && !model.has_drafters() {
        let problem = format!(
            "'{}' needs a drafter, {}",
            choice.name(),
            model.why_no_drafter()
        );
        return Err(BadField::new("method", problem));
    }
    if choice.accept_at_coordinator && !config.allow_accept_at_coordinator {
        let problem =
            "COORDINATOR is not allowed here (coordinator.allow_accept_at_coordinator is false)";
        return Err(BadField::new("accept_at", problem));
    }
    if request.report_distributions && !config.allow_distribution_reports {
        let problem = "not allowed here (coordinator.allow_distribution_reports is false)";
        return Err(BadField::new("report_distributions", problem));
    }
    if request.report_distributions && !choice.accept_at_coordinator {
        let problem =
            "distributions come to the coordinator only where it decides; set accept_at to it";
        return Err(BadField::new("report_distributions", problem));
    }
    if request.report_distributions && choice.drafting != Drafting::Model {
        let problem = format!(
            "sends the unscaled distributions and confidences of a draft model, and drafting '{}' tells of its \
             tokens nothing but their distributions; leave it out, or choose drafting model",
            of_drafting(choice.drafting)
        );
        return Err(BadField::new("report_distributions", problem));
    }
    Ok(choice)
}

/// Resolves what a request asks for. Where it does not say who proposes, `usual` does if that goes with the rest, and if
/// the output does not depend on who does.
fn resolve(
    requested: &MethodRequest<'_>,
    usual: Drafting,
    sampling: &SamplingParams,
) -> Result<Choice, BadValue> {
    let resolve = |requested: &MethodRequest<'_>| {
        Choice::resolve(requested, sampling.temperature, sampling.cuts())
    };
    if requested.drafting.is_none() && usual != Drafting::Model {
        let by_usual = MethodRequest {
            drafting: Some(usual),
            ..requested.clone()
        };
        let choice = resolve(&by_usual);
        if let Some(choice) = choice.ok().filter(|choice| !choice.depends_on_draft()) {
            return Ok(choice);
        }
    }
    resolve(requested)
}

fn lossless_methods() -> Vec<&'static str> {
    let lossless = METHODS.iter().filter(|method| method.is_lossless());
    lossless.map(|method| method.name).collect()
}
