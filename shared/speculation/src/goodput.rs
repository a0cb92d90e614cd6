//! How long to draft: the draft length of most tokens a second, from what was measured.
//!
//! | module | what it holds |
//! |---|---|
//! | `length` | the best length for known acceptance and costs |
//! | `survival` | how likely each position of a draft is to stand once it is reached |
//! | `line` | a cost that is a fixed part and a part for each token, fitted as observations come |
//! | `price` | what a peer says of its load, and so what others wait for a row |
//! | `round` | what is measured of one round |
//! | `ledger` | acceptance, and what rounds cost at each load, common to the sessions of a kind |
//! | `sample` | what a token takes where the target decodes alone |
//! | `estimator` | what a request measures of its rounds, and the next length |
//! | `decision` | what was decided, and why |
//!
//! An [`Estimator`] is worth keeping, one for each drafter, verification and temperature, so that each session
//! [begins](Estimator::begin) from what the others measured: acceptance differs between kinds, and a draft that is
//! made without the shared noise (Max-Gram) must not share one with a draft that is.

mod decision;
mod estimator;
mod ledger;
mod length;
mod line;
mod price;
mod round;
mod sample;
mod survival;

pub use decision::{Decision, Why};
pub use estimator::Estimator;
pub use length::Costs;
pub use line::Line;
pub use price::Price;
pub use round::Round;
