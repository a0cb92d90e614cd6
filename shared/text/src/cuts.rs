//! Finds where a long text can be cut so that its pieces, tokenised one by one, have the tokens of the whole text.
//!
//! Tokenising takes many times the memory of its input, so long texts are tokenised in pieces. A tokenizer's
//! pre-tokenizer splits a text into words, and no token spans two words. So a text can be cut between two words, if the
//! tokenizer's description proves that it always splits there; for most tokenizers that is between a letter and a space.
//! A tokenizer whose description has steps that this module does not know gets the whole text.

mod expression;
mod steps;

use std::ops::Range;

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use serde_json::Value;
use tokenizers::models::bpe::BPE;
use tokenizers::{AddedToken, ModelWrapper, NormalizedString, Normalizer, Tokenizer};

use steps::{CutContext, MARK};

const SPACE: char = ' ';

/// Length of a piece in bytes; it ends at the first possible cut after that.
pub(crate) const PIECE_BYTES: usize = 16 << 10;

const ASCII_LETTERS: [(char, char); 2] = [('A', 'Z'), ('a', 'z')];

/// Ranges of letters that normalisation to NFC or NFKC does not change: Latin, Greek, Cyrillic, Hebrew, Arabic, Thai,
/// Japanese, Chinese and Korean.
const LETTERS: [(char, char); 20] = [
    ('A', 'Z'),
    ('a', 'z'),
    ('À', 'Ö'),
    ('Ø', 'ö'),
    ('ø', 'ı'),
    ('Ĵ', 'ķ'),
    ('Ĺ', 'ľ'),
    ('Ł', 'ň'),
    ('Ŋ', 'ž'),
    ('Α', 'Ρ'),
    ('Σ', 'Ω'),
    ('α', 'ω'),
    ('А', 'я'),
    ('א', 'ת'),
    ('ف', 'ي'),
    ('ก', 'ะ'),
    ('ぁ', 'ゖ'),
    ('ァ', 'ヺ'),
    ('一', '鿿'),
    ('가', '힣'),
];

/// The rules by which texts are cut for a tokenizer.
#[derive(Debug)]
pub(crate) struct Cuts {
    /// The places where the tokenizer always splits; `None` if its description does not prove any.
    sure: Option<CutContext>,
    /// Length of a piece in bytes; it ends at the first possible cut after that.
    piece_bytes: usize,
}

/// A piece of a text, and the byte at which the next piece begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextPiece {
    pub(crate) range: Range<usize>,
    pub(crate) next: usize,
}

impl Cuts {
    /// Derives the rules from the description of `tokenizer`.
    pub(crate) fn of(tokenizer: &Tokenizer) -> Self {
        Self {
            sure: sure(tokenizer),
            piece_bytes: PIECE_BYTES,
        }
    }

    /// Returns the pieces of `text`, in order.
    pub(crate) fn pieces<'a>(&'a self, text: &'a str) -> impl Iterator<Item = TextPiece> + 'a {
        let mut from = 0;
        std::iter::from_fn(move || {
            let piece = (from < text.len()).then(|| self.piece(text, from))?;
            from = piece.next;
            Some(piece)
        })
    }

    /// Returns the piece of `text` that begins at byte `from`.
    fn piece(&self, text: &str, from: usize) -> TextPiece {
        let end = self.end(text, from).unwrap_or(text.len());
        let skips = self.sure.as_ref().is_some_and(|sure| sure.prepends) && end < text.len();
        TextPiece {
            range: from..end,
            // The tokenizer prepends a mark to the next piece, which stands for this space.
            next: end + usize::from(skips),
        }
    }

    /// Returns the first possible cut of `text` that is at least the length of a piece after byte `from`.
    fn end(&self, text: &str, from: usize) -> Option<usize> {
        let sure = self.sure.as_ref()?;
        let ranges = ranges(sure.is_ascii);
        let is_letter = |c: char| {
            ranges
                .iter()
                .any(|&(first, last)| (first..=last).contains(&c))
        };
        let begin = (from + self.piece_bytes..text.len()).find(|&at| text.is_char_boundary(at))?;
        let mut letters = 0_usize;
        let mut chars = text[begin..].char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if letters > 1 && sure.right.contains(&c) {
                let next = chars.peek();
                // The tokenizer prepends no mark to an empty text, nor to an added token.
                if !sure.prepends || next.is_some_and(|&(_, next)| is_letter(next)) {
                    return Some(begin + at);
                }
            }
            letters = if is_letter(c) { letters + 1 } else { 0 };
        }
        None
    }
}

fn ranges(is_ascii: bool) -> &'static [(char, char)] {
    if is_ascii { &ASCII_LETTERS } else { &LETTERS }
}

fn letters(is_ascii: bool) -> ClassUnicode {
    let ranges = ranges(is_ascii).iter();
    ClassUnicode::new(ranges.map(|&(first, last)| ClassUnicodeRange::new(first, last)))
}

fn sure(tokenizer: &Tokenizer) -> Option<CutContext> {
    let json = |step: Option<Value>| step.unwrap_or(Value::Null);
    let normalizer = tokenizer.get_normalizer();
    let normalizer = json(normalizer.map(serde_json::to_value).transpose().ok()?);
    let pre_tokenizer = tokenizer.get_pre_tokenizer();
    let pre_tokenizer = json(pre_tokenizer.map(serde_json::to_value).transpose().ok()?);
    let mut around = CutContext::read(&normalizer, &pre_tokenizer)?;
    if !around.is_split {
        let ModelWrapper::BPE(model) = tokenizer.get_model() else {
            return None;
        };
        if around.space != MARK || !begin_with_marks(model) {
            return None;
        }
        around.right.retain(|&c| c == SPACE);
    }
    let added = tokenizer.get_added_tokens_decoder();
    let mut added = added.values();
    let is_sure = leaves_letters(tokenizer, &around)
        && added.all(|token| leaves_cuts(token, tokenizer, &around))
        && !around.right.is_empty();
    is_sure.then_some(around)
}

/// Returns whether marks are only at the beginning of each token of `model`, so that no merge spans two words.
fn begin_with_marks(model: &BPE) -> bool {
    let is_plain = model.dropout.is_none()
        && model.continuing_subword_prefix.is_none()
        && model.end_of_word_suffix.is_none()
        // With it, a whole text that is a token becomes that token, whatever the merges say.
        && !model.ignore_merges;
    let vocab = model.get_vocab();
    is_plain
        && vocab.contains_key(&MARK.to_string())
        && vocab
            .keys()
            .all(|name| !name.trim_start_matches(MARK).contains(MARK))
}

/// Returns `text` as the normaliser leaves it, unless it refuses it.
fn normalized(tokenizer: &Tokenizer, text: &str) -> Option<NormalizedString> {
    let mut normalized = NormalizedString::from(text);
    if let Some(normalizer) = tokenizer.get_normalizer() {
        normalizer.normalize(&mut normalized).ok()?;
    }
    Some(normalized)
}

/// Returns whether the normaliser leaves every ASCII letter a letter, also beside a space.
fn leaves_letters(tokenizer: &Tokenizer, around: &CutContext) -> bool {
    if tokenizer.get_normalizer().is_none() {
        return true;
    }
    let stay = |letter: u8| {
        let text = format!("{0}{0} {0}", char::from(letter));
        let Some(normalized) = normalized(tokenizer, &text) else {
            return false;
        };
        let mark = if around.prepends { "▁" } else { "" };
        let words = normalized.get().strip_prefix(mark).unwrap_or_default();
        let mut words: Vec<_> = words.split([SPACE, MARK]).collect();
        let last = words.pop().unwrap_or_default();
        let is_letter = last.len() == 1 && last.chars().all(|c| c.is_ascii_alphabetic());
        is_letter && words == [last.repeat(2)]
    };
    (b'a'..=b'z').chain(b'A'..=b'Z').all(stay)
}

/// Returns whether the added token `token` is found in the pieces of a text wherever it is found in the whole text.
fn leaves_cuts(token: &AddedToken, tokenizer: &Tokenizer, around: &CutContext) -> bool {
    let Some(normalized) = normalized(tokenizer, &token.content) else {
        return false;
    };
    // Added tokens that are not `normalized` are searched for before the text is normalised.
    let normalized = token.normalized.then(|| normalized.get());
    std::iter::once(token.content.as_str())
        .chain(normalized)
        .all(|name| {
            let is_right = |c: char| around.right.contains(&c) || c == around.space;
            let mut pairs = name.chars().zip(name.chars().skip(1));
            let begins = |is: &dyn Fn(char) -> bool| name.chars().next().is_some_and(is);
            let ends_with_letter = name.chars().next_back().is_some_and(char::is_alphabetic);
            let changes = pairs.any(|(left, right)| left.is_alphabetic() && is_right(right))
                || token.rstrip && ends_with_letter
                || token.single_word && begins(&is_right)
                || around.prepends && (begins(&is_right) || begins(&char::is_alphabetic));
            !changes
        })
}

#[cfg(test)]
mod tests;
