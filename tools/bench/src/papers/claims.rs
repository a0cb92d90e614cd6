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
    /// In which of the cases that were measured they are as it says. What is compared has to differ by more than chance.
    pub(super) holds: Vec<bool>,
    /// Why it does not hold in the others.
    pub(super) but: &'static str,
}

impl Claim {
    pub(super) fn row(&self) -> Row {
        vec![
            text("of", self.of),
            text("says", self.says),
            text("found", self.found.clone()),
            text("holds", self.verdict()),
            text("why", self.reason()),
        ]
    }

    fn reason(&self) -> &'static str {
        if self.holds.contains(&false) {
            self.but
        } else {
            ""
        }
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
                but: "too few",
            };
            (claim.verdict(), claim.reason())
        };
        assert_eq!(told(&[true, true]), ("yes".to_owned(), ""));
        assert_eq!(told(&[false]), ("no".to_owned(), "too few"));
        let some = told(&[false, true, true]);
        assert_eq!(some, ("in 2 of 3".to_owned(), "too few"));
    }
}
