//! Who can propose here: draft models on their engines, Max-Gram, and the cascade of them.

use std::sync::Arc;

use grammar::Grammars;
use model::engine::EngineHandle;
use model::head::AcceptanceHead;
use model::source::ServedModel;
use parking_lot::Mutex;
use peer::{HeldSession, LentSlot, PeerServer};
use speculation::ahead::Acceptance;
use speculation::cascade::CascadeConfig;
use speculation::drafting::Drafting;
use speculation::max_gram::{Bigram, MaxGram};
use speculation::verification::AcceptanceLabel;
use text::Translator;
use wire::open::SessionSpec;
use wire::status::BadField;

use crate::loaded::Loaded;
use crate::translations::{TranslatedDrafts, Translations};

/// A drafter with its models loaded and their engines running.
pub type Drafter = PeerServer<Proposers>;

/// What a drafter keeps of a session.
#[derive(Default)]
pub struct DraftMemory {
    /// Max-Gram's index of prompt and output; none before it is first used.
    pub(crate) max_gram: Option<MaxGram>,
    /// What was drafted past the output, for a target of another vocabulary.
    pub(crate) translated: LentSlot<Option<TranslatedDrafts>>,
}

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
    /// The vocabularies of targets that are known beside it; none without a model.
    pub(crate) translations: Option<Translations>,
}

impl Proposers {
    /// Returns the draft models that are to be put on engines, the largest first, and the rest of what is `loaded`.
    pub(crate) fn of<M>(loaded: Loaded<M>) -> (Vec<ServedModel<M>>, Self) {
        let of_text = loaded.models.first().map(|model| {
            let text = Arc::new(model.text.clone());
            let (size, ends) = (model.outline.vocab_size, &model.eos_token_ids);
            let grammars = peer::grammars(&text, size, ends.clone());
            (grammars, Translations::of(text, size, ends.clone()))
        });
        let (grammars, translations) = of_text.unzip();
        let proposers = Self {
            grammars,
            translations,
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

/// Returns the translator of a session; none if it is in the draft model's vocabulary.
///
/// # Errors
/// If its vocabulary was forgotten meanwhile.
pub(crate) fn translator(
    drafter: &Drafter,
    session: &SessionSpec,
) -> Result<Option<Arc<Translator>>, BadField> {
    let fingerprint = &session.vocab_fingerprint;
    if fingerprint.is_empty() || *fingerprint == drafter.description.vocab_fingerprint {
        return Ok(None);
    }
    let known = drafter.role.translations.as_ref();
    let known = known.and_then(|it| it.find(fingerprint));
    let forgotten = || BadField::new("vocab_fingerprint", "not known any more; tell it again");
    Ok(Some(Arc::clone(&known.ok_or_else(forgotten)?.translator)))
}
