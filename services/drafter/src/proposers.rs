//! Who can propose here: draft models on their engines, Max-Gram, and the cascade of them.

use std::sync::Arc;

use grammar::Grammars;
use model::engine::EngineHandle;
use model::head::AcceptanceHead;
use model::source::ServedModel;
use parking_lot::Mutex;
use peer::{HeldSession, PeerServer};
use speculation::ahead::Acceptance;
use speculation::cascade::CascadeConfig;
use speculation::drafting::Drafting;
use speculation::max_gram::Bigram;
use speculation::verification::AcceptanceLabel;

use crate::loaded::Loaded;

/// A drafter with its models loaded and their engines running.
pub type Drafter = PeerServer<Proposers>;

/// A session of a drafter.
pub(crate) type DraftSession = HeldSession<Proposers>;

/// Everyone who can propose, but for the engines of the draft models.
pub struct Proposers {
    pub(crate) heads: Vec<Arc<AcceptanceHead>>,
    /// Max-Gram's table; the empty one where there is none.
    pub(crate) bigram: Arc<Bigram>,
    pub(crate) cascade: Option<Arc<CascadeConfig>>,
    /// The ways of drafting, the default first; never empty.
    pub(crate) draftings: Vec<Drafting>,
    /// What was learnt of the acceptance of drafts that are made ahead, by the latest session that made some.
    pub(crate) acceptance: Mutex<Acceptance>,
    /// Of the draft models' vocabulary; none without a model.
    pub(crate) grammars: Option<Arc<Grammars>>,
}

impl Proposers {
    /// Returns the draft models that are to be put on engines, the largest first, and the rest of what is `loaded`.
    pub(crate) fn of<M>(loaded: Loaded<M>) -> (Vec<ServedModel<M>>, Self) {
        let grammars = loaded.models.first().map(|model| {
            let (text, ends) = (Arc::new(model.text.clone()), model.eos_token_ids.clone());
            peer::grammars(&text, model.outline.vocab_size, ends)
        });
        let proposers = Self {
            grammars,
            draftings: loaded.draftings(),
            heads: loaded.heads.into_iter().map(Arc::new).collect(),
            bigram: Arc::new(loaded.bigram.map(|file| file.table).unwrap_or_default()),
            cascade: loaded.cascade.map(Arc::new),
            acceptance: Mutex::default(),
        };
        (loaded.models, proposers)
    }

    /// Returns the acceptance head for `label`.
    pub(crate) fn head(&self, label: AcceptanceLabel) -> Option<&Arc<AcceptanceHead>> {
        self.heads.iter().find(|head| head.info().label == label)
    }

    /// Returns the table of the cascade's Max-Gram, if it is one of the drafts.
    pub(crate) fn cascade_bigram(&self) -> Option<&Arc<Bigram>> {
        let cascade = self.cascade.as_ref()?;
        cascade.max_gram().then_some(&self.bigram)
    }
}

/// Returns the longest sequence that every model asked holds; none where no model is asked.
pub(crate) fn context_len(drafter: &Drafter, drafting: Drafting) -> Option<usize> {
    let requested = match drafting {
        Drafting::Model => 1,
        Drafting::MaxGram => 0,
        Drafting::Cascade => drafter.engines.len(),
    };
    let engines = drafter.engines[..requested].iter();
    engines.map(EngineHandle::longest_sequence).min()
}
