//! What rounds cost at each load of the verifier. All sessions of a kind share it.

use std::sync::{Arc, Mutex, PoisonError};

use smart_default::SmartDefault;

use super::line::CostLine;
use super::price::{Loads, Price};
use super::survival::Survival;

/// Number of loads that have costs of their own. A load is a power of two of the sessions that the verifier serves.
const CLASSES: usize = 10;

/// Tokens that the target decodes alone at a new load before drafting is tried.
pub(super) const FIRST_REST: u64 = 24;

/// Share of an earlier observation's weight that is left after each, in the costs: about 20 observations count.
const MEMORY: f64 = 0.95;

/// By how many observations the costs of rounds fade before a try, so that the try decides and not an old
/// measurement.
const FORGOTTEN: u32 = 40;

/// Seconds before another session may begin a try.
const TRY_SECONDS: f64 = 2.0;

/// Share of the target's tokens that tries may cost. The longest pause overrides it.
const TRY_SHARE: f64 = 0.01;

/// Fewest and most tokens of the target alone between two tries.
const REST: (f64, f64) = (512.0, 1e6);

/// Seconds after the first failed try; the pause doubles with each further one, up to so many times.
const PAUSE: f64 = 0.5;
const DOUBLED: u32 = 6;

/// Most sessions whose tokens a pause is counted in, since sessions of other kinds do not count towards it.
const PAUSED_FOR: f64 = 8.0;

/// Measurements that the sessions of a kind share.
#[derive(Clone, Debug, Default)]
pub(super) struct CostLedger(Arc<Mutex<Pages>>);

/// The measurements of the sessions of a kind.
#[derive(Debug, SmartDefault)]
pub(super) struct Pages {
    /// Acceptance in all sessions together.
    #[default(Survival::lasting())]
    pub(super) survival: Survival,
    /// The latest reports of both peers, for sessions that have had none.
    pub(super) loads: Loads,
    /// Nodes of a level in the last round.
    #[default(1.0)]
    pub(super) width: f64,
    costs: [LoadCosts; CLASSES],
}

impl Pages {
    /// The costs at the verifier's load.
    pub(super) fn at(&mut self, verifier: &Price) -> &mut LoadCosts {
        &mut self.costs[verifier.load_class().min(CLASSES - 1)]
    }
}

/// What rounds and tokens of the target alone cost at one load, and when the next try is due.
#[derive(Clone, Debug, PartialEq, SmartDefault)]
pub(super) struct LoadCosts {
    /// Seconds from a draft request to its answer, as a line of the levels drafted: a draft model takes its time for
    /// each token, a target model for the forward.
    #[default(CostLine::new(MEMORY, 1.0))]
    pub(super) draft: CostLine,
    /// Seconds from a verification request to its verdict, as a line of the positions scored.
    #[default(CostLine::new(MEMORY, 0.0))]
    pub(super) verify: CostLine,
    /// Seconds from a verdict to the next draft request.
    #[default(CostLine::new(MEMORY, 0.0))]
    pub(super) between: CostLine,
    /// Seconds that the target takes for a token when it decodes alone.
    #[default(CostLine::new(MEMORY, 0.0))]
    pub(super) alone: CostLine,
    /// Tokens that resting sessions decoded since the last try, and the number at which the next one is due.
    pub(super) rested: u64,
    #[default(FIRST_REST)]
    pub(super) rest: u64,
    /// Failed tries in a row.
    pub(super) failures: u32,
    /// Tokens emitted by rounds with drafts since the target alone was last measured.
    pub(super) drafted: u64,
}

impl LoadCosts {
    /// Whether rounds with drafts were measured, and the target alone too unless sessions cannot rest.
    pub(super) fn is_known(&self, always_drafts: bool) -> bool {
        let rounds = self.draft.is_known() && self.verify.is_known();
        rounds && (always_drafts || self.alone.is_known())
    }

    /// Tokens that this number of resting sessions decodes in a second.
    fn tokens_per_second(&self, sessions: f64) -> f64 {
        sessions / self.alone.fixed().max(f64::MIN_POSITIVE)
    }

    /// Whether a try is due at a verifier that serves this number of sessions. If so, it counts as begun, and the
    /// next one is not due before this one has had its time.
    pub(super) fn begins_try(&mut self, sessions: f64) -> bool {
        let begins = self.alone.is_known() && self.rested >= self.rest;
        if begins {
            let least = TRY_SECONDS * self.tokens_per_second(sessions);
            self.rested = 0;
            self.rest = self.rest.max(least.clamp(REST.0, REST.1) as u64);
            self.draft.fade(FORGOTTEN);
            self.verify.fade(FORGOTTEN);
            self.between.fade(FORGOTTEN);
        }
        begins
    }

    /// Takes note of a failed try, which lost the time of `lost` tokens of the target alone, and sets when the next
    /// try is due.
    pub(super) fn tried_in_vain(&mut self, lost: f64, sessions: f64) {
        let second = self.tokens_per_second(sessions.min(PAUSED_FOR));
        let pause = |doublings: u32| PAUSE * second * f64::from(1 << doublings);
        let tokens = pause(self.failures.min(DOUBLED)).max((lost / TRY_SHARE).min(pause(DOUBLED)));
        self.rest = tokens.clamp(REST.0, REST.1) as u64;
        self.failures += 1;
    }
}

impl CostLedger {
    /// Reads or writes the pages. `action` must not block: it runs under the lock.
    pub(super) fn with<T>(&self, action: impl FnOnce(&mut Pages) -> T) -> T {
        // Nothing here panics half-way, so what is behind a poisoned lock is whole.
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
