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
    /// From the request for the draft to its answer; none where nothing was asked of the drafter, or the
    /// time does not count: the request was repeated, or the drafter had a prompt or the tokens of a rest
    /// to catch up with.
    pub draft: Option<Duration>,
    /// The same of the verifier.
    pub verify: Option<Duration>,
}
