//! The deferral rules: names, parameters, ranges.

/// A deferral rule (Narasimhan et al., "Faster Cascades via Speculative Decoding", §4; BiLD* in
/// Appendix E.5): at which positions, or for which tokens, the draft model is not good enough.
///
/// q and p are the unscaled laws; TV is taken between the sampling laws. Every comparison is strict:
/// in a tie the draft model speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Defer iff max q < 1 - α.
    Chow,
    /// Defer iff H(q) > α.
    ChowLog,
    /// Defer iff max q < max p - α.
    Diff,
    /// Defer iff H(p) < H(q) - α.
    DiffLog,
    /// Defer iff max q < max p - α TV(p, q).
    Opt,
    /// Defer iff H(p) < H(q) - α TV(p, q).
    OptLog,
    /// Token v is refused iff q(v) < max p - α.
    TokenV1,
    /// Token v is refused iff p(v) < max p - α.
    TokenV2,
    /// Token v is refused iff p(v) < max p (1 - α).
    TokenV3,
    /// Defer iff D(q, p) > α (BiLD* of the paper).
    Bild,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 10] = [
        Self::Chow,
        Self::ChowLog,
        Self::Diff,
        Self::DiffLog,
        Self::Opt,
        Self::OptLog,
        Self::TokenV1,
        Self::TokenV2,
        Self::TokenV3,
        Self::Bild,
    ];

    /// Its name, as given in requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chow => "chow",
            Self::ChowLog => "chow-log",
            Self::Diff => "diff",
            Self::DiffLog => "diff-log",
            Self::Opt => "opt",
            Self::OptLog => "opt-log",
            Self::TokenV1 => "token-v1",
            Self::TokenV2 => "token-v2",
            Self::TokenV3 => "token-v3",
            Self::Bild => "bild",
        }
    }

    /// The rule called `name`.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
    }

    /// What it does, in one line.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Chow => "defer where the draft model's largest probability is below 1 - alpha",
            Self::ChowLog => "defer where the draft model's entropy is above alpha, in nats",
            Self::Diff => "defer where the target's largest probability leads by more than alpha",
            Self::DiffLog => {
                "defer where the target's entropy is lower by more than alpha, in nats"
            }
            Self::Opt => "like diff, with alpha times the distance of the two laws",
            Self::OptLog => "like diff-log, with alpha times the distance of the two laws",
            Self::TokenV1 => "refuse tokens whose draft probability is below max p - alpha",
            Self::TokenV2 => "refuse tokens whose target probability is below max p - alpha",
            Self::TokenV3 => "refuse tokens whose target probability is below max p (1 - alpha)",
            Self::Bild => {
                "defer where the cross entropy of draft and target is above alpha, in nats"
            }
        }
    }

    /// Whether it judges tokens, rather than positions.
    pub fn is_token_rule(self) -> bool {
        matches!(self, Self::TokenV1 | Self::TokenV2 | Self::TokenV3)
    }

    /// The α taken where a request names none: a moderate trade of quality for speed. The papers
    /// sweep α and recommend no value, except 5 for BiLD (its authors' code).
    pub fn default_alpha(self) -> f64 {
        match self {
            Self::Chow | Self::Opt | Self::OptLog => 0.5,
            Self::ChowLog => 1.0,
            Self::Diff | Self::DiffLog | Self::TokenV1 | Self::TokenV2 => 0.1,
            Self::TokenV3 => 0.3,
            Self::Bild => 5.0,
        }
    }

    /// The least and the largest α, both allowed. A larger α never defers more.
    pub fn alpha_range(self) -> (f64, f64) {
        match self {
            Self::Chow => (0.0, 1.0),
            Self::ChowLog | Self::Bild => (0.0, 100.0),
            Self::Diff | Self::TokenV1 | Self::TokenV2 | Self::TokenV3 => (-1.0, 1.0),
            Self::DiffLog | Self::Opt | Self::OptLog => (-100.0, 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_found_by_its_name_and_no_other() {
        for rule in Rule::ALL {
            assert_eq!(Rule::find(rule.name()), Some(rule));
        }
        assert_eq!(Rule::find("token"), None);
        assert_eq!(Rule::find("bild-star"), None);
    }
}
