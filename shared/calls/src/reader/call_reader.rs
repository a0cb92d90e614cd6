//! What the readers of calls have in common.

use std::fmt::Debug;

use super::pieces::Pieces;

/// Reads what stands behind a mark that begins calls.
pub(super) trait CallReader: Debug + Send {
    /// Reads the text of `input` as far as it goes.
    fn read(&mut self, input: &mut CallText<'_>, out: &mut Pieces) -> Step;

    /// Takes a special token that is a mark.
    fn mark(&mut self, mark: &'static str, out: &mut Pieces) -> Step;

    /// Returns what the calls come to where the output ends.
    fn end(&mut self) -> Step;
}

/// The text that a reader sees, and what bounds it.
#[derive(Debug)]
pub(super) struct CallText<'a> {
    /// What was not read yet; what is read is taken away.
    pub(super) text: &'a mut String,
    /// The marks of the form that are text: those that begin calls, and those that end them.
    pub(super) opens: &'a [&'static str],
    /// See `opens`.
    pub(super) closes: &'a [&'static str],
    pub(super) end: TextEnd,
}

impl CallText<'_> {
    /// Takes the white space at the beginning.
    pub(super) fn take_space(&mut self) -> String {
        let space = self.text.len() - self.text.trim_start().len();
        self.take(space)
    }

    /// Takes the first `bytes`.
    pub(super) fn take(&mut self, bytes: usize) -> String {
        let rest = self.text.split_off(bytes);
        std::mem::replace(self.text, rest)
    }
}

/// What a reader of calls came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// More text is needed.
    Starved,
    /// The calls are over; what is left is content.
    Over,
    /// What was read since the mark is no call, but content.
    Broken(String),
}

/// What bounds the text that a reader sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextEnd {
    /// More will come.
    Open,
    /// A special token follows.
    Mark(&'static str),
    /// It is the output's end.
    Last,
}
