//! OpenAI's channels (gpt-oss): an output is a row of messages, each with a header that says for whom it is.
//!
//! What stands in `analysis` is reasoning, a message to `functions.NAME` is a call, and all else is content.

use super::TextEnd;
use super::marks::{Found, find};
use super::pieces::Pieces;
use super::reading::OutputReading;
use crate::form::channels::{CALL, CHANNEL, CONSTRAIN, END, MESSAGE, RECIPIENT, RETURN, START};

/// Reads one output.
#[derive(Debug)]
pub(super) struct ChannelReader {
    /// The marks that are text.
    spelled: Vec<&'static str>,
    /// The header that is being read; none within a message.
    header: Option<String>,
    audience: Audience,
    /// Whether the message has text.
    has_said: bool,
    has_tools: bool,
    /// Whether a mark was read.
    is_marked: bool,
}

/// For whom a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    User,
    Model,
    Tool,
}

impl ChannelReader {
    pub(super) fn new(reading: &OutputReading) -> Self {
        let marks = [START, CHANNEL, CONSTRAIN, MESSAGE, END, CALL, RETURN];
        Self {
            spelled: reading.spelled(&marks),
            // The prompt ends within one.
            header: Some(String::new()),
            audience: Audience::User,
            has_said: false,
            has_tools: !reading.tools.is_empty(),
            is_marked: false,
        }
    }

    pub(super) fn is_reasoning(&self) -> bool {
        self.audience == Audience::Model && self.header.is_none()
    }

    pub(super) fn is_calling(&self) -> bool {
        self.audience == Audience::Tool && self.header.is_none()
    }

    /// Reads `text` as far as it goes.
    pub(super) fn read(&mut self, text: &mut String, end: TextEnd, out: &mut Pieces) {
        loop {
            match find(text, &self.spelled, end) {
                Found::Mark { at, mark } => {
                    self.say(&text[..at], out);
                    text.drain(..at + mark.len());
                    self.at_mark(mark, out);
                }
                Found::None { settled } => {
                    self.say(&text[..settled], out);
                    text.drain(..settled);
                    break;
                }
            }
        }
        match end {
            TextEnd::Open => {}
            TextEnd::Mark(mark) => self.at_mark(mark, out),
            TextEnd::Last => {
                // A model that writes no header at all answers.
                if let Some(text) = self.header.take().filter(|_| !self.is_marked) {
                    out.content(text.trim_start());
                }
            }
        }
    }

    fn say(&mut self, text: &str, out: &mut Pieces) {
        match (&mut self.header, self.audience) {
            (Some(header), _) => header.push_str(text),
            (None, Audience::User) => out.content(text),
            (None, Audience::Model) => out.reasoning(text),
            (None, Audience::Tool) => out.arguments(text),
        }
        self.has_said |= !text.is_empty();
    }

    fn at_mark(&mut self, mark: &str, out: &mut Pieces) {
        self.is_marked = true;
        match mark {
            MESSAGE => {
                let header = self.header.take().unwrap_or_default();
                self.begin(&header, out);
            }
            CHANNEL | CONSTRAIN => {
                // The channel is one word of the header.
                self.end(out);
                let header = self.header.get_or_insert_default();
                header.push_str(mark);
            }
            _ => {
                self.end(out);
                self.header = Some(String::new());
            }
        }
    }

    /// Begins the message behind `header`.
    fn begin(&mut self, header: &str, out: &mut Pieces) {
        let recipient = header.split_once(RECIPIENT).map(|(_, rest)| rest);
        let name = recipient.map(|rest| {
            let ends = |c: char| c.is_whitespace() || c == '<';
            rest.split(ends).next().unwrap_or_default()
        });
        self.has_said = false;
        self.audience = match name.filter(|name| !name.is_empty() && self.has_tools) {
            Some(name) => {
                out.call(name);
                Audience::Tool
            }
            None if header.contains("<|channel|>analysis") => Audience::Model,
            None => Audience::User,
        };
    }

    /// Ends a message, if the output stands in one.
    fn end(&mut self, out: &mut Pieces) {
        if self.header.is_none() && self.audience == Audience::Tool && !self.has_said {
            out.arguments("{}");
        }
        if self.header.is_none() {
            self.audience = Audience::User;
        }
    }
}
