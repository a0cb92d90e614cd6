//! Why a value will not do.

use std::fmt::Display;

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
