//! What was decided for a round, and why.

/// The length of a round, and the reason for it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decision {
    /// Draft tokens, or levels of a tree; 0 if the target decodes alone.
    pub len: u32,
    /// Predicted throughput of the best length over that of the target alone. The time that others wait is part of
    /// both costs. None while costs are unknown.
    pub gain: Option<f64>,
    /// The least probability of survival at which one more draft token pays; none unless drafting pays. A drafter
    /// with an acceptance head stops below it.
    pub worth: Option<f64>,
    /// The reason.
    pub why: Why,
}

/// The reason for the length of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Why {
    /// Costs are yet to be measured.
    #[default]
    Unknown,
    /// Drafting pays.
    Pays,
    /// Drafting did not pay before, and the session tries whether it does now.
    Tries,
    /// Drafting pays, and the session measures the target alone again.
    Compares,
    /// Drafting does not pay.
    Rests,
}

impl Why {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Self; 5] = [
        Self::Unknown,
        Self::Pays,
        Self::Tries,
        Self::Compares,
        Self::Rests,
    ];

    /// Its name in spans, metrics and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Pays => "pays",
            Self::Tries => "tries",
            Self::Compares => "compares",
            Self::Rests => "rests",
        }
    }
}
