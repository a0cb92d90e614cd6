//! What rounds cost, by how busy the verifier is: known to all sessions whose drafts are alike.

use std::sync::{Arc, Mutex, PoisonError};

use super::line::Line;
use super::price::Price;
use super::survival::MEMORY;

/// Loads that are told apart: powers of two of the sessions that the verifier serves.
const CLASSES: usize = 10;

/// Tokens of the target alone before drafting is first tried at a load.
pub(super) const FIRST_REST: u64 = 24;

/// Costs at each load, shared by the sessions that measure them.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger(Arc<Mutex<Pages>>);

#[derive(Debug, Default)]
struct Pages {
    loads: [LoadCosts; CLASSES],
    /// What the peers said last, for sessions that have not heard of them.
    drafter: Price,
    verifier: Price,
}

/// What rounds cost at one load, and when the way not taken is tried.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoadCosts {
    /// Seconds from a draft request to its answer, as a line of the levels drafted.
    pub(super) draft: Line,
    /// Seconds from a verification request to its verdict, as a line of the positions scored.
    pub(super) verify: Line,
    /// Seconds that the target takes for a token when it decodes alone.
    pub(super) alone: Line,
    /// Tokens of the target alone since drafting was last tried, and how many there are to be between two tries.
    pub(super) rested: u64,
    pub(super) rest: u64,
    /// Tries in vain in a row.
    pub(super) failures: u32,
    /// Tokens of rounds with drafts since the target alone was last measured.
    pub(super) drafted: u64,
}

impl Default for LoadCosts {
    fn default() -> Self {
        Self {
            // A draft model takes its time for each token, a target model for the forward.
            draft: Line::new(MEMORY, 1.0),
            verify: Line::new(MEMORY, 0.0),
            alone: Line::new(MEMORY, 0.0),
            rested: 0,
            rest: FIRST_REST,
            failures: 0,
            drafted: 0,
        }
    }
}

impl LoadCosts {
    /// Whether both ways were measured.
    pub(super) fn is_known(&self, always_drafts: bool) -> bool {
        let rounds = self.draft.is_known() && self.verify.is_known();
        rounds && (always_drafts || self.alone.is_known())
    }
}

impl Ledger {
    /// Reads or writes the costs at `load`, a power of two of sessions. Nothing waits meanwhile.
    pub(super) fn at<T>(&self, load: usize, action: impl FnOnce(&mut LoadCosts) -> T) -> T {
        self.with(|pages| action(&mut pages.loads[load.min(CLASSES - 1)]))
    }

    /// What drafter and verifier said last, to whichever session.
    pub(super) fn prices(&self) -> (Price, Price) {
        self.with(|pages| (pages.drafter, pages.verifier))
    }

    pub(super) fn drafter_said(&self, price: Price) {
        self.with(|pages| pages.drafter = price);
    }

    pub(super) fn verifier_said(&self, price: Price) {
        self.with(|pages| pages.verifier = price);
    }

    fn with<T>(&self, action: impl FnOnce(&mut Pages) -> T) -> T {
        // Nothing here panics half-way, so what is behind a poisoned lock is whole.
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
