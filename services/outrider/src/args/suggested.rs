//! Values that a shell completes and the program does not insist on.

use std::ffi::OsStr;

use clap::builder::{NonEmptyStringValueParser, PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use speculation::methods::{axes_listing, names};
use speculation::target::RULES;

/// Takes any text that is not empty. Shells complete the values that this program knows; a coordinator of another
/// release may know others, so it is the coordinator that refuses what is unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suggested(fn() -> Vec<&'static str>);

impl Suggested {
    pub(crate) const METHOD: Self = Self(names);
    pub(crate) const RULE: Self = Self(|| RULES.iter().map(|rule| rule.name).collect());
    pub(crate) const BETA: Self = Self(|| vec!["tuned"]);
    pub(crate) const PLAN: Self = Self(|| of_axis("plan"));
    pub(crate) const TARGET: Self = Self(|| of_axis("target"));
    pub(crate) const VERIFICATION: Self = Self(|| of_axis("verification"));
    pub(crate) const PROPOSAL: Self = Self(|| of_axis("proposal"));
    pub(crate) const ACCEPT_AT: Self = Self(|| of_axis("accept_at"));
    pub(crate) const DRAFTING: Self = Self(|| of_axis("drafting"));
    pub(crate) const DRAFT_LEN: Self = Self(|| of_axis("draft_len"));
    pub(crate) const TREE: Self = Self(|| of_axis("tree"));
}

/// The values of an axis: whole words, and the beginnings of those that end with a number.
fn of_axis(name: &str) -> Vec<&'static str> {
    let axes = axes_listing().into_iter();
    let forms = axes
        .filter(|axis| axis.name == name)
        .flat_map(|axis| axis.values)
        .map(|value| value.form);
    let beginnings = forms.map(|form| match form.split_once(':') {
        Some((word, number)) if is_number(number) => &form[..=word.len()],
        _ => form,
    });
    beginnings.filter(|form| !is_number(form)).collect()
}

/// Whether `form` stands for a number: capital letters do.
fn is_number(form: &str) -> bool {
    !form.is_empty() && form.chars().all(|letter| letter.is_ascii_uppercase())
}

impl TypedValueParser for Suggested {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        NonEmptyStringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_with_a_number_are_completed_up_to_it() {
        let values = |suggested: Suggested| (suggested.0)();
        assert_eq!(values(Suggested::TREE), ["chain", "comb:", "alternates:"]);
        let lengths = values(Suggested::DRAFT_LEN);
        assert_eq!(lengths[..2], ["auto", "confidence:"]);
        assert!(values(Suggested::PROPOSAL).contains(&"dense:f16"));
        assert!(values(Suggested::METHOD).contains(&"coupled"));
        for suggested in [
            Suggested::RULE,
            Suggested::PLAN,
            Suggested::TARGET,
            Suggested::VERIFICATION,
            Suggested::ACCEPT_AT,
            Suggested::DRAFTING,
        ] {
            assert!(values(suggested).len() > 1, "{suggested:?}");
        }
    }
}
