//! The parts of an output on their way into chunks: content, reasoning, calls with their ids.

use calls::{OutputPiece, OutputReader, OutputReading};
use speculation::TokenId;
use wire::v1;
use wire::v1::output_part::Part;

use crate::ServedText;

/// Reads an output, and counts what is in it.
#[derive(Debug)]
pub(crate) struct PartReader {
    reader: OutputReader,
    id_prefix: String,
    pub(crate) calls: u32,
    pub(crate) reasoning_tokens: u32,
}

impl PartReader {
    pub(crate) fn new(reading: OutputReading, id_prefix: &str) -> Self {
        Self {
            reader: OutputReader::new(reading),
            id_prefix: id_prefix.to_owned(),
            calls: 0,
            reasoning_tokens: 0,
        }
    }

    /// Returns whether the output stands within a call.
    pub(crate) fn is_calling(&self) -> bool {
        self.reader.is_calling()
    }

    /// Returns the mark that `token`, which has no text, is.
    pub(crate) fn mark(&self, text: &ServedText, token: TokenId) -> Option<&'static str> {
        if !text.is_special(token) {
            return None;
        }
        let name = text.token_bytes(token);
        self.reader.mark(std::str::from_utf8(&name).ok()?)
    }

    /// Reads what token number `at` of a chunk completes, and then the mark that it is; adds what that came to.
    pub(crate) fn read(
        &mut self,
        text: &str,
        mark: Option<&'static str>,
        at: u32,
        chunk: &mut v1::Chunk,
    ) {
        let began_in_reasoning = self.reader.is_reasoning();
        let mut pieces = self.reader.text(text);
        if let Some(mark) = mark {
            pieces.extend(self.reader.special(mark));
        }
        self.reasoning_tokens += u32::from(began_in_reasoning || self.reader.is_reasoning());
        self.add(pieces, at, chunk);
    }

    /// Reads the end of the output, which is `text`.
    pub(crate) fn finish(&mut self, text: &str, chunk: &mut v1::Chunk) {
        let mut pieces = self.reader.text(text);
        pieces.extend(self.reader.finish());
        self.add(pieces, 0, chunk);
    }

    fn add(&mut self, pieces: Vec<OutputPiece>, token: u32, chunk: &mut v1::Chunk) {
        for piece in pieces {
            let part = match piece {
                OutputPiece::Content(text) => {
                    chunk.text.push_str(&text);
                    Part::Content(text)
                }
                OutputPiece::Reasoning(text) => Part::Reasoning(text),
                OutputPiece::Arguments(json) => Part::Arguments(json),
                OutputPiece::Call(name) => {
                    let id = format!("{}{:02x}", self.id_prefix, self.calls);
                    self.calls += 1;
                    Part::Call(v1::ToolCall {
                        id,
                        name,
                        arguments: String::new(),
                    })
                }
            };
            let part = Some(part);
            chunk.parts.push(v1::OutputPart { part, token });
        }
    }
}
