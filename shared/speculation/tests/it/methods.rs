//! The registry of methods: what it lists, and what a request comes to.

mod axes;
mod combinations;
mod drafting;
mod drafting_values;
mod guide;
mod parameters;
mod presets;
mod proposals;

use speculation::bad_value::BadValue;
use speculation::methods::{Choice, MethodRequest, Parameters, PlanKind, TargetKind};
use speculation::proposal::ProposalForm;
use speculation::verification::Verification;

/// `requested` at temperature 1, nothing cut.
fn resolve(requested: &MethodRequest<'_>) -> Result<Choice, BadValue> {
    Choice::resolve(requested, 1.0, false)
}

fn of(method: &str) -> MethodRequest<'_> {
    MethodRequest {
        method,
        ..MethodRequest::default()
    }
}

fn planned(plan: PlanKind, method: &str) -> MethodRequest<'_> {
    MethodRequest {
        plan: Some(plan),
        ..of(method)
    }
}

fn aimed(target: TargetKind, method: &str) -> MethodRequest<'_> {
    MethodRequest {
        target: Some(target),
        ..of(method)
    }
}

fn verified(verification: Verification, method: &str) -> MethodRequest<'_> {
    MethodRequest {
        verification: Some(verification),
        ..of(method)
    }
}

fn proposed(proposal: ProposalForm, method: &str) -> MethodRequest<'_> {
    MethodRequest {
        proposal: Some(proposal),
        ..of(method)
    }
}

fn set(parameters: Parameters, method: &str) -> MethodRequest<'_> {
    MethodRequest {
        parameters,
        ..of(method)
    }
}

/// The field and the problem that `requested` is refused for.
fn refused(requested: &MethodRequest<'_>, temperature: f32) -> (String, String) {
    match Choice::resolve(requested, temperature, false) {
        Ok(choice) => panic!("{requested:?} came to {choice:?}"),
        Err(BadValue { field, problem }) => (field, problem),
    }
}
