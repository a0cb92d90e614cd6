//! What a drafter's configuration names, loaded and checked.

use std::error::Error;
use std::path::Path;

use model::Model;
use model::bigram::{BigramError, BigramFile};
use model::head::AcceptanceHead;
use model::source::ServedModel;
use peer::PeerError;
use speculation::cascade::CascadeConfig;
use speculation::drafting::Drafting;

use crate::config::{
    AUTOMATIC, CascadeSection, DrafterConfig, MAX_DRAFT_TOKENS, MaxGramDraft, NO_MODEL, ROLE,
};

/// The name of Max-Gram among models, and of a drafter that has nothing else.
pub(crate) const MAX_GRAM: &str = "max-gram";

/// A bigram table in a model's folder.
const BESIDE_MODEL: &str = "bigram.safetensors";

/// Everyone who can propose, not yet running.
#[derive(Debug)]
pub struct Loaded {
    /// Draft models, the largest first; none if Max-Gram drafts alone.
    pub(crate) models: Vec<ServedModel<Model>>,
    /// Acceptance heads of the first model, at most one for each label.
    pub heads: Vec<AcceptanceHead>,
    /// Max-Gram's table.
    pub bigram: Option<BigramFile>,
    /// The cascade, of all models and Max-Gram if it says so.
    pub(crate) cascade: Option<CascadeConfig>,
}

impl Loaded {
    /// Loads all that `config` names.
    ///
    /// # Errors
    /// [`PeerError`] naming the setting, and what is wrong with it.
    pub fn load(config: &DrafterConfig) -> Result<Self, PeerError> {
        check_limits(config)?;
        if config.model.path != NO_MODEL {
            let served = config.model.load();
            return Self::beside(served.map_err(|error| wrong("model", error))?, config);
        }
        let no_model = |setting: &str, given: bool| {
            if !given {
                return Ok(());
            }
            let problem = "goes with a draft model, and drafter.model.path is none";
            Err(wrong(setting, problem))
        };
        no_model("heads", !config.heads.is_empty())?;
        no_model("cascade.models", !config.cascade.models.is_empty())?;
        no_model("cascade.k", !config.cascade.k.is_empty())?;
        // Nothing is done with the rest of it here; see `cascade`.
        cascade(&config.cascade, &[], true)?;
        let bigram = match config.bigram.as_str() {
            "none" => {
                let problem = "none leaves nobody to draft, since drafter.model.path is none too";
                return Err(wrong("bigram", problem));
            }
            AUTOMATIC => BigramFile::open("embedded"),
            path => BigramFile::open(path),
        };
        let bigram = bigram.map_err(|error| wrong("bigram", error))?;
        Ok(Self {
            models: Vec::new(),
            heads: Vec::new(),
            bigram: Some(bigram),
            cascade: None,
        })
    }

    /// Takes `served` as the draft model, and loads the rest of what `config` names.
    ///
    /// # Errors
    /// As [`Loaded::load`].
    pub fn beside(served: ServedModel<Model>, config: &DrafterConfig) -> Result<Self, PeerError> {
        let mut models = smaller(&served, config)?;
        models.insert(0, served);
        Self::of(models, config)
    }

    /// Takes `models` as the draft models, the largest first and at least one, and loads the rest of what
    /// `config` names.
    ///
    /// # Errors
    /// As [`Loaded::load`].
    ///
    /// # Panics
    /// If there is no model.
    pub fn of(
        mut models: Vec<ServedModel<Model>>,
        config: &DrafterConfig,
    ) -> Result<Self, PeerError> {
        check_limits(config)?;
        let heads = heads(&mut models[0], config).map_err(|error| wrong("heads", error))?;
        let bigram = bigram(&models[0], config).map_err(|error| wrong("bigram", error))?;
        let has_max_gram = has_max_gram(config, bigram.is_some())?;
        for problem in out_of_order(&models) {
            tracing::warn!("{problem}");
        }
        let cascade = cascade(&config.cascade, &models, has_max_gram)?;
        Ok(Self {
            models,
            heads,
            bigram,
            cascade,
        })
    }

    /// The ways of drafting, the default first; never empty.
    pub(crate) fn draftings(&self) -> Vec<Drafting> {
        let ways = [
            (Drafting::Model, !self.models.is_empty()),
            (Drafting::MaxGram, self.bigram.is_some()),
            (Drafting::Cascade, self.cascade.is_some()),
        ];
        let held = ways.into_iter().filter(|&(_, held)| held);
        held.map(|(way, _)| way).collect()
    }
}

/// What is wrong with a setting of the drafter.
fn wrong(setting: &str, problem: impl Into<Box<dyn Error + Send + Sync>>) -> PeerError {
    PeerError::setting(ROLE, setting, problem)
}

fn check_limits(config: &DrafterConfig) -> Result<(), PeerError> {
    let tokens = config.max_draft_tokens.get();
    if tokens <= MAX_DRAFT_TOKENS {
        let checked = config.bounds().engine().check_budget();
        return checked.map_err(PeerError::engine(ROLE));
    }
    let problem = format!("{tokens} is out of range, expected 1 to {MAX_DRAFT_TOKENS}");
    Err(wrong("max_draft_tokens", problem))
}

/// The heads found with the model, and those the configuration names.
fn heads(
    served: &mut ServedModel<Model>,
    config: &DrafterConfig,
) -> Result<Vec<AcceptanceHead>, Box<dyn Error + Send + Sync>> {
    let mut heads: Vec<AcceptanceHead> = Vec::new();
    for file in &config.heads {
        let head = AcceptanceHead::open(Path::new(file))?;
        let head = served.fit(head)?;
        let label = head.info().label;
        if let Some(twin) = heads.iter().find(|twin| twin.info().label == label) {
            let (one, other) = (twin.origin(), head.origin());
            let problem = format!(
                "'{one}' and '{other}' are both for label '{}', leave one of them out",
                label.name()
            );
            return Err(problem.into());
        }
        heads.push(head);
    }
    for found in std::mem::take(&mut served.heads) {
        if !heads
            .iter()
            .any(|head| head.info().label == found.info().label)
        {
            heads.push(found);
        }
    }
    Ok(heads)
}

/// Max-Gram's table, of the model's vocabulary.
fn bigram(
    served: &ServedModel<Model>,
    config: &DrafterConfig,
) -> Result<Option<BigramFile>, BigramError> {
    let fits = |file: &BigramFile, path: &str| {
        file.check(&served.vocab_fingerprint, served.vocab_size, path)
    };
    let named = |path: &str| {
        let file = BigramFile::open(path)?;
        fits(&file, path)?;
        Ok(Some(file))
    };
    let beside = Path::new(&config.model.path).join(BESIDE_MODEL);
    match config.bigram.as_str() {
        "none" => Ok(None),
        AUTOMATIC if beside.is_file() => named(&beside.to_string_lossy()),
        AUTOMATIC => match BigramFile::open("embedded") {
            Ok(file) => Ok(Some(file).filter(|file| fits(file, "embedded").is_ok())),
            Err(BigramError::NotEmbedded) => Ok(None),
            Err(error) => Err(error),
        },
        path => named(path),
    }
}

/// Whether Max-Gram is a draft of the cascade.
fn has_max_gram(config: &DrafterConfig, has_table: bool) -> Result<bool, PeerError> {
    match config.cascade.max_gram {
        MaxGramDraft::Auto => Ok(has_table),
        MaxGramDraft::No => Ok(false),
        MaxGramDraft::Yes if has_table => Ok(true),
        MaxGramDraft::Yes => {
            let bigram = &config.bigram;
            let problem = format!(
                "true, and with drafter.bigram = \"{bigram}\" there is no bigram table, which Max-Gram falls \
                 back on; name one, make one with `outrider bigram build`, or set it to false or auto"
            );
            Err(wrong("cascade.max_gram", problem))
        }
    }
}

/// What is to be said of models that read more for a token than those before them: the cascade would ask
/// the dearer one more often. It is no error, for memory and formats differ, and the output is the same.
fn out_of_order(models: &[ServedModel<Model>]) -> Vec<String> {
    let weights = |served: &ServedModel<Model>| served.model.config().weights_per_token();
    let pairs = models.windows(2).enumerate();
    pairs
        .filter(|(_, pair)| weights(&pair[1]) > weights(&pair[0]))
        .map(|(index, pair)| {
            format!(
                "drafter.cascade.models[{index}]: '{}' reads {} weights a token, more than the {} of '{}' before \
                 it; the largest should come first, and each be smaller than the one before",
                pair[1].name,
                weights(&pair[1]),
                weights(&pair[0]),
                pair[0].name
            )
        })
        .collect()
}

/// The models of the cascade after the first, of the first one's vocabulary.
fn smaller(
    served: &ServedModel<Model>,
    config: &DrafterConfig,
) -> Result<Vec<ServedModel<Model>>, PeerError> {
    let sources = config.cascade.models.iter().enumerate();
    sources
        .map(|(index, source)| {
            let model = source.load().map_err(|error| error.to_string());
            model
                .and_then(|model| same_vocabulary(model, served))
                .map_err(|problem| wrong(&format!("cascade.models[{index}]"), problem))
        })
        .collect()
}

/// `model`, if its vocabulary is that of `served`.
fn same_vocabulary(
    model: ServedModel<Model>,
    served: &ServedModel<Model>,
) -> Result<ServedModel<Model>, String> {
    let encoder = |of: &ServedModel<Model>| of.decoder_start_token_id.is_some();
    if encoder(&model) != encoder(served) {
        return Err(format!(
            "of '{}' and '{}' one is an encoder-decoder model, the other is not; the models of a cascade must \
             all be, or none",
            model.name, served.name
        ));
    }
    let vocabulary = |of: &ServedModel<Model>| (of.vocab_size, of.vocab_fingerprint);
    if vocabulary(&model) == vocabulary(served) {
        return Ok(model);
    }
    Err(format!(
        "'{}' has another vocabulary ({} tokens) than '{}' ({} tokens); the models of a cascade must share \
         one tokenizer",
        model.name, model.vocab_size, served.name, served.vocab_size
    ))
}

/// The cascade of `models`, if there are two drafts.
fn cascade(
    section: &CascadeSection,
    models: &[ServedModel<Model>],
    has_max_gram: bool,
) -> Result<Option<CascadeConfig>, PeerError> {
    let drafts = models.len() + usize::from(has_max_gram);
    let k = match &section.k {
        k if k.is_empty() => CascadeSection::default_k(drafts, has_max_gram),
        k => k.clone(),
    };
    let (lenience, max_gram_tokens) = (section.lenience, section.max_gram_tokens);
    // Checked even where there is nothing to be done with it: a wrong setting should not lie in wait.
    let cascade = CascadeConfig::new(drafts, has_max_gram, k, lenience, max_gram_tokens);
    let cascade = cascade.map_err(|bad| {
        let mut names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
        names.extend(has_max_gram.then_some(MAX_GRAM));
        // It begins with what is wrong of a cascade: "cascade k: 1 rows".
        let bad = bad.to_string().replacen(' ', ".", 1);
        let (setting, problem) = bad.split_once(": ").unwrap_or(("cascade", &bad));
        wrong(
            setting,
            format!("{problem}; the drafts are {}", names.join(", ")),
        )
    })?;
    Ok((drafts > 1).then_some(cascade))
}
