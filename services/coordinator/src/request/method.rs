//! Which method a request asks for, from what it chooses to a checked choice.

use speculation::bad_value::BadValue;
use speculation::drafting::{DraftLen, Drafting};
use speculation::methods::names::of_drafting;
use speculation::methods::table::DRAFTING;
use speculation::methods::{Choice, METHODS, MethodSpec, Setup};
use speculation::sampling::SamplingParams;
use wire::settings::{FIELD, named};
use wire::status::BadField;

use crate::config::CoordinatorConfig;
use crate::peer::pool::ServedModel;

/// Resolves `spec`, and checks it against the deployment and against the peers of `model`; `reports` tells whether
/// distributions are to be reported. Where it does not say who proposes, `usual` does.
///
/// # Errors
/// Names the field that is unknown, out of range, not taken, or not allowed here.
pub(super) fn choose(
    spec: &MethodSpec,
    reports: bool,
    sampling: &SamplingParams,
    model: &ServedModel,
    config: &CoordinatorConfig,
    usual: Drafting,
) -> Result<Choice, BadField> {
    let setup = Setup {
        temperature: sampling.temperature,
        cuts: sampling.cuts(),
        draft_len: config.draft_len.fixed().map(|_| DraftLen::Fixed),
    };
    let choice = resolve(spec, usual, setup).map_err(named)?;
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
            "coordinator is not allowed here (coordinator.allow_accept_at_coordinator is false)";
        return Err(BadField::new(format!("{FIELD}.accept_at"), problem));
    }
    if reports && !config.allow_distribution_reports {
        let problem = "not allowed here (coordinator.allow_distribution_reports is false)";
        return Err(BadField::new("report_distributions", problem));
    }
    if reports && !choice.accept_at_coordinator {
        let problem =
            "distributions come to the coordinator only where it decides; set accept_at to it";
        return Err(BadField::new("report_distributions", problem));
    }
    if reports && choice.drafting != Drafting::Model {
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
fn resolve(spec: &MethodSpec, usual: Drafting, setup: Setup) -> Result<Choice, BadValue> {
    if !spec.gives(&DRAFTING) && usual != Drafting::Model {
        let by_usual = spec.clone().with(DRAFTING.name, of_drafting(usual));
        let choice = Choice::resolve(&by_usual, setup);
        if let Some(choice) = choice.ok().filter(|choice| !choice.depends_on_draft()) {
            return Ok(choice);
        }
    }
    Choice::resolve(spec, setup)
}

fn lossless_methods() -> Vec<&'static str> {
    let lossless = METHODS.iter().filter(|method| method.is_lossless());
    lossless.map(|method| method.name).collect()
}
