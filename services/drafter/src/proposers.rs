//! Who can propose here: draft models on their engines, Max-Gram, and the cascade of them.

use std::sync::Arc;

use model::Model;
use model::engine::{self, EngineHandle, Gauges, MemoryGauges, Slot, Totals};
use model::head::AcceptanceHead;
use model::source::ServedModel;
use speculation::cascade::CascadeConfig;
use speculation::drafting::{AcceptanceLabel, Drafting};
use speculation::max_gram::Bigram;
use speculation::proposal::ProposalForm;

use crate::config::DrafterConfig;
use crate::error::DrafterError;
use crate::loaded::Loaded;

/// Everyone who can propose.
pub(crate) struct Proposers {
    /// The draft models, the largest first.
    models: Vec<Proposer>,
    heads: Vec<Arc<AcceptanceHead>>,
    bigram: Option<Arc<Bigram>>,
    cascade: Option<Arc<CascadeConfig>>,
    draftings: Vec<Drafting>,
}

/// A draft model and its engine.
struct Proposer {
    engine: EngineHandle,
    context_len: usize,
}

impl Proposers {
    /// Warms the models up and starts an engine for each.
    ///
    /// # Errors
    /// If a model fails its first forward.
    pub(crate) fn start(loaded: Loaded, config: &DrafterConfig) -> Result<Self, DrafterError> {
        let engine_config = config.engine();
        let start = |(level, served): (usize, ServedModel<Model>)| {
            let name = format!("draft-engine-{level}");
            let (engine, _thread) = engine::spawn(served.model, engine_config, &name)?;
            Ok(Proposer {
                context_len: engine.longest_sequence(),
                engine,
            })
        };
        let draftings = loaded.draftings();
        let models = (1..).zip(loaded.models).map(start);
        Ok(Self {
            draftings,
            models: models.collect::<Result<_, DrafterError>>()?,
            heads: loaded.heads.into_iter().map(Arc::new).collect(),
            bigram: loaded.bigram.map(|file| Arc::new(file.table)),
            cascade: loaded.cascade.map(Arc::new),
        })
    }

    /// The ways of drafting, the default first; never empty.
    pub(crate) fn draftings(&self) -> &[Drafting] {
        &self.draftings
    }

    /// Number of draft models.
    pub(crate) fn models(&self) -> usize {
        self.models.len()
    }

    /// The acceptance head for `label`.
    pub(crate) fn head(&self, label: AcceptanceLabel) -> Option<&Arc<AcceptanceHead>> {
        self.heads.iter().find(|head| head.info().label == label)
    }

    /// Max-Gram's table.
    pub(crate) fn bigram(&self) -> Option<&Arc<Bigram>> {
        self.bigram.as_ref()
    }

    /// The cascade.
    pub(crate) fn cascade(&self) -> Option<&Arc<CascadeConfig>> {
        self.cascade.as_ref()
    }

    /// The table of the cascade's Max-Gram, if it is one of the drafts.
    pub(crate) fn cascade_bigram(&self) -> Option<&Arc<Bigram>> {
        let cascade = self.cascade.as_ref()?;
        self.bigram.as_ref().filter(|_| cascade.max_gram())
    }

    /// Whether the cascade can tell the laws of its tokens in `form`.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn check_form(&self, form: ProposalForm) -> Result<(), String> {
        match &self.cascade {
            Some(cascade) => cascade.check_form(form).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    /// Longest sequence that the largest model holds; none without a model.
    pub(crate) fn longest_sequence(&self) -> Option<usize> {
        self.models.first().map(|model| model.context_len)
    }

    /// Longest sequence that every model asked holds; none where no model is asked.
    pub(crate) fn context_len(&self, drafting: Drafting) -> Option<usize> {
        let asked = match drafting {
            Drafting::Model => 1,
            Drafting::MaxGram => 0,
            Drafting::Cascade => self.models.len(),
        };
        let lens = self.models[..asked].iter().map(|model| model.context_len);
        lens.min()
    }

    /// A sequence's place in each engine, of `tenant`.
    pub(crate) fn new_slots(&self, tenant: &str) -> Vec<Slot> {
        let models = self.models.iter();
        models
            .map(|model| model.engine.new_slot_of(tenant))
            .collect()
    }

    /// Whether every engine runs and none has panicked.
    pub(crate) fn is_healthy(&self) -> bool {
        self.models.iter().all(|model| model.engine.is_healthy())
    }

    /// Memory of the engines, together.
    pub(crate) fn memory(&self) -> MemoryGauges {
        let models = self.models.iter().map(|model| model.engine.memory());
        models.fold(MemoryGauges::default(), |sum, one| MemoryGauges {
            pages: sum.pages + one.pages,
            tokens: sum.tokens + one.tokens,
            budget_tokens: sum.budget_tokens + one.budget_tokens,
            evictions: sum.evictions + one.evictions,
            reprefilled_tokens: sum.reprefilled_tokens + one.reprefilled_tokens,
            shared_tokens: sum.shared_tokens + one.shared_tokens,
        })
    }

    /// What the engines did so far, together.
    pub(crate) fn totals(&self) -> Totals {
        let models = self.models.iter().map(|model| model.engine.totals());
        models.fold(Totals::default(), |sum, one| sum + one)
    }

    /// What the engines are doing, together.
    pub(crate) fn gauges(&self) -> Gauges {
        let models = self.models.iter().map(|model| model.engine.gauges());
        models.fold(Gauges::default(), |sum, one| Gauges {
            running: sum.running + one.running,
            queued: sum.queued + one.queued,
            sequences: sum.sequences + one.sequences,
            cached_tokens: sum.cached_tokens + one.cached_tokens,
        })
    }
}
