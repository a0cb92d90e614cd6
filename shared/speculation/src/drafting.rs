//! How draft tokens are made: one token of a distribution, when to stop, the shape of a block, and what a request
//! may choose of them.

mod axes;
mod drawn;
mod label;
pub mod policies;
mod proposing;
mod stop;
mod tree;

pub use axes::{DraftLen, Drafting, TreeShape};
pub use drawn::{drawn_siblings, draws_siblings};
pub use label::{AcceptanceLabel, UnknownLabel};
pub use proposing::{DraftToken, ProposalOptions, draw, propose};
pub use stop::{StopRule, Stopping};
pub use tree::{Growth, siblings};
