//! What a paper claims, and whether it holds here.

use crate::report::{Row, text};

/// The table of all claims.
pub(super) const TABLE: &str = "claims";

/// A claim, and what was found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claim {
    /// The paper's letter, and where in it.
    pub(super) of: &'static str,
    /// What it says, in our words.
    pub(super) says: &'static str,
    /// The figures that were found.
    pub(super) found: String,
    /// Whether they are as it says.
    pub(super) holds: bool,
}

impl Claim {
    pub(super) fn row(&self) -> Row {
        vec![
            text("of", self.of),
            text("says", self.says),
            text("found", self.found.clone()),
            text("holds", if self.holds { "yes" } else { "no" }),
        ]
    }
}
