//! How long to draft: the draft length of most tokens a second, from what was measured.
//!
//! | module | what it holds |
//! |---|---|
//! | `length` | the best length for known acceptance and costs |
//! | `survival` | how likely each position of a draft is to stand once it is reached |
//! | `line` | a cost that is a fixed part and a part for each token, fitted as observations come |
//! | `price` | what a peer says of its load, and so what others wait for a row |
//! | `ledger` | acceptance, and what rounds cost at each load, common to the sessions of a kind |
//! | `sample` | what a token takes where the target decodes alone |
//! | `estimator` | what a request measures of its rounds, and the next length |
//!
//! An [`Estimator`] is worth keeping, one for each drafter, verification and temperature, so that each session
//! [begins](Estimator::begin) from what the others measured: acceptance differs between kinds, and a draft that is
//! made without the shared noise (Max-Gram) must not share one with a draft that is.

mod estimator;
mod ledger;
mod length;
mod line;
mod price;
mod sample;
mod survival;

use std::time::Duration;

use strum::IntoStaticStr;

pub use estimator::Estimator;
pub use length::RoundCosts;
pub use line::CostLine;
pub use price::Price;

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
    pub min_survival: Option<f64>,
    /// The reason.
    pub why: Why,
}

/// The reason for the length of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
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
        self.into()
    }
}

/// A round, as measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasuredRound {
    /// Levels of the draft tree; the draft tokens of a chain. 0 for a step of the target alone.
    pub levels: u32,
    /// Nodes of the draft tree: what the verifier scored beside the root.
    pub nodes: u32,
    /// Draft tokens accepted: the length of the accepted path.
    pub accepted: u32,
    /// Whether the target's choice ended the path before the last level. An end token does not.
    pub refused: bool,
    /// Time from the draft request to its answer. None where no draft was requested, or where the time does not count:
    /// the request was repeated, or the drafter first read a prompt or the tokens of a rest.
    pub draft: Option<Duration>,
    /// Time from the verification request to its verdict. None where the time does not count, for the same reasons at
    /// the verifier.
    pub verify: Option<Duration>,
    /// Time from the verdict before to the draft request, in which its tokens were handed out. None where another request
    /// came between, or none before.
    pub between: Option<Duration>,
}
