//! Calls that begin with their name, in front of the arguments as JSON: `name[ARGS]{...}`.
//!
//! DeepSeek V3 has the word `function` there, then the name on a line of its own and the arguments as a block of code.

use super::marks::{Beginning, Found, beginning, find};
use super::span::{JsonSpan, SpanStep};
use super::{Pieces, Step, TextEnd};

/// The word before the mark, where the name follows it.
const KIND: &str = "function";

/// Reads the call behind a mark.
#[derive(Debug)]
pub(super) struct NamedCall {
    separators: Vec<&'static str>,
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
    /// Returns the reader behind `mark`, of a name that one of `separators` ends; of those, the ones that are text.
    pub(super) fn new(mark: &str, separators: Vec<&'static str>) -> Self {
        Self {
            separators,
            place: NamedPlace::Name,
            raw: mark.to_owned(),
            name: String::new(),
        }
    }

    /// Reads `text` as far as it goes.
    pub(super) fn read(
        &mut self,
        text: &mut String,
        opens: &[&'static str],
        closes: &[&'static str],
        end: TextEnd,
        out: &mut Pieces,
    ) -> Step {
        loop {
            let step = match &mut self.place {
                NamedPlace::Name => self.name(text, end),
                NamedPlace::BeforeArguments(_) => self.before_arguments(text, end, out),
                NamedPlace::Arguments(_) => self.arguments(text, out),
                NamedPlace::Behind => return behind(text, opens, closes, end),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn name(&mut self, text: &mut String, end: TextEnd) -> Option<Step> {
        match find(text, &self.separators, end) {
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
        // The name of the call, which Mistral's models put before the arguments, is not used.
        let brace = text.find('{').unwrap_or(text.len());
        if let Found::Mark { at, mark } = find(&text[..brace], &self.separators, end) {
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

    /// Takes a special token that is a mark.
    pub(super) fn mark(&mut self, mark: &'static str, is_separator: bool) -> Step {
        match &mut self.place {
            NamedPlace::Name | NamedPlace::BeforeArguments(_) if is_separator => {
                self.raw.push_str(mark);
                self.place = NamedPlace::BeforeArguments(String::new());
                Step::Starved
            }
            NamedPlace::Name | NamedPlace::BeforeArguments(_) => {
                Step::Broken(std::mem::take(&mut self.raw))
            }
            NamedPlace::Arguments(_) | NamedPlace::Behind => Step::Over,
        }
    }
}

/// Reads what stands behind the arguments: the end of a block of code, and the mark that ends the call.
fn behind(
    text: &mut String,
    opens: &[&'static str],
    closes: &[&'static str],
    end: TextEnd,
) -> Step {
    let rest = text.trim_start_matches(|c: char| c.is_whitespace() || c == '`');
    text.drain(..text.len() - rest.len());
    if text.is_empty() {
        return Step::Starved;
    }
    match beginning(text, &[opens, closes].concat(), end) {
        Beginning::Unknown => Step::Starved,
        Beginning::Mark(mark) if closes.contains(&mark) => {
            text.drain(..mark.len());
            Step::Over
        }
        // The next call is found as content is read.
        Beginning::Mark(_) | Beginning::Other => Step::Over,
    }
}
