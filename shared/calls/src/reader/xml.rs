//! Calls as Qwen3-Coder writes them: `<function=NAME>`, in it `<parameter=KEY>` with a value of several lines.
//!
//! Values have no quotes: what they are, the tool's schema tells.

use std::sync::Arc;

use serde_json::Value;

use super::TextEnd;
use super::call_reader::{CallReader, CallText, Step};
use super::marks::{Beginning, Found, beginning, find};
use super::pieces::Pieces;
use crate::tools::Tools;

const FUNCTION: &str = "<function=";
const FUNCTION_END: &str = "</function>";
const PARAMETER: &str = "<parameter=";
const VALUE_ENDS: [&str; 2] = ["\n</parameter>", "</parameter>"];

/// Reads the calls behind a mark.
#[derive(Debug)]
pub(super) struct XmlCalls {
    tools: Arc<Tools>,
    place: XmlPlace,
    /// What was read of a call whose name is not known.
    raw: String,
    name: String,
    /// Parameters of the call so far.
    parameters: usize,
    is_one_over: bool,
}

#[derive(Debug)]
enum XmlPlace {
    Between,
    Name,
    InFunction,
    Key,
    /// A value that is text, whatever it looks like; whether something of it was read.
    Text(bool),
    /// A value that is JSON, or text if it is none, as far as it came.
    Json(String),
}

impl XmlCalls {
    /// Returns the reader behind `mark`.
    pub(super) fn new(mark: &str, tools: Arc<Tools>) -> Self {
        Self {
            tools,
            place: if mark == FUNCTION {
                XmlPlace::Name
            } else {
                XmlPlace::Between
            },
            raw: mark.to_owned(),
            name: String::new(),
            parameters: 0,
            is_one_over: false,
        }
    }

    fn between(&mut self, input: &mut CallText<'_>) -> Option<Step> {
        self.raw += &input.take_space();
        let marks = [input.closes, &[FUNCTION]].concat();
        match beginning(input.text, &marks, input.end) {
            _ if input.text.is_empty() => Some(Step::Starved),
            Beginning::Unknown => Some(Step::Starved),
            Beginning::Mark(FUNCTION) => {
                self.raw += &input.take(FUNCTION.len());
                self.place = XmlPlace::Name;
                None
            }
            Beginning::Mark(close) if self.is_one_over => {
                input.take(close.len());
                Some(Step::Over)
            }
            Beginning::Other if self.is_one_over => Some(Step::Over),
            Beginning::Mark(_) | Beginning::Other => {
                Some(Step::Broken(std::mem::take(&mut self.raw)))
            }
        }
    }

    fn name(&mut self, text: &mut String, out: &mut Pieces) -> Option<Step> {
        let Some(end) = text.find(['>', '\n']) else {
            return Some(Step::Starved);
        };
        let name = text[..end].trim();
        if name.is_empty() || text[end..].starts_with('\n') {
            return Some(Step::Broken(std::mem::take(&mut self.raw)));
        }
        name.clone_into(&mut self.name);
        out.call(name);
        text.drain(..=end);
        self.raw.clear();
        self.parameters = 0;
        self.place = XmlPlace::InFunction;
        None
    }

    fn in_function(&mut self, input: &mut CallText<'_>, out: &mut Pieces) -> Option<Step> {
        input.take_space();
        let marks = [input.closes, &[PARAMETER, FUNCTION_END]].concat();
        match beginning(input.text, &marks, input.end) {
            _ if input.text.is_empty() => Some(Step::Starved),
            Beginning::Unknown => Some(Step::Starved),
            // It was cut off there.
            Beginning::Other if input.end == TextEnd::Last => Some(Step::Starved),
            Beginning::Mark(PARAMETER) => {
                input.take(PARAMETER.len());
                self.place = XmlPlace::Key;
                None
            }
            beginning => {
                if beginning == Beginning::Mark(FUNCTION_END) {
                    input.take(FUNCTION_END.len());
                }
                self.end_call(out);
                None
            }
        }
    }

    fn key(&mut self, text: &mut String, out: &mut Pieces) -> Option<Step> {
        let Some(end) = text.find('>') else {
            return Some(Step::Starved);
        };
        let key = text[..end].trim();
        let is_text = self.tools.is_text(&self.name, key);
        let opening = if self.parameters == 0 { "{" } else { ", " };
        out.arguments(&format!("{opening}{}: ", Value::from(key)));
        self.parameters += 1;
        self.place = if is_text {
            out.arguments("\"");
            XmlPlace::Text(false)
        } else {
            XmlPlace::Json(String::new())
        };
        text.drain(..=end);
        None
    }

    fn value(&mut self, text: &mut String, end: TextEnd, out: &mut Pieces) -> Option<Step> {
        if let XmlPlace::Text(is_begun) = &mut self.place
            && !*is_begun
        {
            // A value stands on lines of its own.
            match beginning(text, &VALUE_ENDS[..1], end) {
                Beginning::Unknown => return Some(Step::Starved),
                Beginning::Other if text.starts_with('\n') => _ = text.drain(..1),
                Beginning::Mark(_) | Beginning::Other => {}
            }
            *is_begun = true;
        }
        let found = find(text, &VALUE_ENDS, end);
        let (said, rest) = match found {
            Found::Mark { at, mark } => (at, at + mark.len()),
            Found::None { settled } => (settled, settled),
        };
        let is_over = rest > said;
        match &mut self.place {
            XmlPlace::Text(_) => {
                let quoted = Value::from(&text[..said]).to_string();
                out.arguments(&quoted[1..quoted.len() - 1]);
                if is_over {
                    out.arguments("\"");
                }
            }
            XmlPlace::Json(value) => {
                value.push_str(&text[..said]);
                if is_over {
                    out.arguments(&json_of(value));
                }
            }
            _ => {}
        }
        text.drain(..rest);
        if is_over {
            self.place = XmlPlace::InFunction;
            return None;
        }
        Some(Step::Starved)
    }

    fn end_call(&mut self, out: &mut Pieces) {
        out.arguments(if self.parameters == 0 { "{}" } else { "}" });
        self.place = XmlPlace::Between;
        self.is_one_over = true;
    }
}

impl CallReader for XmlCalls {
    fn read(&mut self, input: &mut CallText<'_>, out: &mut Pieces) -> Step {
        loop {
            let step = match &mut self.place {
                XmlPlace::Between => self.between(input),
                XmlPlace::Name => self.name(input.text, out),
                XmlPlace::InFunction => self.in_function(input, out),
                XmlPlace::Key => self.key(input.text, out),
                XmlPlace::Text(_) | XmlPlace::Json(_) => self.value(input.text, input.end, out),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn mark(&mut self, _: &'static str, out: &mut Pieces) -> Step {
        if matches!(self.place, XmlPlace::InFunction) {
            self.end_call(out);
        }
        self.end()
    }

    fn end(&mut self) -> Step {
        match self.place {
            XmlPlace::Between if self.is_one_over => Step::Over,
            XmlPlace::Between | XmlPlace::Name => Step::Broken(std::mem::take(&mut self.raw)),
            _ => Step::Over,
        }
    }
}

/// Returns the JSON of a value that may be any: itself, if it is JSON, or a text.
fn json_of(value: &str) -> String {
    let value = value.trim();
    // As Python writes them.
    match value {
        "True" => return "true".to_owned(),
        "False" => return "false".to_owned(),
        "None" => return "null".to_owned(),
        _ => {}
    }
    match serde_json::from_str::<Value>(value) {
        Ok(_) => value.to_owned(),
        Err(_) => Value::from(value).to_string(),
    }
}
