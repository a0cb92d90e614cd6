//! The text of a served model: prompts turned into tokens, conversations into prompts, and tokens into text as
//! they come.
//!
//! A verifier serves the tokenizer and the chat template; whoever speaks with clients needs no model files.

mod chat;
mod cuts;
mod detokenizer;
mod encoder;
mod output;
mod parts;
mod translation;
mod vocabulary;

use calls::{CallForm, GENERIC, ReasoningMarks};
use wire::v1::TokenizerPart;

use chat::ChatTemplate;
use detokenizer::Detokenizer;
use vocabulary::TokenText;

pub use chat::Conversation;
pub use encoder::PIECE_FACTOR;
pub use output::{Emitted, OutputText};
pub use translation::{TranslatedText, Translator};

/// What stands in templates that tell the model of its tools.
const KNOWS_TOOLS: &str = "tools";

/// What turns text into a model's tokens and back.
#[derive(Debug)]
pub struct ServedText {
    vocabulary: TokenText,
    /// The chat template, or why there is none to be used.
    chat: Result<ChatTemplate, String>,
    /// What the chat template was made of.
    part: TokenizerPart,
}

impl ServedText {
    /// Reads `tokenizer.json`, which takes long for a large vocabulary, and the chat template of `part`.
    ///
    /// # Errors
    /// Says why it is no tokenizer.
    pub fn new(tokenizer_json: &[u8], part: TokenizerPart) -> Result<Self, String> {
        let vocabulary =
            TokenText::from_json(tokenizer_json).map_err(|error| format!("tokenizer: {error}"))?;
        let chat = match part.chat_template.as_str() {
            "" => Err("the model has no chat template: give the prompt as text".to_owned()),
            // A broken template is in the way of chats alone.
            template => ChatTemplate::new(
                template.to_owned(),
                part.bos_token.clone(),
                part.eos_token.clone(),
            ),
        };
        let part = TokenizerPart {
            tokenizer_json: Vec::new(),
            ..part
        };
        Ok(Self {
            vocabulary,
            chat,
            part,
        })
    }

    /// Returns the chat template and the names of special tokens; a text that the files do not have is empty.
    pub fn part(&self) -> &TokenizerPart {
        &self.part
    }

    /// Returns the tokens of `text`, with the special tokens that the model's prompts begin or end with if
    /// `is_plain`: a chat template writes all of them itself. Of a text of more than `most` tokens, some of the
    /// first, but more than that.
    ///
    /// # Errors
    /// Says what the tokenizer does not take.
    pub fn tokens(&self, text: &str, is_plain: bool, most: usize) -> Result<Vec<u32>, String> {
        self.vocabulary.encode(text, is_plain, most)
    }

    /// Returns a `tokenizer.json` that reads texts alike.
    ///
    /// # Errors
    /// If the tokenizer cannot be written.
    pub fn tokenizer_json(&self) -> Result<String, String> {
        self.vocabulary.to_json()
    }

    /// Returns the most bytes of memory that tokenising `text` takes, beside its tokens.
    pub fn encoding_bytes(&self, text: &str) -> u64 {
        self.vocabulary.encoding_bytes(text)
    }

    /// Returns the text of `tokens`; special tokens have none.
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

    /// Returns the text of `tokens` without an incomplete character at its end. An [`OutputText`] that continues the
    /// tokens begins with that character, once it is complete or cannot become so.
    pub fn text_before(&self, tokens: &[u32]) -> String {
        self.detokenized(tokens, usize::MAX).1
    }

    /// Returns the text of `tokens` up to its last complete character, and the decoder's state after it. Of a text
    /// that is longer than the given number of bytes it returns the beginning, and more than that number.
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

    /// Returns whether no text is written by `token`: it is special, or there is none.
    pub fn is_special(&self, token: u32) -> bool {
        self.vocabulary.piece(token).is_none()
    }

    /// Renders the prompt for `conversation`, of at most the given number of bytes; special tokens are in it as text.
    ///
    /// # Errors
    /// If there is no chat template, if it fails or refuses the conversation, or if the prompt is too long.
    pub fn prompt(
        &self,
        conversation: &Conversation<'_>,
        most_bytes: usize,
    ) -> Result<String, String> {
        let template = self.chat.as_ref().map_err(String::clone)?;
        template.render(conversation, most_bytes)
    }

    /// Returns the form in which the model writes calls, as its chat template shows it.
    pub fn call_form(&self) -> &'static CallForm {
        let source = self.template_source();
        if source.contains(KNOWS_TOOLS) {
            CallForm::of_template(source)
        } else {
            &GENERIC
        }
    }

    /// Returns the marks around the model's reasoning, as its chat template shows them.
    pub fn reasoning_marks(&self) -> Option<ReasoningMarks> {
        ReasoningMarks::of_template(self.template_source())
    }

    /// Returns those of `marks` that are special tokens, with their ids.
    pub fn special_among(
        &self,
        marks: impl Iterator<Item = &'static str>,
    ) -> Vec<(&'static str, u32)> {
        let found = marks.filter_map(|mark| Some((mark, self.vocabulary.token(mark)?)));
        found.filter(|(_, token)| self.is_special(*token)).collect()
    }

    fn template_source(&self) -> &str {
        self.chat.as_ref().map_or("", ChatTemplate::source)
    }
}

#[cfg(test)]
mod tests;
