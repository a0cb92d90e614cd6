//! The text of a served model: prompts turned into tokens, conversations into prompts, and tokens into text as
//! they come.
//!
//! A verifier serves the tokenizer and the chat template; whoever speaks with clients needs no model files.

mod chat;
mod cuts;
mod detokenizer;
mod encoder;
mod output;
#[cfg(test)]
mod samples;
mod stop;
mod vocabulary;

use wire::v1::{ChatMessage, TokenizerPart};

use chat::ChatTemplate;
use detokenizer::Detokenizer;
use vocabulary::TokenText;

pub use encoder::PIECE_FACTOR;
pub use output::{Emitted, OutputText};

/// What turns text into a model's tokens and back.
#[derive(Debug)]
pub struct ServedText {
    vocabulary: TokenText,
    /// The chat template, or why there is none to be used.
    chat: Result<ChatTemplate, String>,
    names: TemplateNames,
}

/// Texts from a tokenizer's files. A text that the files do not have is empty.
#[derive(Clone, Debug, Default)]
pub struct TemplateNames {
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
            TokenText::from_json(tokenizer_json).map_err(|error| format!("tokenizer: {error}"))?;
        let names = TemplateNames {
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
    pub fn names(&self) -> &TemplateNames {
        &self.names
    }

    /// The tokens of `text`, with the special tokens that the model's prompts begin or end with if `is_plain`: a
    /// chat template writes all of them itself. Of a text of more than `most` tokens, some of the first, but more than
    /// that.
    ///
    /// # Errors
    /// Says what the tokenizer does not take.
    pub fn tokens(&self, text: &str, is_plain: bool, most: usize) -> Result<Vec<u32>, String> {
        self.vocabulary.encode(text, is_plain, most)
    }

    /// Returns the most bytes of memory that tokenising `text` takes, beside its tokens.
    pub fn encoding_bytes(&self, text: &str) -> u64 {
        self.vocabulary.encoding_bytes(text)
    }

    /// The text of `tokens`; special tokens have none.
    pub fn text_of(&self, tokens: &[u32]) -> String {
        let (mut detokenizer, text) = self.detokenized(tokens, usize::MAX);
        text + &detokenizer.finish(&self.vocabulary)
    }

    /// Returns the text of `tokens`; none if it is longer than the given number of bytes.
    pub fn text_within(&self, tokens: &[u32], most_bytes: usize) -> Option<String> {
        let (mut detokenizer, mut text) = self.detokenized(tokens, most_bytes);
        text.push_str(&detokenizer.finish(&self.vocabulary));
        (text.len() <= most_bytes).then_some(text)
    }

    /// Returns the text of `tokens` without an incomplete character at its end. An [`OutputText`] that continues the tokens
    /// begins with that character, once it is complete or cannot become so.
    pub fn text_before(&self, tokens: &[u32]) -> String {
        self.detokenized(tokens, usize::MAX).1
    }

    /// Returns the text of `tokens` up to its last complete character, and the decoder's state after it. Of a text that is
    /// longer than the given number of bytes it returns the beginning, and more than that number.
    fn detokenized(&self, tokens: &[u32], most_bytes: usize) -> (Detokenizer, String) {
        let mut detokenizer = Detokenizer::default();
        let mut text = String::new();
        for &token in tokens {
            text.push_str(&detokenizer.push(&self.vocabulary, token));
            if text.len() > most_bytes {
                break;
            }
        }
        (detokenizer, text)
    }

    /// Returns what `token` stands for in the middle of a text, bytes of UTF-8 that may be a part of a character; the
    /// name of a special token, and nothing if there is no such token.
    pub fn token_bytes(&self, token: u32) -> Vec<u8> {
        self.vocabulary.bytes(token)
    }

    /// Renders the prompt for `messages`, of at most the given number of bytes; special tokens are in it as text.
    ///
    /// # Errors
    /// If there is no chat template, if it fails or refuses these messages, or if the prompt is too long.
    pub fn prompt(&self, messages: &[ChatMessage], most_bytes: usize) -> Result<String, String> {
        let template = self.chat.as_ref().map_err(String::clone)?;
        let rendered = template.render(messages, most_bytes);
        rendered.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
        assert_eq!(
            served.text_within(&tokens, text.len()),
            Some(text.to_owned())
        );
        assert_eq!(served.text_within(&tokens, text.len() - 1), None);
    }

    /// Wherever the tokens of a text are divided, what stands before and the output after it are its text.
    #[test]
    fn text_before_an_output_and_the_output_are_the_text_of_all_tokens() {
        use speculation::session::Origin;

        for (kind, json) in [
            ("bytes", samples::byte_level(&["한", "é!"])),
            ("fallback", samples::byte_fallback(false, "한국")),
        ] {
            let text = "é한국어! 🟟";
            let mut tokens = samples::encode(&json, text);
            // A character that nothing completes.
            tokens.extend(samples::encode(&json, "어").first());
            let served =
                ServedText::new(json.as_bytes(), TokenizerPart::default()).expect("a tokenizer");
            let served = Arc::new(served);
            for at in 0..=tokens.len() {
                let (prompt, rest) = tokens.split_at(at);
                let rest: Vec<_> = rest.iter().map(|&id| (id, Origin::Target)).collect();
                let mut output = OutputText::new(Arc::clone(&served), Vec::new(), prompt);
                let emitted = output.emit(&rest).chunk.text + &output.finish();
                let all = served.text_before(prompt) + &emitted;
                assert_eq!(all, format!("{text}\u{FFFD}"), "{kind}, {at}");
            }
        }
    }
}
