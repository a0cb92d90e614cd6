//! What the user says, line by line.

use std::io::{self, BufRead};

/// A line of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Its text, without its end.
    Text(String),
    /// It is not UTF-8.
    NoText,
    /// There is none left.
    End,
}

impl Line {
    /// Reads the next line, to its end whatever is in it.
    pub(super) fn read(input: &mut impl BufRead) -> io::Result<Self> {
        let mut bytes = Vec::new();
        if input.read_until(b'\n', &mut bytes)? == 0 {
            return Ok(Self::End);
        }
        Ok(match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text.trim_end_matches(['\n', '\r']).to_owned()),
            Err(_) => Self::NoText,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_text_does_not_take_others_with_it() {
        let mut input = &b"one\r\n\xff\xfe two\nthree"[..];
        let mut lines = Vec::new();
        loop {
            match Line::read(&mut input).expect("bytes") {
                Line::End => break,
                line => lines.push(line),
            }
        }
        let text = |text: &str| Line::Text(text.to_owned());
        assert_eq!(lines, [text("one"), Line::NoText, text("three")]);
    }
}
