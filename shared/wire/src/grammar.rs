//! Grammars on the wire.

use serde_json::{Value, json};
use speculation::constraint::GrammarSpec;

use crate::status::BadField;
use crate::v1;

/// The field, as requests name it.
pub const FIELD: &str = "sampling.grammar";

/// Longest grammar, in bytes.
pub const MAX_GRAMMAR_BYTES: usize = 64 << 10;

/// Where a schema says how its text is written. Unless it does that is one line, as `json.dumps` of Python writes it: a model
/// that may write blanks anywhere may go on writing them.
const STYLE: &str = "x-guidance";

/// Returns `schema` with the style of one line, if it says none.
pub fn one_line(mut schema: Value) -> Value {
    if let Some(fields) = schema.as_object_mut() {
        let style = json!({
            "whitespace_flexible": false,
            "item_separator": ", ",
            "key_separator": ": ",
        });
        fields.entry(STYLE).or_insert(style);
    }
    schema
}

/// Reads a grammar; whether it can be followed shows when it is compiled.
///
/// # Errors
/// If none or several are given, or it is too long.
pub fn from_wire(wire: v1::Grammar) -> Result<GrammarSpec, BadField> {
    let texts = [&wire.json_schema, &wire.regex, &wire.lark];
    let is_choice = !wire.choice.is_empty();
    let given = texts.iter().filter(|text| !text.is_empty()).count() + usize::from(is_choice);
    if given != 1 {
        let problem =
            format!("{given} are given, expected one of json_schema, regex, choice, lark");
        return Err(BadField::new(FIELD, problem));
    }
    let spec = if is_choice {
        GrammarSpec::Choice(wire.choice)
    } else if !wire.regex.is_empty() {
        GrammarSpec::Regex(wire.regex)
    } else if !wire.lark.is_empty() {
        GrammarSpec::Lark(wire.lark)
    } else {
        GrammarSpec::JsonSchema(wire.json_schema)
    };
    BadField::at_most(FIELD, spec.bytes(), MAX_GRAMMAR_BYTES, "bytes")?;
    Ok(spec)
}

/// Writes a grammar.
pub fn to_wire(spec: GrammarSpec) -> v1::Grammar {
    let mut wire = v1::Grammar::default();
    match spec {
        GrammarSpec::JsonSchema(text) => wire.json_schema = text,
        GrammarSpec::Regex(text) => wire.regex = text,
        GrammarSpec::Choice(texts) => wire.choice = texts,
        GrammarSpec::Lark(text) => wire.lark = text,
    }
    wire
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_them_is_given() {
        let text = || "x".to_owned();
        for spec in [
            GrammarSpec::JsonSchema(text()),
            GrammarSpec::Regex(text()),
            GrammarSpec::Choice(vec![text(), text()]),
            GrammarSpec::Lark(text()),
        ] {
            assert_eq!(from_wire(to_wire(spec.clone())), Ok(spec));
        }
        let refused = |wire| from_wire(wire).expect_err("refused").to_string();
        assert!(refused(v1::Grammar::default()).contains("0 are given"));
        let both = v1::Grammar {
            lark: text(),
            ..to_wire(GrammarSpec::Choice(vec![text()]))
        };
        assert!(refused(both).contains("2 are given"));
        let long = "x".repeat(MAX_GRAMMAR_BYTES + 1);
        assert!(refused(to_wire(GrammarSpec::Lark(long))).contains("65537 bytes"));
    }
}
