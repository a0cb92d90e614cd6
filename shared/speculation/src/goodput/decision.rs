//! What was decided for a round, and why.

/// The length of a round, and what it rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decision {
    /// Draft tokens, or levels of a tree; 0 if the target decodes alone.
    pub len: u32,
    /// Predicted throughput of the best length over that of the target alone, others' time included; none while
    /// costs are unknown.
    pub gain: Option<f64>,
    /// Probability of surviving below which one more draft token costs more than it saves; none unless drafting pays.
    /// A drafter that foretells survival by itself, with an acceptance head, stops there.
    pub worth: Option<f64>,
    /// Why.
    pub why: Why,
}

/// Why a round has its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Why {
    /// Costs are yet to be measured.
    #[default]
    Unknown,
    /// Drafting pays.
    Pays,
    /// Drafting did not pay, and it is looked whether it does by now.
    Tries,
    /// Drafting pays, and the target alone is measured again.
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
