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
use detokenizer::Detokenizer;
use vocabulary::Vocabulary;

pub use output::{Emitted, Output};

/// What turns text into a model's tokens and back.
#[derive(Debug)]
pub struct ServedText {
    vocabulary: Vocabulary,
    /// The chat template, or why there is none to be used.
    chat: Result<ChatTemplate, String>,
    names: Names,
}

/// Texts from a tokenizer's files. A text that the files do not have is empty.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The chat template, in Jinja.
    pub chat_template: String,
    /// The token that begins a text.
    pub bos_token: String,
    /// The token that ends a text.
    pub eos_token: String,
}

impl ServedText {
    /// Reads `tokenizer.json`, which takes long for a large vocabulary, and the chat template of `part`.
    ///
    /// # Errors
    /// Says why it is no tokenizer.
    pub fn new(tokenizer_json: &[u8], part: TokenizerPart) -> Result<Self, String> {
        let vocabulary =
            Vocabulary::from_json(tokenizer_json).map_err(|error| format!("tokenizer: {error}"))?;
        let names = Names {
            chat_template: part.chat_template.clone(),
            bos_token: part.bos_token.clone(),
            eos_token: part.eos_token.clone(),
        };
        let chat = match part.chat_template.as_str() {
            "" => Err("the model has no chat template: give the prompt as text".to_owned()),
            // A broken template is in the way of chats alone.
            _ => ChatTemplate::new(part.chat_template, part.bos_token, part.eos_token)
                .map_err(|error| error.to_string()),
        };
        Ok(Self {
            vocabulary,
            chat,
            names,
        })
    }

    /// The chat template and the names of special tokens.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The tokens of `text`, with the special tokens that the model's prompts begin or end with if `is_plain`: a
    /// chat template writes all of them itself.
    ///
    /// # Errors
    /// Says what the tokenizer does not take.
    pub fn tokens(&self, text: String, is_plain: bool) -> Result<Vec<u32>, String> {
        self.vocabulary.encode(text, is_plain)
    }

    /// The text of `tokens`; special tokens have none.
    pub fn text_of(&self, tokens: &[u32]) -> String {
        let mut detokenizer = Detokenizer::default();
        let pieces = tokens.iter();
        let pieces = pieces.map(|&token| detokenizer.push(&self.vocabulary, token));
        let text: String = pieces.collect();
        text + &detokenizer.finish(&self.vocabulary)
    }

    /// What `token` stands for in the middle of a text, bytes of UTF-8 that may be a part of a character; the name
    /// of a special token, and nothing if there is no such token.
    pub fn token_bytes(&self, token: u32) -> Vec<u8> {
        self.vocabulary.bytes(token)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_stand_for_text_alone_and_together() {
        let json = samples::byte_fallback(true, "한국");
        let text = "한국어 ab";
        let tokens = samples::encode(&json, text);
        let served =
            ServedText::new(json.as_bytes(), TokenizerPart::default()).expect("a tokenizer");
        assert_eq!(served.text_of(&tokens), text);
        let bytes: Vec<u8> = tokens
            .iter()
            .flat_map(|&token| served.token_bytes(token))
            .collect();
        // A text begins with a space that its first token has.
        let spelled = String::from_utf8(bytes).expect("whole characters");
        assert_eq!(spelled.trim_start(), text);
        assert!(served.token_bytes(u32::MAX).is_empty());
    }
}
