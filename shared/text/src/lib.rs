//! The text of a served model: prompts turned into tokens, conversations into prompts, and tokens into text as
//! they come.
//!
//! A verifier serves the tokenizer and the chat template; whoever speaks with clients needs no model files.

mod chat;
mod detokenizer;
mod output;
#[cfg(test)]
mod samples;
mod stop;
mod vocabulary;

use wire::v1::{ChatMessage, TokenizerPart};

use chat::ChatTemplate;
use vocabulary::Vocabulary;

pub use output::{Emitted, Output};

/// What turns text into a model's tokens and back.
#[derive(Debug)]
pub struct ServedText {
    vocabulary: Vocabulary,
    /// The chat template, or why there is none to be used.
    chat: Result<ChatTemplate, String>,
}

impl ServedText {
    /// Reads `tokenizer.json`, which takes long for a large vocabulary, and the chat template of `part`.
    ///
    /// # Errors
    /// Says why it is no tokenizer.
    pub fn new(tokenizer_json: &[u8], part: TokenizerPart) -> Result<Self, String> {
        let vocabulary =
            Vocabulary::from_json(tokenizer_json).map_err(|error| format!("tokenizer: {error}"))?;
        let chat = match part.chat_template.as_str() {
            "" => Err("the model has no chat template: give the prompt as text".to_owned()),
            // A broken template is in the way of chats alone.
            _ => ChatTemplate::new(part.chat_template, part.bos_token, part.eos_token)
                .map_err(|error| error.to_string()),
        };
        Ok(Self { vocabulary, chat })
    }

    /// The tokens of `text`, with the special tokens that the model's prompts begin or end with if `is_plain`: a
    /// chat template writes all of them itself.
    ///
    /// # Errors
    /// Says what the tokenizer does not take.
    pub fn tokens(&self, text: String, is_plain: bool) -> Result<Vec<u32>, String> {
        self.vocabulary.encode(text, is_plain)
    }

    /// The prompt that asks for the answer to `messages`; special tokens stand in it as text.
    ///
    /// # Errors
    /// Says that there is no chat template, or names the line of it that refuses these messages.
    pub fn prompt(&self, messages: &[ChatMessage]) -> Result<String, String> {
        let template = self.chat.as_ref().map_err(String::clone)?;
        template.render(messages).map_err(|error| error.to_string())
    }
}
