//! The tokenizers and chat templates of a model's verifiers, each fetched once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use speculation::session::Peer;
use text::ServedText;
use tokio::sync::OnceCell;
use wire::v1::{PeerDescription, TokenizerPart, TokenizerRequest};

use super::Endpoint;
use super::clients::{answer_within, failed, verifier_client};
use crate::peer::error::PeerError;

/// How long a verifier may take to send its tokenizer.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Most texts kept: more than one only while verifiers are replaced one by one.
const MOST: usize = 4;

/// What a text depends on: with other weights a model may have another chat template, though its vocabulary is
/// the same.
#[derive(Clone, Debug, PartialEq)]
struct TextKey {
    model: String,
    weights: String,
    vocab_fingerprint: Vec<u8>,
}

impl TextKey {
    fn of(description: &PeerDescription) -> Self {
        let numerics = description.numerics.clone().unwrap_or_default();
        Self {
            model: description.model.clone(),
            weights: numerics.weights,
            vocab_fingerprint: description.vocab_fingerprint.clone(),
        }
    }
}

/// A text, once it has come.
type TextCell = Arc<OnceCell<Arc<ServedText>>>;

/// The texts known, the latest last.
#[derive(Debug, Default)]
pub(super) struct Texts(Mutex<Vec<(TextKey, TextCell)>>);

impl Texts {
    /// The text of the verifier at `endpoint`, which describes itself so. Those who ask for one text at the same
    /// time wait for one fetch.
    ///
    /// # Errors
    /// If the verifier does not send it in time, or what it sends is no tokenizer.
    pub(super) async fn of(
        &self,
        endpoint: &Endpoint,
        description: &PeerDescription,
    ) -> Result<Arc<ServedText>, PeerError> {
        let cell = self.cell(TextKey::of(description));
        let text = cell.get_or_try_init(|| async {
            let fetching = answer_within(FETCH_TIMEOUT, "tokenizer", endpoint, fetch(endpoint));
            fetching.await?.map(Arc::new)
        });
        text.await.cloned()
    }

    fn cell(&self, key: TextKey) -> TextCell {
        // Nothing here panics half-way, so what is behind a poisoned lock is whole.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().position(|(other, _)| *other == key);
        let (key, cell) = match found {
            Some(at) => known.remove(at),
            None => (key, TextCell::default()),
        };
        if known.len() == MOST {
            known.remove(0);
        }
        known.push((key, Arc::clone(&cell)));
        cell
    }
}

async fn fetch(endpoint: &Endpoint) -> Result<ServedText, PeerError> {
    let failed = |status| failed(endpoint, Peer::Verifier, status);
    let mut client = verifier_client(endpoint);
    let requested = client.tokenizer(TokenizerRequest {}).await;
    let mut parts = requested.map_err(failed)?.into_inner();
    let mut json = Vec::new();
    let mut chat = TokenizerPart::default();
    while let Some(part) = parts.message().await.map_err(failed)? {
        json.extend_from_slice(&part.tokenizer_json);
        if !part.chat_template.is_empty() {
            chat = part;
        }
    }
    // Tens of megabytes of JSON would hold up every stream of an async thread.
    let reading = tokio::task::spawn_blocking(move || ServedText::new(&json, chat));
    let read = reading.await.unwrap_or_else(|error| Err(error.to_string()));
    read.map_err(PeerError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(weights: &str) -> PeerDescription {
        PeerDescription {
            numerics: Some(wire::v1::Numerics {
                weights: weights.to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    #[test]
    fn equal_verifiers_share_a_text_and_the_oldest_makes_room() {
        let texts = Texts::default();
        let cell = |weights: &str| texts.cell(TextKey::of(&description(weights)));
        let first = cell("base");
        assert!(Arc::ptr_eq(&first, &cell("base")));
        assert!(!Arc::ptr_eq(&first, &cell("instruct")));
        for other in ["a", "b"] {
            cell(other);
            cell("base");
        }
        cell("c");
        assert!(Arc::ptr_eq(&first, &cell("base")));
        assert_eq!(texts.0.lock().expect("whole").len(), MOST);
    }
}
