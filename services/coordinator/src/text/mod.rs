//! Text: the tokenizer the verifier serves, and tokens turned into text as they come.

mod chat;
mod detokenizer;
mod stop;

pub(crate) use chat::ChatTemplate;
pub(crate) use detokenizer::Detokenizer;
pub(crate) use stop::StopMatcher;

use std::sync::Arc;

use tokenizers::Tokenizer;
use wire::v1::{PeerDescription, TokenizerPart, TokenizerRequest};

use crate::error::PeerError;
use crate::peers::{Endpoint, Kind, failed, verifier_client};

/// What turns text into a model's tokens and back.
#[derive(Debug)]
pub(crate) struct ServedText {
    /// The tokenizer.
    pub(crate) tokenizer: Tokenizer,
    /// The target model, as it described itself when the tokenizer was fetched.
    pub(crate) target: Arc<PeerDescription>,
    /// The chat template, or why there is none to be used.
    pub(crate) chat: Result<ChatTemplate, String>,
}

impl ServedText {
    /// Fetches the tokenizer from the verifier at `endpoint`.
    ///
    /// # Errors
    /// If the verifier fails, or what it sends is no tokenizer.
    pub(crate) async fn fetch(
        endpoint: &Endpoint,
        target: Arc<PeerDescription>,
    ) -> Result<Self, PeerError> {
        let failed = |status| failed(endpoint, Kind::Verifier, status);
        let asked = verifier_client(endpoint)
            .tokenizer(TokenizerRequest {})
            .await;
        let mut parts = asked.map_err(failed)?.into_inner();
        let mut json = Vec::new();
        let mut chat = TokenizerPart::default();
        while let Some(part) = parts.message().await.map_err(failed)? {
            json.extend_from_slice(&part.tokenizer_json);
            if !part.chat_template.is_empty() {
                chat = part;
            }
        }
        let mut tokenizer = Tokenizer::from_bytes(&json).map_err(|error| PeerError::Malformed {
            address: endpoint.address().to_owned(),
            problem: format!("tokenizer: {error}"),
        })?;
        // Many files carry these from training; they would silently cut or fill prompts.
        tokenizer.with_padding(None);
        // Fails only for a truncation that contradicts itself.
        let _ = tokenizer.with_truncation(None);
        let chat = match chat.chat_template.as_str() {
            "" => Err("the model has no chat template: give the prompt as text".to_owned()),
            // A broken template is in the way of chats alone.
            _ => ChatTemplate::new(chat.chat_template, chat.bos_token, chat.eos_token)
                .map_err(|error| error.to_string()),
        };
        Ok(Self {
            tokenizer,
            target,
            chat,
        })
    }
}
