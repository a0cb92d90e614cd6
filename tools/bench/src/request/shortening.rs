//! The longest end of a prompt that has few enough tokens.

use std::num::NonZeroU32;

use anyhow::Context;

/// Searches the longest end of a text that fits, by halves; whoever counts tokens answers for each candidate.
#[derive(Debug)]
pub(crate) struct Shortening<'a> {
    text: &'a str,
    /// Where its characters begin, in bytes.
    starts: Vec<usize>,
    /// The end that begins with this character does not fit; none while nobody said so.
    too_long: Option<usize>,
    /// The end that begins with this character fits; none while nobody said so.
    fitting: Option<usize>,
}

impl<'a> Shortening<'a> {
    /// Begins with the whole text.
    pub(crate) fn of(text: &'a str) -> Self {
        let starts = text.char_indices().map(|(start, _)| start).collect();
        Self {
            text,
            starts,
            too_long: None,
            fitting: None,
        }
    }

    /// The character with which the next candidate begins.
    fn next(&self) -> Option<usize> {
        let last = self.starts.len().saturating_sub(1);
        match (self.too_long, self.fitting) {
            (None, None) => Some(0),
            (None, Some(_)) => None,
            (Some(long), None) => (long < last).then(|| last.min(long + (last - long).div_ceil(2))),
            (Some(long), Some(fitting)) => (long + 1 < fitting).then(|| long.midpoint(fitting)),
        }
    }

    fn end(&self, character: usize) -> &'a str {
        &self.text[self.starts.get(character).copied().unwrap_or_default()..]
    }

    /// Returns the end that is to be tried next; none when the longest is found.
    pub(crate) fn candidate(&self) -> Option<&'a str> {
        self.next().map(|character| self.end(character))
    }

    /// Takes the answer whether the candidate fits.
    pub(crate) fn answer(&mut self, fits: bool) {
        let tried = self.next();
        if fits {
            self.fitting = tried;
        } else {
            self.too_long = tried;
        }
    }

    /// Returns the longest end that fits into `most` tokens.
    ///
    /// # Errors
    /// If no character does.
    pub(crate) fn kept(&self, most: NonZeroU32) -> anyhow::Result<&'a str> {
        let end = self.fitting.map(|character| self.end(character));
        end.with_context(|| {
            format!(
                "--max-input: {most} tokens are too few for what stands around a prompt; allow more"
            )
        })
    }

    /// Returns the longest end that fits into `most` tokens, by `count`.
    ///
    /// # Errors
    /// As [`Shortening::kept`], and what `count` says.
    pub(crate) fn run(
        mut self,
        most: NonZeroU32,
        count: impl Fn(&str) -> anyhow::Result<usize>,
    ) -> anyhow::Result<&'a str> {
        while let Some(candidate) = self.candidate() {
            let fits = count(candidate)? <= most.get() as usize;
            self.answer(fits);
        }
        self.kept(most)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Keeps so many words of a text; returns how often they were counted, too.
    fn kept(text: &str, most: u32) -> (Result<&str, String>, u32) {
        let asked = Cell::new(0);
        let count = |text: &str| {
            asked.set(asked.get() + 1);
            // One for what stands around it.
            Ok(1 + text.split_whitespace().count())
        };
        let most = NonZeroU32::new(most).expect("above 0");
        let kept = Shortening::of(text).run(most, count);
        (kept.map_err(|error| error.to_string()), asked.get())
    }

    #[test]
    fn a_text_that_fits_is_kept_whole() {
        assert_eq!(kept("one two", 3), (Ok("one two"), 1));
        assert_eq!(kept("one two", 9), (Ok("one two"), 1));
    }

    #[test]
    fn of_a_longer_one_the_longest_end_that_fits_is_kept() {
        assert_eq!(kept("one two three", 2).0, Ok(" three"));
        assert_eq!(kept("eins zwölf drei", 3).0, Ok(" zwölf drei"));
        let long = format!("{}end", "ä ".repeat(5000));
        let (end, asked) = kept(&long, 4);
        assert_eq!(end, Ok(" ä ä end"));
        assert!(asked < 30, "{asked} counts");
    }

    #[test]
    fn where_nothing_fits_more_is_asked_for() {
        for text in ["one two", "x"] {
            let error = kept(text, 1).0.expect_err("refused");
            assert!(
                error.starts_with("--max-input: 1 tokens are too few"),
                "{error}"
            );
        }
    }
}
