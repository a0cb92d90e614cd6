//! Prompts of random words, of a length that the server counts.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Words that most vocabularies have as one token.
const WORDS: [&str; 64] = [
    "the", "time", "people", "water", "house", "day", "city", "light", "work", "year", "hand",
    "world", "school", "door", "night", "road", "small", "green", "old", "new", "long", "open",
    "white", "first", "after", "before", "under", "over", "near", "far", "good", "high", "low",
    "early", "late", "river", "field", "tree", "stone", "wind", "voice", "paper", "table",
    "window", "music", "story", "number", "letter", "garden", "summer", "winter", "morning",
    "king", "ship", "horse", "bread", "fire", "snow", "bird", "glass", "gold", "earth", "name",
    "word",
];

/// Makes prompts that have no beginning in common, so that a server which keeps what it computed computes each anew.
#[derive(Clone, Copy, Debug)]
pub(super) struct SyntheticPrompts {
    /// Words of each.
    pub(super) words: usize,
    pub(super) seed: u64,
}

impl SyntheticPrompts {
    /// Returns the prompt of this number: the same for the same seed.
    pub(super) fn prompt(&self, number: u64) -> String {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(number);
        let words = (0..self.words).map(|_| WORDS[random.random_range(0..WORDS.len())]);
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Words of a prompt, and the tokens that the server counted.
pub(super) type CountedPrompt = (usize, u32);

/// Returns how many words make `tokens`, after two prompts that were counted: each has the tokens that a chat template
/// and the like add, and so many for each word.
pub(super) fn words_of(tokens: u32, short: CountedPrompt, long: CountedPrompt) -> usize {
    let words = (long.0 - short.0) as f64;
    let per_word = (f64::from(long.1) - f64::from(short.1)) / words;
    if per_word <= 0.0 {
        // It counts something else.
        return tokens as usize;
    }
    let added = f64::from(short.1) - per_word * short.0 as f64;
    let words = (f64::from(tokens) - added) / per_word;
    words.round().max(1.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_repeat_by_seed_and_differ_from_their_beginnings() {
        let prompts = SyntheticPrompts { words: 40, seed: 3 };
        assert_eq!(prompts.prompt(5), prompts.prompt(5));
        assert_eq!(prompts.prompt(5).split(' ').count(), 40);
        let other = SyntheticPrompts { words: 40, seed: 4 };
        assert_ne!(prompts.prompt(5), other.prompt(5));
        let mut beginnings: Vec<String> = (0..100)
            .map(|number| {
                let prompt = prompts.prompt(number);
                prompt.split(' ').take(8).collect()
            })
            .collect();
        beginnings.sort();
        beginnings.dedup();
        assert_eq!(beginnings.len(), 100);
    }

    #[test]
    fn words_are_as_many_as_make_the_tokens() {
        // A template of 12 tokens, and 1.5 a word.
        assert_eq!(words_of(312, (8, 24), (64, 108)), 200);
        assert_eq!(words_of(5, (8, 24), (64, 108)), 1);
        assert_eq!(words_of(300, (8, 0), (64, 0)), 300);
    }
}
