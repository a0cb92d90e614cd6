//! White space beside marks.

/// White space at the ends of what is said: it is held back until something follows, and dropped beside marks.
#[derive(Debug, Default)]
pub(super) struct Spaced {
    pub(super) held: String,
    /// Whether a mark was the last thing that came.
    pub(super) is_behind_mark: bool,
}

impl Spaced {
    /// Takes what is said next, and returns what of it, and of what was held back, is settled.
    pub(super) fn say(&mut self, text: &str) -> String {
        let mut said = std::mem::take(&mut self.held) + text;
        if self.is_behind_mark {
            said.drain(..said.len() - said.trim_start().len());
        }
        self.held = said.split_off(said.trim_end().len());
        self.is_behind_mark &= said.is_empty();
        said
    }

    pub(super) fn at_mark(&mut self) {
        self.held.clear();
        self.is_behind_mark = true;
    }
}
