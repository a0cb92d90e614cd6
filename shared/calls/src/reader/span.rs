//! Where a JSON value ends that comes character by character. It is not checked: what is no JSON shows where a character
//! stands outside of texts that no JSON has there.

/// The value so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JsonSpan {
    depth: u32,
    in_text: bool,
    is_escaped: bool,
    /// Whether it is a number, true, false or null.
    is_scalar: bool,
}

/// What the next character is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpanStep {
    /// A part of the value.
    Inside,
    /// Its last character.
    Last,
    /// The first one behind it.
    Behind,
    /// None that JSON has there.
    Broken,
}

impl JsonSpan {
    /// Begins a value with its first character.
    pub(super) fn begin(first: char) -> Option<Self> {
        let begun = Self::default();
        match first {
            '{' | '[' => Some(Self { depth: 1, ..begun }),
            '"' => Some(Self {
                in_text: true,
                ..begun
            }),
            '-' | '0'..='9' | 't' | 'f' | 'n' => Some(Self {
                is_scalar: true,
                ..begun
            }),
            _ => None,
        }
    }

    /// Takes the next character.
    pub(super) fn push(&mut self, next: char) -> SpanStep {
        if self.in_text {
            match next {
                _ if self.is_escaped => self.is_escaped = false,
                '\\' => self.is_escaped = true,
                '"' => {
                    self.in_text = false;
                    return if self.depth == 0 {
                        SpanStep::Last
                    } else {
                        SpanStep::Inside
                    };
                }
                _ => {}
            }
            return SpanStep::Inside;
        }
        match next {
            _ if self.is_scalar && !is_of_scalar(next) => return SpanStep::Behind,
            '"' => self.in_text = true,
            '{' | '[' => self.depth += 1,
            '}' | ']' => {
                self.depth -= 1;
                if self.depth == 0 {
                    return SpanStep::Last;
                }
            }
            ',' | ':' => {}
            _ if next.is_ascii_whitespace() || is_of_scalar(next) => {}
            _ => return SpanStep::Broken,
        }
        SpanStep::Inside
    }
}

fn is_of_scalar(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')
}

/// Returns the text that stands for `escaped` between quotes; none if it is no text of JSON.
pub(super) fn unescaped(escaped: &str) -> Option<String> {
    serde_json::from_str(&format!("\"{escaped}\"")).ok()
}
