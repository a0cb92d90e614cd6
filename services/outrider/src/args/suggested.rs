//! Values that a shell completes and the program does not insist on.

use std::ffi::OsStr;

use clap::builder::{NonEmptyStringValueParser, PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use speculation::methods::{Setting, names};

/// Takes any text that is not empty. Shells complete the values that this program knows; a coordinator of another
/// release may know others, so it is the coordinator that refuses what is unknown.
#[derive(Clone, Debug)]
pub(crate) struct Suggested(Vec<&'static str>);

impl Suggested {
    /// Suggests the names of methods.
    pub(crate) fn methods() -> Self {
        Self(names())
    }

    /// Suggests the values of `setting`: whole words, and the beginnings of those that end with a number.
    pub(crate) fn of(setting: &Setting) -> Self {
        let forms = setting.forms().into_iter();
        let beginnings = forms.map(|form| match form.split_once(':') {
            Some((word, number)) if is_number(number) => &form[..=word.len()],
            _ => form,
        });
        Self(beginnings.filter(|form| !is_number(form)).collect())
    }
}

/// Returns whether `form` stands for a number: capital letters do.
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
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_with_a_number_are_completed_up_to_it() {
        let values = |name: &str| Suggested::of(Setting::find(name).expect(name)).0;
        assert_eq!(values("tree"), ["chain", "comb:", "alternates:"]);
        assert_eq!(values("draft_len")[..2], ["auto", "confidence:"]);
        assert!(values("proposal").contains(&"dense:f16"));
        assert!(Suggested::methods().0.contains(&"coupled"));
        assert_eq!(values("beta"), ["tuned"]);
        assert!(values("window").is_empty());
        for name in [
            "rule",
            "plan",
            "target",
            "verification",
            "accept_at",
            "drafting",
        ] {
            assert!(values(name).len() > 1, "{name}");
        }
    }
}
