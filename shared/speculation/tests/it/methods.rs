//! The registry of methods: what it lists, and what a request comes to.

mod axes;
mod combinations;
mod drafting;
mod drafting_values;
mod guide;
mod parameters;
mod presets;
mod proposals;
mod schedules;

use speculation::bad_value::BadValue;
use speculation::methods::{Choice, MethodSpec, PlanKind, Setup, TargetKind, names};
use speculation::proposal::ProposalForm;

/// `spec` at temperature 1, nothing cut.
fn resolve(spec: &MethodSpec) -> Result<Choice, BadValue> {
    at(spec, 1.0)
}

/// `spec` at this temperature, nothing cut.
fn at(spec: &MethodSpec, temperature: f32) -> Result<Choice, BadValue> {
    Choice::resolve(spec, Setup::at(temperature))
}

fn of(method: &str) -> MethodSpec {
    MethodSpec::new(method)
}

fn planned(plan: PlanKind, method: &str) -> MethodSpec {
    of(method).with("plan", plan.name())
}

fn aimed(target: TargetKind, method: &str) -> MethodSpec {
    of(method).with("target", target.name())
}

fn proposed(proposal: ProposalForm, method: &str) -> MethodSpec {
    of(method).with("proposal", names::of_proposal(proposal))
}

/// The same with these settings, those that are empty apart.
fn with_all(mut spec: MethodSpec, settings: &[(&str, &str)]) -> MethodSpec {
    for (name, text) in settings.iter().filter(|(_, text)| !text.is_empty()) {
        spec = spec.with(name, *text);
    }
    spec
}

/// The setting and the problem that `spec` is refused for.
fn refused(spec: &MethodSpec, temperature: f32) -> (String, String) {
    match at(spec, temperature) {
        Ok(choice) => panic!("{spec:?} came to {choice:?}"),
        Err(BadValue { field, problem }) => (field, problem),
    }
}
