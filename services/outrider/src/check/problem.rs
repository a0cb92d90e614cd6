//! What is wrong, and with which setting.

use std::error::Error;
use std::fmt;

use serde::Serialize;
use server::causes::in_one_line;

/// Something because of which a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    /// The setting, `section.key`; empty where the configuration cannot be read.
    pub(crate) key: String,
    /// One line: the setting, what it says, and what to do.
    pub(crate) problem: String,
}

impl Problem {
    pub(crate) fn new(key: impl Into<String>, error: &(dyn Error + 'static)) -> Self {
        Self {
            key: key.into(),
            problem: in_one_line(error),
        }
    }
}

/// A configuration that is refused, in one line.
#[derive(Debug)]
pub(crate) struct Refused(Vec<Problem>);

impl Refused {
    /// # Errors
    /// If there are any problems.
    pub(crate) fn if_any(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            return Ok(());
        }
        Err(Self(problems))
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problems: Vec<_> = self.0.iter().map(|it| it.problem.as_str()).collect();
        f.write_str(&problems.join("; besides: "))
    }
}

impl Error for Refused {}
