//! Calls that begin with their name, in front of the arguments as JSON: `name[ARGS]{...}`.
//!
//! DeepSeek V3 has the word `function` there, then the name on a line of its own and the arguments as a block of code.

use super::TextEnd;
use super::call_reader::{CallReader, CallText, Step};
use super::marks::{Beginning, Found, beginning, find};
use super::pieces::Pieces;
use super::span::{JsonSpan, SpanStep};

/// The word before the mark, where the name follows it.
const KIND: &str = "function";

/// Reads the call behind a mark.
#[derive(Debug)]
pub(super) struct NamedCall {
    /// The marks that end the name, and those of them that are text.
    separators: &'static [&'static str],
    spelled: Vec<&'static str>,
    place: NamedPlace,
    /// What was read of a call whose name is not known.
    raw: String,
    name: String,
}

#[derive(Debug)]
enum NamedPlace {
    /// Before the first mark.
    Name,
    /// Behind one, before the arguments: what was read there.
    BeforeArguments(String),
    Arguments(JsonSpan),
    Behind,
}

impl NamedCall {
    /// Returns the reader behind `mark`, of a name that one of `separators` ends, of which `spelled` are text.
    pub(super) fn new(
        mark: &str,
        separators: &'static [&'static str],
        spelled: Vec<&'static str>,
    ) -> Self {
        Self {
            separators,
            spelled,
            place: NamedPlace::Name,
            raw: mark.to_owned(),
            name: String::new(),
        }
    }

    fn name(&mut self, text: &mut String, end: TextEnd) -> Option<Step> {
        match find(text, &self.spelled, end) {
            Found::Mark { at, mark } => {
                self.name.push_str(&text[..at]);
                self.raw.extend(text.drain(..at + mark.len()));
                self.place = NamedPlace::BeforeArguments(String::new());
                None
            }
            Found::None { settled } => {
                self.name.push_str(&text[..settled]);
                self.raw.extend(text.drain(..settled));
                Some(Step::Starved)
            }
        }
    }

    fn before_arguments(
        &mut self,
        text: &mut String,
        end: TextEnd,
        out: &mut Pieces,
    ) -> Option<Step> {
        let NamedPlace::BeforeArguments(before) = &mut self.place else {
            return None;
        };
        // Mistral's models may put an id between two separators, which is not used.
        let brace = text.find('{').unwrap_or(text.len());
        if let Found::Mark { at, mark } = find(&text[..brace], &self.spelled, end) {
            self.raw.extend(text.drain(..at + mark.len()));
            before.clear();
            return None;
        }
        let Some(at) = text.find('{') else {
            before.push_str(text);
            self.raw.push_str(text);
            text.clear();
            return Some(Step::Starved);
        };
        before.push_str(&text[..at]);
        self.raw.extend(text.drain(..at));
        let own = self.name.trim();
        let line = before.lines().next().unwrap_or_default().trim();
        let name = if own == KIND && !line.is_empty() {
            line
        } else {
            own
        };
        if name.is_empty() {
            return Some(Step::Broken(std::mem::take(&mut self.raw)));
        }
        out.call(name);
        out.arguments("{");
        self.raw.clear();
        text.drain(..1);
        self.place = NamedPlace::Arguments(JsonSpan::begin('{')?);
        None
    }

    fn arguments(&mut self, text: &mut String, out: &mut Pieces) -> Option<Step> {
        let NamedPlace::Arguments(span) = &mut self.place else {
            return None;
        };
        let mut read = 0;
        let mut is_over = false;
        for next in text.chars() {
            let step = span.push(next);
            is_over = step != SpanStep::Inside;
            if matches!(step, SpanStep::Inside | SpanStep::Last) {
                read += next.len_utf8();
            }
            if is_over {
                break;
            }
        }
        out.arguments(&text[..read]);
        text.drain(..read);
        if is_over {
            self.place = NamedPlace::Behind;
            return None;
        }
        Some(Step::Starved)
    }
}

impl CallReader for NamedCall {
    fn read(&mut self, input: &mut CallText<'_>, out: &mut Pieces) -> Step {
        loop {
            let (text, end) = (&mut *input.text, input.end);
            let step = match &mut self.place {
                NamedPlace::Name => self.name(text, end),
                NamedPlace::BeforeArguments(_) => self.before_arguments(text, end, out),
                NamedPlace::Arguments(_) => self.arguments(text, out),
                NamedPlace::Behind => return behind(input),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn mark(&mut self, mark: &'static str, _: &mut Pieces) -> Step {
        let is_named = matches!(self.place, NamedPlace::Arguments(_) | NamedPlace::Behind);
        if !is_named && self.separators.contains(&mark) {
            self.raw.push_str(mark);
            self.place = NamedPlace::BeforeArguments(String::new());
            return Step::Starved;
        }
        self.end()
    }

    fn end(&mut self) -> Step {
        match &self.place {
            NamedPlace::Name | NamedPlace::BeforeArguments(_) => {
                Step::Broken(std::mem::take(&mut self.raw))
            }
            NamedPlace::Arguments(_) | NamedPlace::Behind => Step::Over,
        }
    }
}

/// Reads what stands behind the arguments: the end of a block of code, and the mark that ends the call.
fn behind(input: &mut CallText<'_>) -> Step {
    let is_of_block = |c: char| c.is_whitespace() || c == '`';
    let rest = input.text.trim_start_matches(is_of_block).len();
    input.take(input.text.len() - rest);
    if input.text.is_empty() {
        return Step::Starved;
    }
    match beginning(input.text, &[input.opens, input.closes].concat(), input.end) {
        Beginning::Unknown => Step::Starved,
        Beginning::Mark(mark) if input.closes.contains(&mark) => {
            input.take(mark.len());
            Step::Over
        }
        // The next call is found as content is read.
        Beginning::Mark(_) | Beginning::Other => Step::Over,
    }
}
