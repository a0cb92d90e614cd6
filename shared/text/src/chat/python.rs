//! What templates expect of Python.

use std::io;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use minijinja::value::{Kwargs, Value};
use minijinja::{Error, ErrorKind};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// `strftime_now(format)`: the time now, in UTC.
pub(super) fn strftime_now(format: &str) -> Result<String, Error> {
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let text = jiff::fmt::strtime::format(format, &now);
    text.map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
}

/// `tojson`: JSON as Python's `json.dumps(…, ensure_ascii=False)` writes it.
// The library hands arguments of this kind over whole.
#[allow(clippy::needless_pass_by_value)]
pub(super) fn tojson(value: &Value, kwargs: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = kwargs.get("indent")?;
    // What transformers passes anyway.
    let _: Option<bool> = kwargs.get("ensure_ascii")?;
    kwargs.assert_all_used()?;
    let written = match indent {
        None => write(value, OneLine),
        Some(indent) => {
            let indent = " ".repeat(indent.min(16));
            write(value, PrettyFormatter::with_indent(indent.as_bytes()))
        }
    };
    let json =
        written.map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    Ok(Value::from_safe_string(json))
}

fn write(value: &Value, formatter: impl Formatter) -> Result<String, serde_json::Error> {
    let mut json = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut json, formatter))?;
    Ok(String::from_utf8_lossy(&json).into_owned())
}

/// Python's separators: a space after each comma and colon.
struct OneLine;

fn separate<W: ?Sized + io::Write>(writer: &mut W, first: bool) -> io::Result<()> {
    if first {
        return Ok(());
    }
    writer.write_all(b", ")
}

impl Formatter for OneLine {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        separate(writer, first)
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        separate(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
