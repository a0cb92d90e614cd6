//! The output on its way to the client: tokens to text, stop strings, chunks.

use std::sync::Arc;

use speculation::TokenId;
use speculation::session::Origin;
use wire::v1;

use calls::OutputReading;

use crate::ServedText;
use crate::detokenizer::Detokenizer;
use crate::parts::PartReader;

/// Turns emitted tokens into chunks.
#[derive(Debug)]
pub struct OutputText {
    text: Arc<ServedText>,
    detokenizer: Detokenizer,
    stops: StopMatcher,
    /// Tokens turned into chunks so far.
    len: u32,
    /// Tells content, reasoning and calls apart, where there may be any.
    parts: Option<PartReader>,
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
    /// Returns the output after `prompt`.
    pub fn new(text: Arc<ServedText>, stops: Vec<String>, prompt: &[TokenId]) -> Self {
        Self {
            detokenizer: Detokenizer::after(&text.vocabulary, prompt),
            stops: StopMatcher::new(stops),
            text,
            len: 0,
            parts: None,
        }
    }

    /// Has it read the output so, and give calls the ids that begin with `id_prefix`.
    #[must_use]
    pub fn read_as(self, reading: OutputReading, id_prefix: &str) -> Self {
        let parts = Some(PartReader::new(reading, id_prefix));
        Self { parts, ..self }
    }

    /// Returns how many calls there were, and how many tokens were reasoning.
    pub fn calls_and_reasoning(&self) -> (u32, u32) {
        let parts = self.parts.as_ref();
        parts.map_or((0, 0), |parts| (parts.calls, parts.reasoning_tokens))
    }

    /// Returns the stop string that ended the output; empty if none did.
    pub fn stop_text(&self) -> &str {
        let found = self.stops.found.map(|stop| self.stops.stops[stop].as_str());
        found.unwrap_or_default()
    }

    /// Returns the chunk of `tokens`, up to and including the token that completes a stop string.
    pub fn emit(&mut self, tokens: &[(TokenId, Origin)]) -> Emitted {
        let (mut chunk, mut stopped_at) = (v1::Chunk::default(), None);
        for (at, &(token, origin)) in (0..).zip(tokens) {
            self.len += 1;
            let piece = self.detokenizer.push(&self.text.vocabulary, token);
            let is_calling = self.parts.as_ref().is_some_and(PartReader::is_calling);
            let released = if is_calling {
                // Arguments may hold whatever ends a text.
                self.stops.pass(&piece)
            } else {
                self.stops.push(&piece)
            };
            chunk.token_ids.push(token);
            chunk.origins.push(wire::report::origin(origin).into());
            match &mut self.parts {
                None => chunk.text.push_str(&released.text),
                Some(parts) => {
                    let mut said = released.text.clone();
                    let mark = piece
                        .is_empty()
                        .then(|| parts.mark(&self.text, token))
                        .flatten();
                    if mark.is_some() {
                        // No stop string goes over a mark.
                        said.push_str(&self.stops.finish());
                    }
                    parts.read(&said, mark, at, &mut chunk);
                }
            }
            chunk.pieces.push(released.text);
            if released.stopped {
                stopped_at = Some(self.len);
                break;
            }
        }
        Emitted { chunk, stopped_at }
    }

    /// Returns what was still held back when the output ended by itself, a chunk without tokens.
    pub fn finish(&mut self) -> v1::Chunk {
        let rest = self.detokenizer.finish(&self.text.vocabulary);
        let released = self.stops.push(&rest);
        let rest = if released.stopped {
            released.text
        } else {
            released.text + &self.stops.finish()
        };
        let mut chunk = v1::Chunk::default();
        match &mut self.parts {
            None => chunk.text = rest,
            Some(parts) => parts.finish(&rest, &mut chunk),
        }
        chunk
    }
}

/// Looks for the first of several stop strings in text that comes in pieces.
#[derive(Clone, Debug)]
struct StopMatcher {
    stops: Vec<String>,
    /// Text that may be the beginning of a stop string, not given out yet.
    held: String,
    /// The stop string that was found, by its place among them.
    found: Option<usize>,
}

/// What became of a piece of text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Released {
    /// Text that stands before any stop string.
    text: String,
    /// Whether a stop string was found; nothing after it is text.
    stopped: bool,
}

impl StopMatcher {
    /// Returns a matcher for `stops`, none of which is empty.
    fn new(stops: Vec<String>) -> Self {
        Self {
            stops,
            held: String::new(),
            found: None,
        }
    }

    /// Takes the next piece of text.
    fn push(&mut self, piece: &str) -> Released {
        self.held.push_str(piece);
        let places = self.stops.iter().map(|stop| self.held.find(stop));
        let found = (0..).zip(places).filter_map(|(stop, at)| Some((at?, stop)));
        if let Some((at, stop)) = found.min() {
            self.held.truncate(at);
            self.found = Some(stop);
            return Released {
                text: std::mem::take(&mut self.held),
                stopped: true,
            };
        }
        let open = self.longest_open_end();
        let rest = self.held.split_off(self.held.len() - open);
        Released {
            text: std::mem::replace(&mut self.held, rest),
            stopped: false,
        }
    }

    /// Takes the next piece of text, in which no stop string counts.
    fn pass(&mut self, piece: &str) -> Released {
        Released {
            text: std::mem::take(&mut self.held) + piece,
            stopped: false,
        }
    }

    /// Returns what was held back, at the end of the text.
    fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Length in bytes of the longest end of the held text that begins a stop string.
    fn longest_open_end(&self) -> usize {
        let ends = self.held.char_indices().map(|(at, _)| &self.held[at..]);
        let begins_a_stop = |end: &&str| self.stops.iter().any(|stop| stop.starts_with(*end));
        ends.filter(begins_a_stop).map(str::len).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::samples;

    #[test]
    fn stop_strings_are_found_in_characters_spelled_byte_by_byte() {
        let json = samples::byte_fallback(true, "한국");
        let tokens = samples::encode(&json, "한국어입니다. 네");
        let text =
            ServedText::new(json.as_bytes(), v1::TokenizerPart::default()).expect("a tokenizer");
        let mut output = OutputText::new(
            Arc::new(text),
            vec!["네".to_owned(), "니다.".to_owned()],
            &[],
        );
        let tokens: Vec<_> = tokens
            .into_iter()
            .map(|token| (token, Origin::Accepted))
            .collect();
        let emitted = output.emit(&tokens);
        assert_eq!(emitted.chunk.text, "한국어입");
        // A space, 한, 국, and then every byte of 어입니다 and the full stop.
        assert_eq!(emitted.stopped_at, Some(3 + 4 * 3 + 1));
        assert_eq!(output.stop_text(), "니다.");
    }

    fn run(stops: &[&str], pieces: &[&str]) -> (String, bool) {
        let mut matcher = StopMatcher::new(stops.iter().map(|&stop| stop.to_owned()).collect());
        let mut text = String::new();
        for piece in pieces {
            let released = matcher.push(piece);
            text.push_str(&released.text);
            if released.stopped {
                return (text, true);
            }
        }
        (text + &matcher.finish(), false)
    }

    #[test]
    fn the_first_stop_ends_the_text_however_it_is_split() {
        let whole = "one END two STOP three";
        for cut in 0..whole.len() {
            let (a, b) = whole.split_at(cut);
            assert_eq!(
                run(&["STOP", "END"], &[a, b]),
                ("one ".to_owned(), true),
                "cut at {cut}"
            );
        }
        let letters: Vec<String> = whole.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        assert_eq!(run(&["STOP"], &letters), ("one END two ".to_owned(), true));
    }

    #[test]
    fn what_only_looks_like_a_stop_comes_in_the_end() {
        assert_eq!(
            run(&["ENDE"], &["the END", "ING"]),
            ("the ENDING".to_owned(), false)
        );
        assert_eq!(run(&["ENDE"], &["the END"]), ("the END".to_owned(), false));
        assert_eq!(run(&[], &["a", "b"]), ("ab".to_owned(), false));
    }

    #[test]
    fn nothing_is_held_back_longer_than_it_must_be() {
        let mut matcher = StopMatcher::new(vec!["aab".to_owned()]);
        assert_eq!(matcher.push("xaaa").text, "xa");
        assert_eq!(matcher.push("c").text, "aac");
        // Characters are never cut.
        let mut matcher = StopMatcher::new(vec!["éé!".to_owned()]);
        assert_eq!(matcher.push("aéé").text, "a");
        assert_eq!(matcher.push("?").text, "éé?");
    }
}
