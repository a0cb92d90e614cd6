//! Reads an output as it comes: what of it is content, what is reasoning, and what is a call.
//!
//! It is fed with committed text, token by token, and what it returns does not depend on how the text was cut. What may
//! still become a mark is held back, and so is white space, which is dropped beside marks.

mod call_reader;
mod channels;
mod json;
mod marks;
mod named;
mod pieces;
mod reading;
mod spaced;
mod span;
mod xml;

use std::sync::Arc;

use crate::form::{CallForm, CallLayout, ReasoningMarks};
use call_reader::{CallReader, CallText, Step, TextEnd};
use channels::ChannelReader;
use json::JsonCalls;
use marks::{Beginning, Found, beginning, find};
use named::NamedCall;
use pieces::Pieces;
use spaced::Spaced;
use xml::XmlCalls;

pub use pieces::OutputPiece;
pub use reading::OutputReading;

/// Where the output stands.
#[derive(Debug)]
enum Place {
    /// At its beginning, where reasoning may begin; or after it, where a call without a mark may.
    Beginning {
        may_reason: bool,
    },
    Reasoning,
    Content,
    Calls(Box<dyn CallReader>),
}

/// Reads one output.
#[derive(Debug)]
pub struct OutputReader {
    reading: OutputReading,
    /// The marks of its form that are text.
    opens: Vec<&'static str>,
    closes: Vec<&'static str>,
    around: Vec<&'static str>,
    place: Place,
    /// Text that was not read yet.
    text: String,
    spaced: Spaced,
    /// The reader of OpenAI's channels, in place of all the above.
    channels: Option<ChannelReader>,
}

impl OutputReader {
    /// Returns the reader of an output that is to be read so.
    pub fn new(reading: OutputReading) -> Self {
        let form = reading.form;
        let of_form = |marks: fn(&CallForm) -> &'static [&'static str]| {
            reading.spelled(form.map(marks).unwrap_or_default())
        };
        let is_channels = form.is_some_and(|form| form.layout == CallLayout::Channels);
        let mut reader = Self {
            opens: of_form(|form| form.opens),
            closes: of_form(|form| form.closes),
            around: of_form(|form| form.around),
            place: Place::Beginning { may_reason: true },
            text: String::new(),
            spaced: Spaced::default(),
            channels: is_channels.then(|| ChannelReader::new(&reading)),
            reading,
        };
        if reader.reading.reasoning.is_some() && reader.reading.begins_in_reasoning {
            reader.reason();
        }
        reader
    }

    /// Returns whether the model is thinking where the output stands.
    pub fn is_reasoning(&self) -> bool {
        match &self.channels {
            Some(channels) => channels.is_reasoning(),
            None => matches!(self.place, Place::Reasoning),
        }
    }

    /// Returns whether the output stands within a call.
    pub fn is_calling(&self) -> bool {
        match &self.channels {
            Some(channels) => channels.is_calling(),
            None => matches!(self.place, Place::Calls(_)),
        }
    }

    /// Returns the mark that the special token `name` is, if it is one.
    pub fn mark(&self, name: &str) -> Option<&'static str> {
        let mut marks = self.reading.special_marks.iter();
        marks.find(|mark| **mark == name).copied()
    }

    /// Takes the next text.
    pub fn text(&mut self, text: &str) -> Vec<OutputPiece> {
        self.text.push_str(text);
        self.read(TextEnd::Open)
    }

    /// Takes a special token that is a mark.
    pub fn special(&mut self, mark: &'static str) -> Vec<OutputPiece> {
        self.read(TextEnd::Mark(mark))
    }

    /// Ends the output.
    pub fn finish(&mut self) -> Vec<OutputPiece> {
        self.read(TextEnd::Last)
    }

    fn read(&mut self, end: TextEnd) -> Vec<OutputPiece> {
        let mut out = Pieces::default();
        if let Some(channels) = &mut self.channels {
            channels.read(&mut self.text, end, &mut out);
            return out.0;
        }
        while self.step(end, &mut out) {}
        match end {
            TextEnd::Open => {}
            TextEnd::Mark(mark) => self.at_mark(mark, &mut out),
            TextEnd::Last => self.flush(&mut out),
        }
        out.0
    }

    /// Reads as far as it goes in the present place; whether there may be more to read in another.
    fn step(&mut self, end: TextEnd, out: &mut Pieces) -> bool {
        match &mut self.place {
            Place::Beginning { may_reason } => {
                let may_reason = *may_reason;
                self.begin(may_reason, end)
            }
            Place::Reasoning => self.read_reasoning(end, out),
            Place::Content => self.read_content(end, out),
            Place::Calls(calls) => {
                let mut input = CallText {
                    text: &mut self.text,
                    opens: &self.opens,
                    closes: &self.closes,
                    end,
                };
                let step = calls.read(&mut input, out);
                let is_more = step != Step::Starved;
                self.leave(step, out);
                is_more
            }
        }
    }

    /// Decides what the output begins with.
    fn begin(&mut self, may_reason: bool, end: TextEnd) -> bool {
        let begun = self.text.trim_start();
        let reasoning = self.reading.reasoning.filter(|_| may_reason);
        let open = reasoning.map(|marks| self.reading.spelled(&[marks.open]));
        match beginning(begun, &open.unwrap_or_default(), end) {
            Beginning::Mark(mark) => {
                self.text = begun[mark.len()..].to_owned();
                self.reason();
                return true;
            }
            Beginning::Unknown => return false,
            // What follows tells what the space is.
            Beginning::Other if begun.is_empty() => return false,
            Beginning::Other => {}
        }
        let layout = self.reading.form.map(|form| form.layout);
        let may_call = matches!(layout, Some(CallLayout::Json { bare: true, .. }));
        if may_call && begun.starts_with('{') {
            self.text = begun.to_owned();
            self.call("");
        } else {
            self.place = Place::Content;
        }
        true
    }

    fn read_reasoning(&mut self, end: TextEnd, out: &mut Pieces) -> bool {
        let close = self.reading.reasoning.map(|marks| marks.close);
        let close = self.reading.spelled(close.as_slice());
        let (said, mark) = self.take_before(&close, end);
        out.reasoning(&self.spaced.say(&said));
        if mark.is_some() {
            self.end_reasoning();
        }
        mark.is_some()
    }

    fn read_content(&mut self, end: TextEnd, out: &mut Pieces) -> bool {
        let marks = [&self.opens[..], &self.around].concat();
        let (said, mark) = self.take_before(&marks, end);
        out.content(&self.spaced.say(&said));
        match mark {
            Some(mark) if self.opens.contains(&mark) => self.call(mark),
            Some(_) => self.spaced.at_mark(),
            None => {}
        }
        mark.is_some()
    }

    /// Takes the text before the first of `marks`, and that mark; or the text that is settled.
    fn take_before(
        &mut self,
        marks: &[&'static str],
        end: TextEnd,
    ) -> (String, Option<&'static str>) {
        match find(&self.text, marks, end) {
            Found::Mark { at, mark } => {
                let rest = self.text.split_off(at + mark.len());
                let mut said = std::mem::replace(&mut self.text, rest);
                said.truncate(at);
                (said, Some(mark))
            }
            Found::None { settled } => {
                let rest = self.text.split_off(settled);
                (std::mem::replace(&mut self.text, rest), None)
            }
        }
    }

    fn reason(&mut self) {
        self.spaced.at_mark();
        self.place = Place::Reasoning;
    }

    fn end_reasoning(&mut self) {
        self.spaced.at_mark();
        self.place = Place::Beginning { may_reason: false };
    }

    /// Begins calls behind `mark`.
    fn call(&mut self, mark: &str) {
        let Some(form) = self.reading.form else {
            return;
        };
        self.spaced.at_mark();
        self.place = Place::Calls(match form.layout {
            CallLayout::Xml => Box::new(XmlCalls::new(mark, Arc::clone(&self.reading.tools))),
            CallLayout::Named { separators } => {
                let spelled = self.reading.spelled(separators);
                Box::new(NamedCall::new(mark, separators, spelled))
            }
            CallLayout::Json { .. } | CallLayout::Channels => Box::new(JsonCalls::new(mark)),
        });
    }

    /// Goes on after calls.
    fn leave(&mut self, step: Step, out: &mut Pieces) {
        match step {
            Step::Starved => {}
            Step::Over => {
                self.spaced.at_mark();
                self.place = Place::Content;
            }
            Step::Broken(text) => {
                self.spaced = Spaced::default();
                self.place = Place::Content;
                out.content(&self.spaced.say(&text));
            }
        }
    }

    /// Takes a special token that is a mark; the text before it was read.
    fn at_mark(&mut self, mark: &'static str, out: &mut Pieces) {
        let reading = &self.reading;
        let is_reasoning = |of: fn(ReasoningMarks) -> &'static str| {
            reading.reasoning.is_some_and(|marks| of(marks) == mark)
        };
        match &mut self.place {
            Place::Beginning { may_reason: true } if is_reasoning(|marks| marks.open) => {
                self.text.clear();
                return self.reason();
            }
            Place::Reasoning if is_reasoning(|marks| marks.close) => return self.end_reasoning(),
            Place::Calls(calls) => {
                let step = calls.mark(mark, out);
                let is_read = step != Step::Starved;
                let is_over = step == Step::Over;
                self.leave(step, out);
                if !is_read || is_over && self.is_close(mark) {
                    return;
                }
            }
            _ => {}
        }
        let Some(form) = self.reading.form else {
            return;
        };
        if form.opens.contains(&mark) && !matches!(self.place, Place::Calls(_)) {
            self.text.clear();
            self.call(mark);
        } else if form.around.contains(&mark) {
            self.spaced.at_mark();
        } else if self.is_close(mark) {
            // Of what was no call.
            out.content(&self.spaced.say(mark));
        }
    }

    fn is_close(&self, mark: &str) -> bool {
        self.reading
            .form
            .is_some_and(|form| form.closes.contains(&mark))
    }

    /// Gives out what was held back at the output's end.
    fn flush(&mut self, out: &mut Pieces) {
        let rest = std::mem::take(&mut self.text);
        let held = std::mem::take(&mut self.spaced.held);
        match &mut self.place {
            Place::Beginning { .. } if self.spaced.is_behind_mark => {}
            // The beginning of the next call.
            Place::Content
                if self.spaced.is_behind_mark
                    && self.opens.iter().any(|mark| mark.starts_with(&*rest)) => {}
            Place::Beginning { .. } | Place::Content => out.content(&(held + &rest)),
            Place::Reasoning => out.reasoning(&(held + &rest)),
            Place::Calls(calls) => {
                let step = calls.end();
                if let Step::Broken(text) = step
                    && !self.reading.is_held
                {
                    out.content(&(text + &rest));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
