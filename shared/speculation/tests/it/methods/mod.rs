//! The registry of methods: what it lists, and what a request comes to.

mod axes;
mod combinations;
mod drafting;
mod drafting_values;
mod guide;
mod parameters;
mod presets;
mod proposals;

use speculation::methods::{Asked, BadChoice, Choice};

/// `asked` at temperature 1, nothing cut.
fn resolve(asked: &Asked<'_>) -> Result<Choice, BadChoice> {
    Choice::resolve(asked, 1.0, false)
}

fn of(method: &str) -> Asked<'_> {
    Asked {
        method,
        ..Asked::default()
    }
}

/// The field and the problem that `asked` is refused for.
fn refused(asked: &Asked<'_>, temperature: f32) -> (String, String) {
    match Choice::resolve(asked, temperature, false) {
        Ok(choice) => panic!("{asked:?} came to {choice:?}"),
        Err(BadChoice { field, problem }) => (field, problem),
    }
}
