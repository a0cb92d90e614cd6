//! What is measured of one round.

use std::time::Duration;

/// A round, as measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Round {
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
}
