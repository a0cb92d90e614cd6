//! The output on its way to the client: tokens to text, stop strings, chunks.

use std::sync::Arc;

use speculation::TokenId;
use speculation::session::Origin;
use wire::v1;

use crate::ServedText;
use crate::detokenizer::Detokenizer;
use crate::stop::StopMatcher;

/// Turns emitted tokens into chunks.
#[derive(Debug)]
pub struct OutputText {
    text: Arc<ServedText>,
    detokenizer: Detokenizer,
    stops: StopMatcher,
    /// Tokens turned into chunks so far.
    len: u32,
}

/// A chunk, and what it means for the request.
#[derive(Clone, Debug, PartialEq)]
pub struct Emitted {
    /// The tokens with their text.
    pub chunk: v1::Chunk,
    /// Output tokens kept, if a stop string ends the output here.
    pub stopped_at: Option<u32>,
}

impl OutputText {
    /// The output after `prompt`.
    pub fn new(text: Arc<ServedText>, stops: Vec<String>, prompt: &[TokenId]) -> Self {
        Self {
            detokenizer: Detokenizer::after(&text.vocabulary, prompt),
            stops: StopMatcher::new(stops),
            text,
            len: 0,
        }
    }

    /// The chunk of `tokens`, up to and including the token that completes a stop string.
    pub fn emit(&mut self, tokens: &[(TokenId, Origin)]) -> Emitted {
        let mut chunk = v1::Chunk::default();
        for &(token, origin) in tokens {
            self.len += 1;
            let piece = self.detokenizer.push(&self.text.vocabulary, token);
            let released = self.stops.push(&piece);
            chunk.text.push_str(&released.text);
            chunk.token_ids.push(token);
            chunk.origins.push(wire::report::origin(origin).into());
            chunk.pieces.push(released.text);
            if released.stopped {
                return Emitted {
                    chunk,
                    stopped_at: Some(self.len),
                };
            }
        }
        Emitted {
            chunk,
            stopped_at: None,
        }
    }

    /// Text still held back when the output ends by itself.
    pub fn finish(&mut self) -> String {
        let rest = self.detokenizer.finish(&self.text.vocabulary);
        let released = self.stops.push(&rest);
        if released.stopped {
            return released.text;
        }
        released.text + &self.stops.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn stop_strings_are_found_in_characters_spelled_byte_by_byte() {
        let json = samples::byte_fallback(true, "한국");
        let tokens = samples::encode(&json, "한국어입니다. 네");
        let text =
            ServedText::new(json.as_bytes(), v1::TokenizerPart::default()).expect("a tokenizer");
        let mut output = OutputText::new(Arc::new(text), vec!["니다.".to_owned()], &[]);
        let tokens: Vec<_> = tokens
            .into_iter()
            .map(|token| (token, Origin::Accepted))
            .collect();
        let emitted = output.emit(&tokens);
        assert_eq!(emitted.chunk.text, "한국어입");
        // A space, 한, 국, and then every byte of 어입니다 and the full stop.
        assert_eq!(emitted.stopped_at, Some(3 + 4 * 3 + 1));
    }
}
