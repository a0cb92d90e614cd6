//! Characters out of bytes that come one after another.

use std::str;

/// Puts UTF-8 characters together.
#[derive(Clone, Debug, Default)]
pub(super) struct Characters {
    /// The beginning of a character, at most three bytes.
    open: Vec<u8>,
}

impl Characters {
    /// The characters that `bytes` complete. What can never become a character, however it went on, is U+FFFD, one
    /// for each longest beginning of a character, as [`String::from_utf8_lossy`] has it.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.open.extend_from_slice(bytes);
        let mut text = String::new();
        let mut rest = self.open.as_slice();
        while let Err(error) = str::from_utf8(rest) {
            let (valid, invalid) = rest.split_at(error.valid_up_to());
            text.push_str(str::from_utf8(valid).unwrap_or_default());
            rest = invalid;
            let Some(len) = error.error_len() else {
                self.open = rest.to_vec();
                return text;
            };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &rest[len..];
        }
        text.push_str(str::from_utf8(rest).unwrap_or_default());
        self.open.clear();
        text
    }

    /// Returns what stands for a character that is not completed; empty if there is none.
    pub(super) fn finish(&mut self) -> &'static str {
        if self.open.is_empty() {
            return "";
        }
        self.open.clear();
        "\u{FFFD}"
    }
}
