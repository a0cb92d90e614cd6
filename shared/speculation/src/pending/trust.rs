//! Scales the survival that a source claims by how often its nodes were accepted.

use super::{Claim, SOURCES};

/// What is left of earlier claims and of what they earned after each forward that had drafts to choose from. About
/// two hundred forwards count, so that a source that is not believed gets a row every few dozen forwards to show otherwise.
const MEMORY: f32 = 0.995;

/// Accepted nodes that each source is credited with in advance, and claimed as many.
const CREDIT: f32 = 1.0;

/// What each source of a session claimed of the nodes that were scored, and how many of them were accepted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trust {
    claimed: [f32; SOURCES],
    earned: [f32; SOURCES],
}

impl Trust {
    /// Returns the trust in sources that are each credited with `nodes` accepted nodes.
    pub fn earned(nodes: f32) -> Self {
        Self {
            claimed: [nodes; SOURCES],
            earned: [nodes; SOURCES],
        }
    }

    /// Returns by how much what `source` claims is scaled: 1 for one whose nodes stand as often as it said, or more often.
    pub fn share(&self, source: u8) -> f32 {
        let source = usize::from(source).min(SOURCES - 1);
        ((self.earned[source] + CREDIT) / (self.claimed[source] + CREDIT)).min(1.0)
    }

    /// Takes note of a forward that had drafts to choose from: what was claimed of the nodes that it scored, and whether
    /// they were accepted.
    pub fn observe(&mut self, scored: impl Iterator<Item = (Claim, bool)>) {
        for sum in self.claimed.iter_mut().chain(&mut self.earned) {
            *sum *= MEMORY;
        }
        for (claim, accepted) in scored {
            let source = usize::from(claim.source).min(SOURCES - 1);
            self.claimed[source] += claim.survival;
            self.earned[source] += f32::from(u8::from(accepted));
        }
    }
}
