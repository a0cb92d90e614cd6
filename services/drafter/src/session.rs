//! What a drafter keeps of a session between rounds. All of it can be rebuilt from the next Open.

use std::sync::Arc;

use model::engine::Slot;
use server::replies::Replies;
use speculation::committed::Committed;
use speculation::max_gram::MaxGram;
use wire::open::SessionSpec;
use wire::round::RoundKey;
use wire::v1;

/// One session's state.
pub(crate) struct Session {
    pub(crate) spec: Arc<SessionSpec>,
    pub(crate) committed: Committed,
    /// The draft models' keys and values, the largest model's first; freed with the session.
    pub(crate) slots: Vec<Slot>,
    /// Max-Gram's index of prompt and output; none before it is first used.
    pub(crate) grams: Option<MaxGram>,
    /// Blocks sent lately.
    pub(crate) replies: Replies<RoundKey, Vec<v1::DraftBlock>>,
}

impl Session {
    pub(crate) fn new(spec: SessionSpec, slots: Vec<Slot>) -> Self {
        Self {
            spec: Arc::new(spec),
            committed: Committed::default(),
            slots,
            grams: None,
            replies: Replies::default(),
        }
    }
}
