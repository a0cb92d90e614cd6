//! Calls as JSON objects with a name and arguments: one, a list, or one after the other.

use super::call_reader::{CallReader, CallText, Step};
use super::marks::{Beginning, beginning};
use super::pieces::Pieces;
use super::span::{JsonSpan, SpanStep, unescaped};

/// Keys under which families of models write the arguments.
const ARGUMENTS: [&str; 2] = ["arguments", "parameters"];

/// What may stand between two calls.
const BETWEEN: [char; 4] = ['[', ']', ',', ';'];

/// Reads the calls behind a mark.
#[derive(Debug)]
pub(super) struct JsonCalls {
    place: JsonPlace,
    /// What was read since the last call whose name was known: content, if it is no call.
    raw: String,
    /// The key, or the text, that is being read.
    word: String,
    is_named: bool,
    /// Whether there were arguments; and those that came before the name.
    has_arguments: bool,
    early: String,
    /// Whether a call was read to its end.
    is_one_over: bool,
}

#[derive(Debug)]
enum JsonPlace {
    Between,
    /// In an object, before a key or its end.
    BeforeKey,
    Key,
    BeforeColon,
    BeforeValue,
    Name(JsonSpan),
    /// Arguments as an object.
    Arguments(JsonSpan),
    /// Arguments as a text that holds JSON, or as null.
    WrappedArguments(JsonSpan),
    Other(JsonSpan),
}

impl JsonCalls {
    /// Returns the reader behind `mark`.
    pub(super) fn new(mark: &str) -> Self {
        Self {
            place: JsonPlace::Between,
            raw: mark.to_owned(),
            word: String::new(),
            is_named: false,
            has_arguments: false,
            early: String::new(),
            is_one_over: false,
        }
    }

    /// Reads what stands before an object; none once one has begun.
    fn between(&mut self, input: &mut CallText<'_>) -> Option<Step> {
        loop {
            self.raw += &input.take_space();
            let (opens, closes) = (input.opens, input.closes);
            match beginning(input.text, closes, input.end) {
                _ if input.text.is_empty() => return Some(Step::Starved),
                Beginning::Mark(mark) => {
                    input.take(mark.len());
                    if self.is_one_over {
                        return Some(Step::Over);
                    }
                    let raw = std::mem::take(&mut self.raw);
                    return Some(Step::Broken(raw + mark));
                }
                Beginning::Unknown => return Some(Step::Starved),
                Beginning::Other => {}
            }
            match beginning(input.text, opens, input.end) {
                Beginning::Mark(mark) => self.raw += &input.take(mark.len()),
                Beginning::Unknown => return Some(Step::Starved),
                Beginning::Other if input.text.starts_with(BETWEEN) => self.raw += &input.take(1),
                Beginning::Other if input.text.starts_with('{') => {
                    self.raw += &input.take(1);
                    self.place = JsonPlace::BeforeKey;
                    return None;
                }
                Beginning::Other if self.is_one_over => return Some(Step::Over),
                Beginning::Other => return Some(Step::Broken(std::mem::take(&mut self.raw))),
            }
        }
    }

    /// Takes the next character within an object.
    fn push(&mut self, next: char, out: &mut Pieces) -> Pushed {
        if !self.is_named {
            self.raw.push(next);
        }
        let is_space = next.is_ascii_whitespace();
        match &mut self.place {
            // Read elsewhere.
            JsonPlace::Between => {}
            JsonPlace::BeforeKey => match next {
                _ if is_space || next == ',' => {}
                '"' => self.place = JsonPlace::Key,
                '}' => return self.end_object(out),
                _ => return self.unread(),
            },
            JsonPlace::Key => match next {
                '"' => self.place = JsonPlace::BeforeColon,
                _ => self.word.push(next),
            },
            JsonPlace::BeforeColon => match next {
                _ if is_space => {}
                ':' => self.place = JsonPlace::BeforeValue,
                _ => return self.unread(),
            },
            JsonPlace::BeforeValue if is_space => {}
            JsonPlace::BeforeValue => return self.begin_value(next, out),
            JsonPlace::Arguments(span) => {
                let step = span.push(next);
                if step == SpanStep::Broken {
                    return self.unread();
                }
                self.argue(next.encode_utf8(&mut [0; 4]), out);
                if step == SpanStep::Last {
                    self.place = JsonPlace::BeforeKey;
                }
            }
            JsonPlace::Name(span) | JsonPlace::WrappedArguments(span) | JsonPlace::Other(span) => {
                let step = span.push(next);
                match step {
                    SpanStep::Broken => return self.unread(),
                    SpanStep::Behind => {
                        if !self.is_named {
                            self.raw.pop();
                        }
                    }
                    SpanStep::Inside | SpanStep::Last => self.word.push(next),
                }
                if step != SpanStep::Inside && !self.end_value(out) {
                    return Pushed::Broken;
                }
                if step == SpanStep::Behind {
                    return Pushed::Again;
                }
            }
        }
        Pushed::Read
    }

    /// Leaves the character that was looked at unread: it breaks the call.
    fn unread(&mut self) -> Pushed {
        if !self.is_named {
            self.raw.pop();
        }
        Pushed::Broken
    }

    fn begin_value(&mut self, first: char, out: &mut Pieces) -> Pushed {
        let key = std::mem::take(&mut self.word);
        let Some(span) = JsonSpan::begin(first) else {
            return self.unread();
        };
        let is_arguments = ARGUMENTS.contains(&&*key) && !self.has_arguments;
        self.has_arguments |= is_arguments;
        self.place = match first {
            '"' if key == "name" && !self.is_named => JsonPlace::Name(span),
            '{' | '[' if is_arguments => {
                self.argue(first.encode_utf8(&mut [0; 4]), out);
                JsonPlace::Arguments(span)
            }
            _ => {
                self.word.push(first);
                if is_arguments {
                    JsonPlace::WrappedArguments(span)
                } else {
                    JsonPlace::Other(span)
                }
            }
        };
        Pushed::Read
    }

    /// Ends a value that was collected in `word`; false if it is not what it must be.
    fn end_value(&mut self, out: &mut Pieces) -> bool {
        let word = std::mem::take(&mut self.word);
        let place = std::mem::replace(&mut self.place, JsonPlace::BeforeKey);
        match place {
            JsonPlace::Name(_) => {
                let name = word.strip_suffix('"').and_then(unescaped);
                let Some(name) = name.filter(|name| !name.is_empty()) else {
                    return false;
                };
                self.is_named = true;
                self.raw.clear();
                out.call(&name);
                out.arguments(&std::mem::take(&mut self.early));
            }
            JsonPlace::WrappedArguments(_) => {
                let inner = word
                    .strip_prefix('"')
                    .and_then(|word| word.strip_suffix('"'));
                match inner.map(unescaped) {
                    Some(Some(json)) if !json.trim().is_empty() => self.argue(&json, out),
                    Some(None) => return false,
                    _ if inner.is_some() || word == "null" => self.argue("{}", out),
                    _ => self.argue(&word, out),
                }
            }
            _ => {}
        }
        true
    }

    fn argue(&mut self, json: &str, out: &mut Pieces) {
        if self.is_named {
            out.arguments(json);
        } else {
            self.early.push_str(json);
        }
    }

    /// Ends an object.
    fn end_object(&mut self, out: &mut Pieces) -> Pushed {
        if !self.is_named {
            return self.unread();
        }
        if !self.has_arguments {
            out.arguments("{}");
        }
        self.reset();
        self.is_one_over = true;
        Pushed::Read
    }

    fn reset(&mut self) {
        *self = Self {
            is_one_over: self.is_one_over,
            ..Self::new("")
        };
    }

    /// Ends what is no call: as content, unless its name was given out.
    fn broken(&mut self) -> Option<Step> {
        if self.is_named {
            self.reset();
            self.is_one_over = true;
            return None;
        }
        Some(Step::Broken(std::mem::take(&mut self.raw)))
    }
}

impl CallReader for JsonCalls {
    fn read(&mut self, input: &mut CallText<'_>, out: &mut Pieces) -> Step {
        loop {
            if matches!(self.place, JsonPlace::Between)
                && let Some(step) = self.between(input)
            {
                return step;
            }
            let mut read = 0;
            let mut is_broken = false;
            'text: for next in input.text.chars() {
                loop {
                    match self.push(next, out) {
                        Pushed::Read => break,
                        Pushed::Again => {}
                        Pushed::Broken => {
                            is_broken = true;
                            break 'text;
                        }
                    }
                }
                read += next.len_utf8();
                if matches!(self.place, JsonPlace::Between) {
                    break;
                }
            }
            input.text.drain(..read);
            if is_broken && let Some(step) = self.broken() {
                return step;
            }
            if input.text.is_empty() {
                return Step::Starved;
            }
        }
    }

    fn mark(&mut self, _: &'static str, _: &mut Pieces) -> Step {
        self.end()
    }

    fn end(&mut self) -> Step {
        match self.place {
            JsonPlace::Between if self.is_one_over || self.raw.is_empty() => Step::Over,
            _ if self.is_named => Step::Over,
            _ => Step::Broken(std::mem::take(&mut self.raw)),
        }
    }
}

/// What became of a character.
#[derive(Debug, PartialEq, Eq)]
enum Pushed {
    Read,
    /// It is to be looked at again.
    Again,
    Broken,
}
