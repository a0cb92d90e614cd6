//! What a verifier keeps of a session between rounds. All of it can be rebuilt from the next Open.

use std::sync::Arc;

use model::engine::Slot;
use server::replies::Replies;
use speculation::TokenId;
use speculation::committed::Committed;
use wire::open::SessionSpec;
use wire::round::RoundKey;
use wire::v1;

/// One session's state.
pub(crate) struct Session {
    pub(crate) spec: Arc<SessionSpec>,
    pub(crate) committed: Committed,
    /// The target model's keys and values, freed with the session.
    pub(crate) slot: Slot,
    /// Verdicts sent lately.
    pub(crate) replies: Replies<RoundKey, v1::Verdict>,
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

    /// Prompt (or start token), output and `drafts`: what the model's sequence must hold.
    pub(crate) fn sequence(&self, drafts: &[TokenId]) -> Vec<TokenId> {
        [self.spec.lead(), self.committed.tokens(), drafts].concat()
    }
}
