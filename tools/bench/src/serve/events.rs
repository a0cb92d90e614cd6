//! Server-sent events, decoded as their bytes come.
//!
//! What of the [standard](https://html.spec.whatwg.org/multipage/server-sent-events.html) answers of the OpenAI API use:
//! lines `data:`, of which those before an empty line are one event. Comments and other fields are passed over.

use bytes::BytesMut;
use tokio_util::codec::{Decoder, LinesCodec, LinesCodecError};

/// Most bytes of an event.
pub(super) const LONGEST_EVENT: usize = 4 << 20;

/// Why bytes are no events.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EventFault {
    /// It goes on and on.
    #[error("an event is longer than {LONGEST_EVENT} bytes, the most that is read of one")]
    TooLong,
    /// It is no text.
    #[error("an event is not UTF-8")]
    NotText,
}

impl From<LinesCodecError> for EventFault {
    fn from(error: LinesCodecError) -> Self {
        match error {
            LinesCodecError::MaxLineLengthExceeded => Self::TooLong,
            LinesCodecError::Io(_) => Self::NotText,
        }
    }
}

/// Makes events of a stream of bytes.
#[derive(Debug)]
pub(super) struct EventDecoder {
    lines: LinesCodec,
    buffer: BytesMut,
    /// The data of an event whose end has not come; none before its first line.
    data: Option<String>,
}

impl EventDecoder {
    pub(super) fn new() -> Self {
        Self {
            lines: LinesCodec::new_with_max_length(LONGEST_EVENT),
            buffer: BytesMut::new(),
            data: None,
        }
    }

    /// Returns the data of the events that end with `bytes`, in their order.
    ///
    /// # Errors
    /// If they are too long or no text.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, EventFault> {
        self.buffer.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(line) = self.lines.decode(&mut self.buffer)? {
            events.extend(self.line(&line)?);
        }
        Ok(events)
    }

    /// Returns the data of the last event, where the stream ended without the line that ends it.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub(super) fn finish(mut self) -> Result<Option<String>, EventFault> {
        if let Some(line) = self.lines.decode_eof(&mut self.buffer)? {
            self.line(&line)?;
        }
        Ok(self.data)
    }

    /// Takes a line, and returns the event that it ends.
    fn line(&mut self, line: &str) -> Result<Option<String>, EventFault> {
        if line.is_empty() {
            return Ok(self.data.take());
        }
        let Some(data) = line.strip_prefix("data:") else {
            return Ok(None);
        };
        let data = data.strip_prefix(' ').unwrap_or(data);
        match &mut self.data {
            None => self.data = Some(data.to_owned()),
            Some(begun) if begun.len() + data.len() < LONGEST_EVENT => {
                begun.push('\n');
                begun.push_str(data);
            }
            Some(_) => return Err(EventFault::TooLong),
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of `pieces`, one after another, and of the end.
    fn events(pieces: &[&str]) -> Vec<String> {
        let mut decoder = EventDecoder::new();
        let mut events = Vec::new();
        for piece in pieces {
            events.extend(decoder.push(piece.as_bytes()).expect("events"));
        }
        events.extend(decoder.finish().expect("an end"));
        events
    }

    #[test]
    fn events_are_the_same_however_their_bytes_are_cut() {
        let text = ": a comment\n\nevent: x\ndata: {\"a\": 1}\n\ndata:two\r\ndata: lines\r\n\r\ndata: [DONE]\n\n";
        let expected = ["{\"a\": 1}", "two\nlines", "[DONE]"];
        assert_eq!(events(&[text]), expected);
        for at in 1..text.len() {
            let (before, after) = text.split_at(at);
            assert_eq!(events(&[before, after]), expected, "cut at {at}");
        }
    }

    #[test]
    fn an_event_that_the_stream_ends_with_counts() {
        assert_eq!(events(&["data: a\n\ndata: b"]), ["a", "b"]);
        assert!(events(&["\n\n: nothing\n\n"]).is_empty());
    }

    #[test]
    fn an_event_without_an_end_is_given_up() {
        let mut decoder = EventDecoder::new();
        let piece = vec![b'y'; 1 << 16];
        let pushed = (0..100).find_map(|_| decoder.push(&piece).err());
        assert_eq!(pushed, Some(EventFault::TooLong));
        let mut decoder = EventDecoder::new();
        let line = format!("data: {}\n", "y".repeat(LONGEST_EVENT / 2));
        decoder.push(line.as_bytes()).expect("half of it");
        let pushed = decoder.push(line.as_bytes());
        assert_eq!(pushed, Err(EventFault::TooLong));
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let pushed = EventDecoder::new().push(b"data: \xff\n");
        assert_eq!(pushed, Err(EventFault::NotText));
    }
}
