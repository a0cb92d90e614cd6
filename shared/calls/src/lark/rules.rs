//! Rules of Lark, and how texts stand in them.

use std::collections::HashSet;
use std::fmt::Write;

use serde_json::Value;
use wire::grammar::one_line;

/// Any text, a character at least.
pub(super) const TEXT: &str = r"/(.|\n)+/";

/// Returns the rule of JSON that `schema` describes.
pub(super) fn json_rule(schema: Value) -> String {
    format!("%json {}", one_line(schema))
}

/// Returns the regular expression that matches any of `texts`, as it stands between slashes.
pub(super) fn regex_of(texts: &[&str]) -> String {
    let texts: Vec<String> = texts
        .iter()
        .map(|text| regex_syntax::escape(text))
        .collect();
    format!("({})", texts.join("|")).replace('/', r"\/")
}

/// Returns `regex` between slashes.
pub(super) fn slashed(regex: &str) -> String {
    let mut out = String::from("/");
    let mut is_escaped = false;
    for c in regex.chars() {
        match c {
            '/' if !is_escaped => out.push_str(r"\/"),
            '\n' => out.push_str(r"\n"),
            '\r' => out.push_str(r"\r"),
            c => out.push(c),
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    out.push('/');
    out
}

/// Rules beside the first.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) text: String,
    names: HashSet<String>,
}

impl Rules {
    /// Adds a rule, unless there is one of its name, and returns the name without its attributes.
    pub(super) fn add(&mut self, name: &str, is: &str) -> String {
        let plain = name.split('[').next().unwrap_or_default().to_owned();
        if self.names.insert(plain.clone()) {
            // Writing to a text does not fail.
            let _ = writeln!(self.text, "{name}: {is}");
        }
        plain
    }
}

/// Returns the literal text `text`.
pub(super) fn literal(text: &str) -> String {
    Value::from(text).to_string()
}
