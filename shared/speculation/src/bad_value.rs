//! Why a value will not do.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// A value that will not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct BadValue {
    /// The field to change, as it stands in a request or in the configuration.
    pub field: String,
    /// What is wrong with it, and what would do.
    pub problem: String,
}

impl BadValue {
    /// A fault in `field`.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
        }
    }

    /// Names what `field` could be, where `text` is none of it.
    pub fn unknown<'a>(field: &str, text: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<_> = known.into_iter().collect();
        let known = known.join(", ");
        let problem = format!("'{text}' is unknown, expected one of {known}");
        Self::new(field, problem)
    }

    /// Checks that the value of `field` lies in `range`. NaN lies in none.
    ///
    /// # Errors
    /// As [`in_range`](Self::in_range).
    pub fn within<T: PartialOrd + Display>(
        field: &str,
        value: T,
        range: RangeInclusive<T>,
    ) -> Result<(), Self> {
        let expected = format_args!("{} to {}", range.start(), range.end());
        Self::in_range(range.contains(&value), field, value, expected)
    }

    /// Checks that the value of `field` lies in its range, as `fits` says it does.
    ///
    /// # Errors
    /// Names the field, the value and what is expected, where it does not.
    pub fn in_range(
        fits: bool,
        field: &str,
        value: impl Display,
        expected: impl Display,
    ) -> Result<(), Self> {
        if fits {
            return Ok(());
        }
        let problem = format!("{value} is out of range, expected {expected}");
        Err(Self::new(field, problem))
    }
}
