//! The tokenizers and chat templates of a model's verifiers, each fetched once.

use std::sync::Arc;
use std::time::Duration;

use speculation::session::Peer;
use text::ServedText;
use tokio::sync::OnceCell;
use wire::describe::MAX_TOKENIZER_BYTES;
use wire::v1::{PeerDescription, TokenizerPart, TokenizerRequest};

use crate::clients::{answer_within, failed, verifier_client};
use crate::error::CallError;
use crate::target::Target;
use crate::{PeerEndpoint, Recent};

/// How long a verifier may take to send its tokenizer.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Most bytes of a chat template.
pub const MAX_TEMPLATE_BYTES: usize = 1 << 20;

/// Most texts kept: more than one only while verifiers are replaced one by one.
const MOST: usize = 4;

/// What a text depends on: a model may have another chat template, though its weights and its vocabulary are the same.
#[derive(Clone, Debug, PartialEq)]
struct TextKey {
    model: String,
    weights: String,
    vocab_fingerprint: Vec<u8>,
    text_fingerprint: String,
}

impl TextKey {
    fn of(description: &PeerDescription) -> Self {
        let numerics = description.numerics.clone().unwrap_or_default();
        Self {
            model: description.model.clone(),
            weights: numerics.weights,
            vocab_fingerprint: description.vocab_fingerprint.clone(),
            text_fingerprint: description.text_fingerprint.clone(),
        }
    }
}

/// A target with its text, once that has come.
type TextCell = Arc<OnceCell<Target>>;

/// The texts known, the latest last.
#[derive(Debug, Default)]
pub(crate) struct Texts(Recent<TextKey, TextCell, MOST>);

impl Texts {
    /// Returns the target at the verifier at `endpoint`, which describes itself so. Those who ask for one text at the
    /// same time wait for one fetch.
    ///
    /// # Errors
    /// If the verifier does not send it in time, or what it sends is no tokenizer.
    pub(crate) async fn of(
        &self,
        endpoint: &PeerEndpoint,
        description: &PeerDescription,
    ) -> Result<Target, CallError> {
        let cell = self.0.find(TextKey::of(description));
        let text = cell.get_or_try_init(|| async {
            let fetching = answer_within(FETCH_TIMEOUT, "tokenizer", endpoint, fetch(endpoint));
            let text = Arc::new(fetching.await??);
            Ok::<_, CallError>(Target::new(Arc::new(description.clone()), text))
        });
        text.await.cloned()
    }
}

/// What a verifier has sent of its tokenizer.
#[derive(Debug, Default)]
struct FetchedText {
    json: Vec<u8>,
    /// The part with the chat template.
    chat: TokenizerPart,
}

impl FetchedText {
    /// Appends the next part.
    ///
    /// # Errors
    /// Names the file that is larger than any model's, and its limit.
    fn add(&mut self, mut part: TokenizerPart) -> Result<(), String> {
        let at_most = |what: &str, bytes: usize, most: usize| {
            let problem = || format!("{what} has {bytes} bytes or more, expected at most {most}");
            (bytes <= most).then_some(()).ok_or_else(problem)
        };
        let json = std::mem::take(&mut part.tokenizer_json);
        let bytes = self.json.len() + json.len();
        at_most("the tokenizer", bytes, MAX_TOKENIZER_BYTES)?;
        let names = part.bos_token.len() + part.eos_token.len();
        let template = part.chat_template.len() + names;
        at_most("the chat template", template, MAX_TEMPLATE_BYTES)?;
        self.json.extend_from_slice(&json);
        if !part.chat_template.is_empty() {
            self.chat = part;
        }
        Ok(())
    }
}

async fn fetch(endpoint: &PeerEndpoint) -> Result<ServedText, CallError> {
    let failed = |status| failed(endpoint, Peer::Verifier, status);
    let mut client = verifier_client(endpoint);
    let requested = client.tokenizer(TokenizerRequest {}).await;
    let mut parts = requested.map_err(failed)?.into_inner();
    let mut files = FetchedText::default();
    while let Some(part) = parts.message().await.map_err(failed)? {
        files.add(part).map_err(CallError::Malformed)?;
    }
    let FetchedText { json, chat } = files;
    // Tens of megabytes of JSON would hold up every stream of an async thread.
    let reading = tokio::task::spawn_blocking(move || ServedText::new(&json, chat));
    let read = reading.await.unwrap_or_else(|error| Err(error.to_string()));
    read.map_err(CallError::Malformed)
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
    fn a_tokenizer_and_a_template_of_any_size_are_not_taken() {
        let json = |bytes| TokenizerPart {
            tokenizer_json: vec![0; bytes],
            ..Default::default()
        };
        let template = |bytes| TokenizerPart {
            chat_template: "x".repeat(bytes),
            ..Default::default()
        };
        let mut files = FetchedText::default();
        for _ in 0..4 {
            assert_eq!(files.add(json(MAX_TOKENIZER_BYTES / 4)), Ok(()));
        }
        let reported = files.add(json(1)).expect_err("too large");
        assert!(
            reported.contains("134217729") && reported.contains("134217728"),
            "{reported}"
        );
        assert_eq!(files.json.len(), MAX_TOKENIZER_BYTES);
        assert_eq!(files.add(template(MAX_TEMPLATE_BYTES)), Ok(()));
        let reported = files
            .add(template(MAX_TEMPLATE_BYTES + 1))
            .expect_err("too large");
        assert!(
            reported.contains("1048577") && reported.contains("1048576"),
            "{reported}"
        );
    }

    #[test]
    fn equal_verifiers_share_a_text_and_the_oldest_makes_room() {
        let texts = Texts::default();
        let cell = |weights: &str| texts.0.find(TextKey::of(&description(weights)));
        let first = cell("base");
        assert!(Arc::ptr_eq(&first, &cell("base")));
        assert!(!Arc::ptr_eq(&first, &cell("instruct")));
        for other in ["a", "b"] {
            cell(other);
            cell("base");
        }
        cell("c");
        assert!(Arc::ptr_eq(&first, &cell("base")));
        assert_eq!(texts.0.0.lock().len(), MOST);
    }
}
