//! The deferral rules, each described in one place (Narasimhan et al., "Faster Cascades via Speculative Decoding",
//! §4; BiLD* in Appendix E.5): at which positions, or for which tokens, the draft model is not good enough.
//!
//! A rule is a [`Rule`] and a line in [`RULES`]. Names on the command line and on the wire, listings, ranges,
//! what peers must send and what the verifier computes are read from there.
//!
//! q and p are the unscaled distributions of the draft and the target model; the total variation distance TV is
//! taken between the sampling distributions. Every comparison is strict: in a tie the draft model speaks.

pub(super) mod position;
pub(super) mod token_rules;

use std::sync::LazyLock;

use position::Evidence;
pub use position::{BILD, CHOW, CHOW_LOG, DIFF, DIFF_LOG, OPT, OPT_LOG};
pub use token_rules::{TOKEN_V1, TOKEN_V2, TOKEN_V3};

use super::Needs;
use crate::drafting::StopRule;

/// Every rule, in the order of listings.
pub const RULES: &[Rule] = &[
    CHOW, CHOW_LOG, DIFF, DIFF_LOG, OPT, OPT_LOG, TOKEN_V1, TOKEN_V2, TOKEN_V3, BILD,
];

/// A deferral rule. Rules are equal if their names are.
#[derive(Clone, Copy, derive_more::Debug)]
#[debug("Rule({name})")]
pub struct Rule {
    /// The name that requests give.
    pub name: &'static str,
    /// What the rule does, in one line.
    pub summary: &'static str,
    /// The trade-off parameter. A larger α never defers more.
    pub alpha: Alpha,
    /// What the rule reads of the two models, as a function of whether decoding is greedy (temperature 0).
    pub(super) needs: fn(bool) -> Needs,
    /// What the rule judges, and how.
    pub(super) judge: Judge,
    /// The same rule for a drafter that hands over by itself, as a function of α; only for rules that read
    /// nothing but the draft model's confidence.
    pub stop_rule: Option<fn(f64) -> StopRule>,
}

/// The trade-off parameter α of a rule. The papers sweep it and recommend no value, except 5 for BiLD (its authors'
/// code); the other defaults are moderate trades of quality for speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alpha {
    /// The value where a request gives none.
    pub default: f64,
    /// The least and the largest value, both allowed.
    pub range: (f64, f64),
}

/// What a rule judges.
#[derive(Clone, Copy)]
pub(super) enum Judge {
    /// Whether a position is deferred to the target, from the evidence there and α.
    Position(fn(&Evidence<'_>, f64) -> bool),
    /// Whether tokens are refused: those whose probability under a model is below a bound.
    Tokens {
        /// The model whose unscaled probability of a token is compared with the bound.
        judged: Judged,
        /// The bound, from max p and α.
        bound: fn(f64, f64) -> f64,
    },
}

/// Whose probabilities a rule for tokens compares with its bound.
#[derive(Clone, Copy)]
pub(super) enum Judged {
    Draft,
    Target,
}

/// The rules that a drafter can apply by itself.
pub fn for_drafters() -> &'static [Rule] {
    static FOUND: LazyLock<Vec<Rule>> = LazyLock::new(|| {
        let rules = RULES.iter().copied();
        rules.filter(|rule| rule.stop_rule.is_some()).collect()
    });
    &FOUND
}

impl Rule {
    /// The rule that is called `name`.
    pub fn find(name: &str) -> Option<Self> {
        RULES.iter().copied().find(|rule| rule.name == name)
    }

    /// Whether the rule judges tokens, rather than positions.
    pub fn judges_tokens(&self) -> bool {
        matches!(self.judge, Judge::Tokens { .. })
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Rule {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_found_by_its_name_and_no_other() {
        for (at, &rule) in RULES.iter().enumerate() {
            assert_eq!(Rule::find(rule.name), Some(rule));
            assert!(RULES[..at].iter().all(|other| other.name != rule.name));
            let (least, most) = rule.alpha.range;
            assert!((least..=most).contains(&rule.alpha.default), "{rule:?}");
        }
        assert_eq!(Rule::find("token"), None);
        assert_eq!(Rule::find("bild-star"), None);
    }
}
