//! The vocabularies of targets that a drafter was told, and what it drafts past an output in one of them.

mod drafts;

use std::sync::Arc;
use std::time::Duration;

use model::source::TextEncoding;
use parking_lot::Mutex;
use speculation::TokenId;
use text::{ServedText, Translator};
use tokio::sync::Mutex as AsyncMutex;
use tonic::{Status, Streaming};
use wire::describe::{Fit, MAX_TOKENIZER_BYTES, check_pair, translated};
use wire::failure::Failure;
use wire::status::BadField;
use wire::v1::{LearnRequest, PeerDescription, TokenizerPart};

pub(crate) use drafts::TranslatedDrafts;

/// Most vocabularies kept, some megabytes each; the one learnt the longest time ago makes room.
const MOST: usize = 8;

/// How long a tokenizer may take to come.
const LEARN_TIMEOUT: Duration = Duration::from_secs(30);

/// A target's vocabulary, and what the drafter is to sessions in it.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) description: Arc<PeerDescription>,
    pub(crate) translator: Arc<Translator>,
}

/// The draft model's vocabulary, and those of targets that are known.
pub(crate) struct Translations {
    draft: Arc<TextEncoding>,
    /// What ends the draft model's texts.
    pub(crate) ends: Vec<TokenId>,
    pub(crate) vocab_size: u32,
    known: Mutex<Vec<Arc<Known>>>,
    /// Held while one is learnt: many coordinators may tell the same.
    learning: AsyncMutex<()>,
}

impl Translations {
    pub(crate) fn of(draft: Arc<TextEncoding>, vocab_size: u32, ends: Vec<TokenId>) -> Self {
        Self {
            draft,
            ends,
            vocab_size,
            known: Mutex::default(),
            learning: AsyncMutex::default(),
        }
    }

    /// Returns the vocabulary of this fingerprint, if it is known.
    pub(crate) fn find(&self, vocab_fingerprint: &[u8]) -> Option<Arc<Known>> {
        let known = self.known.lock();
        let found = known
            .iter()
            .find(|it| it.description.vocab_fingerprint == vocab_fingerprint);
        found.cloned()
    }

    /// Learns the vocabulary that `parts` tell the drafter that describes itself as `own`. None if they do not, and it is not
    /// known.
    ///
    /// # Errors
    /// If it is malformed or too large, or the drafter cannot translate.
    pub(crate) async fn learn(
        &self,
        own: &PeerDescription,
        mut parts: Streaming<LearnRequest>,
    ) -> Result<Option<Arc<Known>>, Status> {
        let head = parts.message().await?.unwrap_or_default();
        let target = head.target;
        let target = target.ok_or_else(|| BadField::new("target", "missing in the first part"))?;
        let fit = check_pair(own, &target);
        match fit.map_err(|differ| BadField::new("target", differ.to_string()))? {
            Fit::Translates => {}
            Fit::SameVocabulary => {
                return Err(BadField::new("target", "has the draft model's vocabulary").into());
            }
        }
        if let Some(known) = self.find(&target.vocab_fingerprint) {
            return Ok(Some(known));
        }
        let _one_at_a_time = self.learning.lock().await;
        let told = tokio::time::timeout(LEARN_TIMEOUT, told(parts)).await;
        let json =
            told.map_err(|_| Failure::Late.status("the tokenizer did not come in time"))??;
        // Another may have told it meanwhile.
        let known = self.find(&target.vocab_fingerprint);
        if json.is_empty() || known.is_some() {
            return Ok(known);
        }
        let (draft, vocab_size) = (Arc::clone(&self.draft), self.vocab_size);
        let target_size = target.vocab_size;
        let reading = tokio::task::spawn_blocking(move || {
            let read = |json: &[u8]| ServedText::new(json, TokenizerPart::default()).map(Arc::new);
            let target = read(&json)?;
            let draft = read(&draft.tokenizer_json)?;
            Ok(Translator::new((target, target_size), (draft, vocab_size)))
        });
        let failed = |problem: String| BadField::new("tokenizer_json", problem);
        let read = reading
            .await
            .map_err(|error| Failure::Internal.status(error.to_string()))?;
        let translator = read.map_err(failed)?;
        let share = translator.shared();
        tracing::info!(
            target = target.model,
            share,
            "drafts for a target of another vocabulary; share: of the draft model's tokens, those that are a token of it"
        );
        let learnt = Arc::new(Known {
            description: Arc::new(translated(own, &target)),
            translator: Arc::new(translator),
        });
        let mut known = self.known.lock();
        if known.len() == MOST {
            known.remove(0);
        }
        known.push(Arc::clone(&learnt));
        Ok(Some(learnt))
    }
}

/// Returns the bytes of the tokenizer that `parts` tell.
async fn told(mut parts: Streaming<LearnRequest>) -> Result<Vec<u8>, Status> {
    let mut json = Vec::new();
    while let Some(part) = parts.message().await? {
        json.extend_from_slice(&part.tokenizer_json);
        BadField::at_most("tokenizer_json", json.len(), MAX_TOKENIZER_BYTES, "bytes")?;
    }
    Ok(json)
}
