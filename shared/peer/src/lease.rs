//! Sessions that outlive their stream.
//!
//! A session belongs to at most one stream. While a stream holds it, its state lives with that
//! stream as an [`Attached`] guard; when the stream merely breaks, the guard is
//! [detached](Attached::detach) and the state waits here until its lease ends or the next stream
//! [attaches](Leases::attach). Whatever is lost on the way can be replayed by the client, so a
//! session is a cache and never the only copy of anything.

mod table;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use table::Slots;

/// A session's name, chosen by the client.
pub type SessionId = [u8; 16];

/// How long an expired state may linger before the sweep frees it. It cannot be attached meanwhile.
const SWEEP_INTERVAL: Duration = Duration::from_millis(250);

/// Why a stream does not get its session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// It is new, and the table is full.
    #[error("all {max_sessions} sessions are taken")]
    Full {
        /// How many sessions there may be, attached and detached together.
        max_sessions: usize,
    },
    /// It belongs to a later stream: this one was opened before and arrived after.
    #[error("the session was opened with epoch {held} already, this stream has {requested}")]
    Stale {
        /// Epoch of the session's latest stream.
        held: u32,
        /// Epoch of this one.
        requested: u32,
    },
}

/// How many sessions there are at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// Sessions a stream holds.
    pub attached: usize,
    /// Sessions waiting for their next stream.
    pub detached: usize,
}

/// The sessions of one service, with `S` as the state of each.
#[derive(Debug)]
pub struct Leases<S> {
    max_sessions: usize,
    slots: Mutex<Slots<S>>,
}

impl<S: Send + 'static> Leases<S> {
    /// Makes an empty table and spawns the task that frees expired sessions; the task ends within
    /// one sweep of the table's drop.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn new(max_sessions: usize) -> Arc<Self> {
        let leases = Arc::new(Self {
            max_sessions,
            slots: Mutex::default(),
        });
        let swept = Arc::downgrade(&leases);
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
            loop {
                let now = ticks.tick().await;
                let Some(leases) = swept.upgrade() else {
                    return;
                };
                let expired = leases.sweep(now);
                if expired > 0 {
                    tracing::debug!(expired, "detached sessions expired");
                }
            }
        });
        leases
    }

    /// Gives a session to the calling stream, with its state where it was detached and its lease
    /// lives, otherwise anew.
    ///
    /// A stream that still holds the session is told to [give way](Attached::superseded): it is
    /// most likely half open, its client having reconnected. Its state is lost.
    ///
    /// # Errors
    /// [`AttachError::Full`] for a new session beyond the limit, [`AttachError::Stale`] for an epoch
    /// before that of the session's latest stream.
    pub fn attach(
        self: &Arc<Self>,
        id: SessionId,
        epoch: u32,
    ) -> Result<(Attached<S>, Option<S>), AttachError> {
        let superseded = CancellationToken::new();
        let (generation, state) = self.hold(id, epoch, superseded.clone(), Instant::now())?;
        let guard = Attached {
            leases: Arc::clone(self),
            id,
            generation,
            superseded,
        };
        Ok((guard, state))
    }
}

/// A stream's hold on its session. Dropping it closes the session.
#[derive(Debug)]
#[must_use = "dropping the guard closes the session"]
pub struct Attached<S> {
    leases: Arc<Leases<S>>,
    id: SessionId,
    generation: u64,
    superseded: CancellationToken,
}

impl<S> Attached<S> {
    /// Completes when a newer stream has taken the session; this one should end at once.
    pub fn superseded(&self) -> impl Future<Output = ()> + Send + 'static {
        self.superseded.clone().cancelled_owned()
    }

    /// Leaves the session's state for its next stream, for the length of `lease`.
    ///
    /// If a newer stream has taken the session meanwhile, the state is dropped.
    pub fn detach(self, state: S, lease: Duration) {
        let ends = Instant::now() + lease;
        // The guard's own drop then finds the session detached and leaves it alone.
        self.leases.detach(self.id, self.generation, state, ends);
    }
}

impl<S> Drop for Attached<S> {
    fn drop(&mut self) {
        self.leases.close(self.id, self.generation);
    }
}

#[cfg(test)]
mod tests;
