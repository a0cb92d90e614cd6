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
    /// In which of the cases that were measured they are as it says.
    pub(super) holds: Vec<bool>,
}

impl Claim {
    pub(super) fn row(&self) -> Row {
        vec![
            text("of", self.of),
            text("says", self.says),
            text("found", self.found.clone()),
            text("holds", self.verdict()),
        ]
    }

    fn verdict(&self) -> String {
        let held = self.holds.iter().filter(|held| **held).count();
        match (held, self.holds.len()) {
            (0, _) => "no".to_owned(),
            (held, cases) if held == cases => "yes".to_owned(),
            (held, cases) => format!("in {held} of {cases}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_may_hold_in_some_cases() {
        let told = |holds: &[bool]| {
            let claim = Claim {
                of: "",
                says: "",
                found: String::new(),
                holds: holds.to_vec(),
            };
            claim.verdict()
        };
        assert_eq!(told(&[true, true]), "yes");
        assert_eq!(told(&[false]), "no");
        assert_eq!(told(&[false, true, true]), "in 2 of 3");
    }
}
