//! The one registry of methods. Command line, API and documents read it; nothing else names one.
//!
//! A method is a preset over the axes of a request: which plan the session follows, how a draft
//! block is verified, what the verifier must be told of the draft law.

use crate::proposal::ProposalForm;
use crate::session::Plan;
use crate::verification::Verification;

/// A named preset over the axes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Name, as given in requests and reported in results.
    pub name: &'static str,
    /// Other names it answers to.
    pub aliases: &'static [&'static str],
    /// One line for `outrider methods`.
    pub summary: &'static str,
    /// Which model does what, in which order.
    pub plan: Plan,
    /// How a draft block is accepted.
    pub verification: Verification,
    /// Whether every token is an exact sample of the target model.
    pub lossless: bool,
    /// Whether a seed gives the same tokens whatever was drafted, retried or moved.
    pub reproducible: bool,
    /// Where it comes from.
    pub source: &'static str,
}

/// Most tokens of a sparse draft law: beyond about 32 acceptance hardly grows, bytes do.
pub const SPARSE_TOP: u32 = 32;

/// Every method there is. The first is the default.
pub const METHODS: &[Method] = &[
    Method {
        name: "coupled",
        aliases: &["gumbel"],
        summary: "draft, then keep each token that is the target's own seeded choice",
        plan: Plan::Speculative,
        verification: Verification::Coupled,
        lossless: true,
        reproducible: true,
        source: "Daliri, Musco, Suresh 2024 (drafter-invariant speculative decoding)",
    },
    Method {
        name: "rejection",
        aliases: &["token", "speculative-sampling"],
        summary: "draft, then accept each token with probability min(1, p/q), else resample",
        plan: Plan::Speculative,
        verification: Verification::Token,
        lossless: true,
        reproducible: false,
        source: "Leviathan, Kalman, Matias 2023; Chen et al. 2023",
    },
    Method {
        name: "target-only",
        aliases: &[],
        summary: "the target model alone, one token a forward",
        plan: Plan::TargetOnly,
        verification: Verification::Coupled,
        lossless: true,
        reproducible: true,
        source: "baseline",
    },
    Method {
        name: "draft-only",
        aliases: &[],
        summary: "the draft model alone; fast, and only as good as the draft model",
        plan: Plan::DraftOnly,
        verification: Verification::Coupled,
        lossless: false,
        reproducible: true,
        source: "baseline",
    },
];

/// No method has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("method: '{name}' is unknown, expected one of {}", names().join(", "))]
pub struct UnknownMethod {
    /// The name given.
    pub name: String,
}

/// The names of all methods, the default first.
pub fn names() -> Vec<&'static str> {
    METHODS.iter().map(|method| method.name).collect()
}

/// The method called `name`, or by an alias; the default if `name` is empty.
///
/// # Errors
/// If there is none; the message lists them all.
pub fn find(name: &str) -> Result<&'static Method, UnknownMethod> {
    if name.is_empty() {
        return Ok(&METHODS[0]);
    }
    METHODS
        .iter()
        .find(|method| method.name == name || method.aliases.contains(&name))
        .ok_or_else(|| UnknownMethod {
            name: name.to_owned(),
        })
}

impl Method {
    /// What the verifier must be told of the draft law at `temperature`.
    pub fn proposal_form(&self, temperature: f32) -> ProposalForm {
        match (self.plan, self.verification) {
            (Plan::Speculative, Verification::Token) if temperature == 0.0 => ProposalForm::Point,
            (Plan::Speculative, Verification::Token) => ProposalForm::Sparse { top: SPARSE_TOP },
            _ => ProposalForm::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_and_alias_is_found_once() {
        let mut seen = std::collections::HashSet::new();
        for method in METHODS {
            for name in std::iter::once(&method.name).chain(method.aliases) {
                assert!(seen.insert(*name), "{name} stands twice");
                assert_eq!(find(name).map(|found| found.name), Ok(method.name));
            }
        }
        assert_eq!(find("").map(|method| method.name), Ok("coupled"));
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let message = find("nonsense").expect_err("unknown").to_string();
        assert!(
            message.contains("'nonsense'") && message.contains("target-only"),
            "{message}"
        );
    }

    #[test]
    fn only_rejection_needs_the_draft_law() {
        for method in METHODS {
            let needs = method.proposal_form(1.0) != ProposalForm::None;
            assert_eq!(needs, method.name == "rejection");
        }
    }
}
