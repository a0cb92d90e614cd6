//! Text: the tokenizer the verifier serves, and tokens turned into text as they come.

mod chat;
mod detokenizer;
mod stop;

pub(crate) use chat::ChatTemplate;
pub(crate) use detokenizer::Detokenizer;
pub(crate) use stop::StopMatcher;

use tokenizers::Tokenizer;
use wire::v1::TokenizerPart;

/// What turns text into a model's tokens and back.
#[derive(Debug)]
pub(crate) struct ServedText {
    /// The tokenizer.
    pub(crate) tokenizer: Tokenizer,
    /// The chat template, or why there is none to be used.
    pub(crate) chat: Result<ChatTemplate, String>,
}

impl ServedText {
    /// Reads `tokenizer.json`, which takes long for a large vocabulary, and the chat template of `part`.
    ///
    /// # Errors
    /// Says why it is no tokenizer.
    pub(crate) fn new(tokenizer_json: &[u8], part: TokenizerPart) -> Result<Self, String> {
        let mut tokenizer =
            Tokenizer::from_bytes(tokenizer_json).map_err(|error| format!("tokenizer: {error}"))?;
        // Many files carry these from training; they would silently cut or fill prompts.
        tokenizer.with_padding(None);
        // Fails only for a truncation that contradicts itself.
        let _ = tokenizer.with_truncation(None);
        let chat = match part.chat_template.as_str() {
            "" => Err("the model has no chat template: give the prompt as text".to_owned()),
            // A broken template is in the way of chats alone.
            _ => ChatTemplate::new(part.chat_template, part.bos_token, part.eos_token)
                .map_err(|error| error.to_string()),
        };
        Ok(Self { tokenizer, chat })
    }
}
