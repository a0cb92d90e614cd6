//! `tojson`: JSON as Python's `json.dumps` writes it, without the escapes of HTML that Jinja2's own filter adds and
//! transformers takes away.

use std::fmt::Write;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind};

/// Deepest nesting that is written; Python ends at its own limit of 1,000.
const MAX_DEPTH: usize = 128;
/// Longest JSON that is written, in bytes: more than any prompt has. Lists that hold one another many times would fill
/// any memory.
const MAX_BYTES: usize = 16 << 20;

/// Writes `value`, as `ensure_ascii`, `indent`, `separators` and `sort_keys` ask for.
// The library hands arguments of this kind over whole.
#[allow(clippy::needless_pass_by_value)]
pub(super) fn tojson(value: &Value, kwargs: Kwargs) -> Result<Value, Error> {
    let indent: Option<Value> = kwargs.get("indent")?;
    let indent = indent.map(|indent| match indent.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => usize::try_from(indent).map(|spaces| " ".repeat(spaces.min(16))),
    });
    let indent = indent.transpose()?;
    let separators: Option<(String, String)> = match kwargs.get::<Option<Value>>("separators")? {
        None => None,
        Some(pair) => {
            let separator = |at| pair.get_item_by_index(at).map(|it| it.to_string());
            Some((separator(0)?, separator(1)?))
        }
    };
    let between = if indent.is_some() { "," } else { ", " };
    let (between, after_key) = separators.unwrap_or_else(|| (between.to_owned(), ": ".to_owned()));
    let mut writer = Writer {
        json: String::new(),
        indent,
        between,
        after_key,
        ensure_ascii: kwargs.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sort_keys: kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
    };
    kwargs.assert_all_used()?;
    writer.write(value, 0)?;
    Ok(Value::from_safe_string(writer.json))
}

struct Writer {
    json: String,
    indent: Option<String>,
    between: String,
    after_key: String,
    ensure_ascii: bool,
    sort_keys: bool,
}

impl Writer {
    fn write(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            let problem = "nested too deeply to be written as JSON";
            return Err(Error::new(ErrorKind::BadSerialization, problem));
        }
        let text = value.as_str().map_or(0, str::len);
        if self.json.len() + text > MAX_BYTES {
            let problem = format!("longer than {MAX_BYTES} bytes as JSON");
            return Err(Error::new(ErrorKind::BadSerialization, problem));
        }
        match value.kind() {
            ValueKind::None => self.json.push_str("null"),
            ValueKind::Bool => self.json.push_str(boolean(value)),
            ValueKind::Number => self.json.push_str(&number(value)),
            ValueKind::String => self.text(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => {
                let mut is_first = true;
                self.json.push('[');
                for item in value.try_iter()? {
                    self.separate(&mut is_first, depth);
                    self.write(&item, depth + 1)?;
                }
                self.close(is_first, depth, ']');
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sort_keys {
                    keys.sort();
                }
                let mut is_first = true;
                self.json.push('{');
                for key in keys {
                    self.separate(&mut is_first, depth);
                    self.text(&name(&key)?);
                    self.json.push_str(&self.after_key);
                    self.write(&value.get_item(&key)?, depth + 1)?;
                }
                self.close(is_first, depth, '}');
            }
            kind => {
                let problem = format!("{kind} is not JSON serializable");
                return Err(Error::new(ErrorKind::BadSerialization, problem));
            }
        }
        Ok(())
    }

    fn separate(&mut self, is_first: &mut bool, depth: usize) {
        if !std::mem::take(is_first) {
            self.json.push_str(&self.between);
        }
        self.begin_line(depth + 1);
    }

    fn close(&mut self, is_empty: bool, depth: usize, with: char) {
        if !is_empty {
            self.begin_line(depth);
        }
        self.json.push(with);
    }

    fn begin_line(&mut self, depth: usize) {
        if let Some(indent) = &self.indent {
            self.json.push('\n');
            self.json.push_str(&indent.repeat(depth));
        }
    }

    fn text(&mut self, text: &str) {
        let quoted = serde_json::Value::from(text).to_string();
        if !self.ensure_ascii {
            self.json.push_str(&quoted);
            return;
        }
        for c in quoted.chars() {
            if c.is_ascii() {
                self.json.push(c);
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a text does not fail.
                let _ = write!(self.json, "\\u{unit:04x}");
            }
        }
    }
}

fn boolean(value: &Value) -> &'static str {
    if value.is_true() { "true" } else { "false" }
}

/// Returns a key of a dict as JSON has it.
fn name(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_owned()),
        ValueKind::None => Ok("null".to_owned()),
        ValueKind::Bool => Ok(boolean(key).to_owned()),
        ValueKind::Number => Ok(number(key)),
        kind => {
            let problem = format!("keys must be texts or numbers, not {kind}");
            Err(Error::new(ErrorKind::BadSerialization, problem))
        }
    }
}

/// Returns a number as Python writes it: a float has its shortest form, with an exponent below 1e-4 and from 1e16 on.
pub(super) fn number(value: &Value) -> String {
    let float = match f64::try_from(value.clone()) {
        Ok(float) if !value.is_integer() => float,
        _ => return value.to_string(),
    };
    if float.is_nan() {
        return "NaN".to_owned();
    }
    if float.is_infinite() {
        let sign = if float < 0.0 { "-" } else { "" };
        return format!("{sign}Infinity");
    }
    if float == 0.0 || (1e-4..1e16).contains(&float.abs()) {
        return format!("{float:?}");
    }
    let shortest = format!("{float:e}");
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}
