//! Stop strings, also where one is split over tokens.

/// Looks for the first of several stop strings in text that comes in pieces.
#[derive(Clone, Debug)]
pub(crate) struct StopMatcher {
    stops: Vec<String>,
    /// Text that may be the beginning of a stop string, not given out yet.
    held: String,
}

/// What became of a piece of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Released {
    /// Text that stands before any stop string.
    pub(crate) text: String,
    /// Whether a stop string was found; nothing after it is text.
    pub(crate) stopped: bool,
}

impl StopMatcher {
    /// A matcher for `stops`, none of which is empty.
    pub(crate) fn new(stops: Vec<String>) -> Self {
        Self {
            stops,
            held: String::new(),
        }
    }

    /// Takes the next piece of text.
    pub(crate) fn push(&mut self, piece: &str) -> Released {
        self.held.push_str(piece);
        if let Some(at) = self
            .stops
            .iter()
            .filter_map(|stop| self.held.find(stop))
            .min()
        {
            self.held.truncate(at);
            return Released {
                text: std::mem::take(&mut self.held),
                stopped: true,
            };
        }
        let open = self.longest_open_end();
        let rest = self.held.split_off(self.held.len() - open);
        Released {
            text: std::mem::replace(&mut self.held, rest),
            stopped: false,
        }
    }

    /// Returns what was held back, at the end of the text.
    pub(crate) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Length in bytes of the longest end of the held text that begins a stop string.
    fn longest_open_end(&self) -> usize {
        let ends = self.held.char_indices().map(|(at, _)| &self.held[at..]);
        let begins_a_stop = |end: &&str| self.stops.iter().any(|stop| stop.starts_with(*end));
        ends.filter(begins_a_stop).map(str::len).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], pieces: &[&str]) -> (String, bool) {
        let mut matcher = StopMatcher::new(stops.iter().map(|&stop| stop.to_owned()).collect());
        let mut text = String::new();
        for piece in pieces {
            let released = matcher.push(piece);
            text.push_str(&released.text);
            if released.stopped {
                return (text, true);
            }
        }
        (text + &matcher.finish(), false)
    }

    #[test]
    fn the_first_stop_ends_the_text_however_it_is_split() {
        let whole = "one END two STOP three";
        for cut in 0..whole.len() {
            let (a, b) = whole.split_at(cut);
            assert_eq!(
                run(&["STOP", "END"], &[a, b]),
                ("one ".to_owned(), true),
                "cut at {cut}"
            );
        }
        let letters: Vec<String> = whole.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        assert_eq!(run(&["STOP"], &letters), ("one END two ".to_owned(), true));
    }

    #[test]
    fn what_only_looks_like_a_stop_comes_in_the_end() {
        assert_eq!(
            run(&["ENDE"], &["the END", "ING"]),
            ("the ENDING".to_owned(), false)
        );
        assert_eq!(run(&["ENDE"], &["the END"]), ("the END".to_owned(), false));
        assert_eq!(run(&[], &["a", "b"]), ("ab".to_owned(), false));
    }

    #[test]
    fn nothing_is_held_back_longer_than_it_must_be() {
        let mut matcher = StopMatcher::new(vec!["aab".to_owned()]);
        assert_eq!(matcher.push("xaaa").text, "xa");
        assert_eq!(matcher.push("c").text, "aac");
        // Characters are never cut.
        let mut matcher = StopMatcher::new(vec!["éé!".to_owned()]);
        assert_eq!(matcher.push("aéé").text, "a");
        assert_eq!(matcher.push("?").text, "éé?");
    }
}
