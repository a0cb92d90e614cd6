//! JSON as Python reads and writes it: with a byte order mark before it, and with numbers that are not finite.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

/// Numbers that JSON has no form for.
const NOT_FINITE: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];

/// Reads `json` as [`serde_json::from_slice`] does. A number that is not finite is the text of its name, so that
/// who needs it there says what is wrong.
///
/// # Errors
/// If it is no JSON, or makes no `T`.
pub(crate) fn from_slice<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(&finite(without_mark(json)))
}

/// Returns `json` without a byte order mark.
pub(crate) fn without_mark(json: &[u8]) -> &[u8] {
    json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json)
}

fn finite(json: &[u8]) -> Cow<'_, [u8]> {
    if !json.windows(3).any(|part| part == b"Inf" || part == b"NaN") {
        return json.into();
    }
    let mut out = Vec::with_capacity(json.len() + 16);
    let (mut is_text, mut at) = (false, 0);
    while let Some(&byte) = json.get(at) {
        let rest = &json[at..];
        let name = NOT_FINITE.iter().find(|name| rest.starts_with(name));
        if let Some(name) = name.filter(|_| !is_text) {
            out.push(b'"');
            out.extend_from_slice(name);
            out.push(b'"');
            at += name.len();
            continue;
        }
        let length = if is_text && byte == b'\\' { 2 } else { 1 };
        is_text ^= byte == b'"';
        out.extend(rest.iter().take(length));
        at += length;
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_python_writes_is_read() {
        let json = "\u{feff}{\"a\": [0.0, Infinity], \"b\": -Infinity, \"NaN\": NaN, \"c\": \"an \\\" Infinity\", \"d\": 1}";
        let read: Value = from_slice(json.as_bytes()).expect("JSON");
        let expected = json!({
            "a": [0.0, "Infinity"], "b": "-Infinity", "NaN": "NaN", "c": "an \" Infinity", "d": 1,
        });
        assert_eq!(read, expected);
        for broken in ["{\"a\": Infinitely}", "{\"a\": \"Infinity", "Na"] {
            assert!(from_slice::<Value>(broken.as_bytes()).is_err(), "{broken}");
        }
    }
}
