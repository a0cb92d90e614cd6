//! Constructs of Python's Jinja2 that the template engine does not parse, written in those that it does.
//!
//! - `{% generation %}`, by which transformers marks what an assistant said, is a block with a scope of its own.
//! - `'…' % value` becomes a filter, as does every `%` that follows a literal text.
//! - `\U0001F600` in a literal text becomes the character, and a backslash at a line's end goes with the line break.
//!
//! Line breaks within tags stay where they are, so that the lines of errors are those of the template.

use std::ops::Range;

/// The filter that `%` after a literal text becomes.
pub(super) const PERCENT: &str = "percent_format";

/// Returns `source` in the engine's dialect.
pub(super) fn translated(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = next_opening(rest) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (opening, inner) = rest.split_at(2);
        let length = if opening == "{#" {
            inner.find("#}").map_or(inner.len(), |end| end + 2)
        } else {
            let closing = if opening == "{{" { "}}" } else { "%}" };
            let tag = TagTokens::read(inner, closing);
            if opening == "{{" || tag.first_word() != "raw" {
                out.push_str(opening);
                tag.write(&mut out, opening == "{%");
                rest = &inner[tag.length..];
                continue;
            }
            raw_end(inner)
        };
        out.push_str(opening);
        out.push_str(&inner[..length]);
        rest = &inner[length..];
    }
    out.push_str(rest);
    out
}

fn next_opening(text: &str) -> Option<usize> {
    let mut braces = text.match_indices('{').map(|(at, _)| at);
    braces.find(|&at| matches!(text.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#')))
}

/// Returns where the tag that ends a `raw` block ends, in what follows the `{%` that begins it.
fn raw_end(inner: &str) -> usize {
    let mut from = 0;
    while let Some(at) = inner[from..].find("{%") {
        from += at + 2;
        let tag = TagTokens::read(&inner[from..], "%}");
        if tag.first_word() == "endraw" {
            return from + tag.length;
        }
    }
    inner.len()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    Space,
    /// A name or a number.
    Word,
    Text,
    Sign,
}

/// The tokens of one tag, up to its end.
struct TagTokens<'a> {
    tokens: Vec<(TokenKind, &'a str)>,
    /// Bytes up to the end of the tag, with what closes it.
    length: usize,
}

impl<'a> TagTokens<'a> {
    fn read(inner: &'a str, closing: &str) -> Self {
        let mut tokens = Vec::new();
        let (mut at, mut depth) = (0, 0_usize);
        while at < inner.len() {
            let rest = &inner[at..];
            if depth == 0 && rest.starts_with(closing) {
                tokens.push((TokenKind::Sign, &rest[..closing.len()]));
                at += closing.len();
                break;
            }
            let first = rest.chars().next().unwrap_or_default();
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let until = |ends: &dyn Fn(char) -> bool| rest.find(ends).unwrap_or(rest.len());
            let (kind, length) = match first {
                '\'' | '"' => (TokenKind::Text, text_length(rest, first)),
                c if c.is_whitespace() => (TokenKind::Space, until(&|c| !c.is_whitespace())),
                c if is_word(c) => (TokenKind::Word, until(&|c| !is_word(c))),
                c => (TokenKind::Sign, c.len_utf8()),
            };
            match first {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            tokens.push((kind, &rest[..length]));
            at += length;
        }
        Self { tokens, length: at }
    }

    fn first_word(&self) -> &'a str {
        let word = self
            .tokens
            .iter()
            .find(|(kind, _)| *kind == TokenKind::Word);
        word.map_or("", |(_, word)| word)
    }

    /// Writes the tokens; `is_block` if they are of a `{% … %}`.
    fn write(&self, out: &mut String, is_block: bool) {
        let tokens = &self.tokens;
        let tag = if is_block { self.first_word() } else { "" };
        let mut is_first_word = true;
        let mut at = 0;
        while at < tokens.len() {
            let (kind, token) = tokens[at];
            match kind {
                TokenKind::Word if is_first_word => {
                    is_first_word = false;
                    out.push_str(match tag {
                        "generation" => "with",
                        "endgeneration" => "endwith",
                        _ => token,
                    });
                }
                TokenKind::Text => write_text(token, out),
                TokenKind::Sign if token == "%" && self.follows_text(at) => {
                    let operand = self.operand(at + 1);
                    let end = operand.end;
                    out.push('|');
                    out.push_str(PERCENT);
                    out.push('(');
                    let operand = Self {
                        tokens: tokens[operand].to_vec(),
                        length: 0,
                    };
                    operand.write(out, false);
                    out.push(')');
                    at = end;
                    continue;
                }
                _ => out.push_str(token),
            }
            at += 1;
        }
    }

    fn follows_text(&self, at: usize) -> bool {
        let mut before = self.tokens[..at].iter().rev();
        let before = before.find(|(kind, _)| *kind != TokenKind::Space);
        before.is_some_and(|(kind, _)| *kind == TokenKind::Text)
    }

    /// Returns the tokens from `from` on that are the right side of a `%`: a value with its attributes, items, calls and
    /// filters, and the space before it.
    fn operand(&self, from: usize) -> Range<usize> {
        let mut at = self.past_space(from);
        while matches!(self.tokens.get(at), Some((TokenKind::Sign, "-" | "+"))) {
            at = self.past_space(at + 1);
        }
        at = self.past_group(at);
        loop {
            let next = self.past_space(at);
            at = match self.tokens.get(next) {
                Some((TokenKind::Sign, "(" | "[")) => self.past_group(next),
                Some((TokenKind::Sign, "." | "|")) => self.past_space(next + 1) + 1,
                _ => break,
            };
        }
        from..at.min(self.tokens.len())
    }

    fn past_space(&self, mut at: usize) -> usize {
        while matches!(self.tokens.get(at), Some((TokenKind::Space, _))) {
            at += 1;
        }
        at
    }

    /// Returns the place after the token at `at`, or after what closes it if it opens a group.
    fn past_group(&self, at: usize) -> usize {
        let mut depth = 0_usize;
        for (place, (_, token)) in self.tokens.iter().enumerate().skip(at) {
            match *token {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return place + 1;
            }
        }
        self.tokens.len()
    }
}

/// Returns the bytes of the literal text that `rest` begins with, with both of its quotes.
fn text_length(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// Writes a literal text with its quotes.
fn write_text(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at..];
        let long = escape.get(2..10).filter(|_| escape.starts_with("\\U"));
        let character = long
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .and_then(char::from_u32);
        rest = if let Some(character) = character {
            out.push(character);
            &escape[10..]
        } else if let Some(rest) = escape.strip_prefix("\\\n") {
            rest
        } else {
            let length = 1 + escape.chars().nth(1).map_or(0, char::len_utf8);
            out.push_str(&escape[..length]);
            &escape[length..]
        };
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests;
