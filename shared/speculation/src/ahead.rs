//! Drafting ahead of a target that decodes: without a pause, past what it has chosen, the best branch first.
//!
//! Under [coupled verification](crate::verification::tree) the target's token never depends on a draft, so a drafter need
//! not wait for it. It grows an [`AheadTree`]: each forward of the draft model computes the rows of a few leaves, and each
//! row proposes some tokens to follow its leaf. A node's *survival* is the probability that the target chooses it and all
//! before it, by how often such nodes were chosen before ([`Acceptance`]); leaves of the largest survival are next. What
//! the target chose, a commit, makes the branch below it the tree.

mod acceptance;
mod balance;
mod tree;

pub use acceptance::{Acceptance, CHILDREN, Margin, margin};
pub use balance::{Balance, Findings, JudgedForward, ON_THE_WAY};
pub use tree::{AheadTree, Growth, Leaves};
