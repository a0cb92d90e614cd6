//! Marks in text that comes in pieces.

use super::TextEnd;

/// What stands in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A mark, and the byte at which it begins.
    Mark { at: usize, mark: &'static str },
    /// None; the bytes that cannot become a part of one.
    None { settled: usize },
}

/// Finds the first of `marks` in `text`.
pub(super) fn find(text: &str, marks: &[&'static str], end: TextEnd) -> Found {
    let found = marks
        .iter()
        .filter_map(|&mark| Some((text.find(mark)?, mark)));
    if let Some((at, mark)) = found.min_by_key(|(at, _)| *at) {
        return Found::Mark { at, mark };
    }
    let held = if end == TextEnd::Open {
        open_end(text, marks)
    } else {
        0
    };
    Found::None {
        settled: text.len() - held,
    }
}

/// Returns the length in bytes of the longest end of `text` that begins one of `marks`.
pub(super) fn open_end(text: &str, marks: &[&str]) -> usize {
    let longest = marks.iter().map(|mark| mark.len()).max().unwrap_or(0);
    let from = text.floor_char_boundary(text.len().saturating_sub(longest));
    let ends = text[from..]
        .char_indices()
        .map(|(at, _)| &text[from + at..]);
    let begins_a_mark = |end: &&str| marks.iter().any(|mark| mark.starts_with(*end));
    ends.filter(begins_a_mark).map(str::len).max().unwrap_or(0)
}

/// What a text begins with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    Mark(&'static str),
    /// The beginning of a mark, perhaps.
    Unknown,
    Other,
}

/// Returns which of `marks` stands at the beginning of `text`.
pub(super) fn beginning(text: &str, marks: &[&'static str], end: TextEnd) -> Beginning {
    match marks.iter().find(|mark| text.starts_with(**mark)) {
        Some(mark) => Beginning::Mark(mark),
        None if end == TextEnd::Open && marks.iter().any(|mark| mark.starts_with(text)) => {
            Beginning::Unknown
        }
        None => Beginning::Other,
    }
}
