//! What a drafter keeps of a session between rounds. All of it can be rebuilt from the next Open.

use std::sync::Arc;

use model::engine::Slot;
use server::replies::Replies;
use speculation::committed::Committed;
use wire::open::SessionSpec;
use wire::round::RoundKey;
use wire::v1;

/// One session's state.
pub(crate) struct Session {
    pub(crate) spec: Arc<SessionSpec>,
    pub(crate) committed: Committed,
    /// The draft model's keys and values, freed with the session.
    pub(crate) slot: Slot,
    /// Blocks sent lately.
    pub(crate) replies: Replies<RoundKey, Vec<v1::DraftBlock>>,
}

impl Session {
    pub(crate) fn new(spec: SessionSpec, slot: Slot) -> Self {
        Self {
            spec: Arc::new(spec),
            committed: Committed::default(),
            slot,
            replies: Replies::default(),
        }
    }
}
