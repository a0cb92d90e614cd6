//! What an output must follow beside its distribution: a grammar says at each position which tokens may come.
//!
//! The tokens that may not come are masked in the row of logits, before anything else but bans, so the masked row is the
//! row: what is drawn, tested, and left over by a test is of the distribution under the constraint, and every verification
//! is exact for that.

use std::fmt::Debug;

use crate::TokenId;

/// A grammar as a request names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GrammarSpec {
    /// JSON that a schema describes, as JSON text.
    JsonSchema(String),
    /// Text that a regular expression matches as a whole.
    Regex(String),
    /// One of these texts.
    Choice(Vec<String>),
    /// Text of a context-free grammar, as Lark writes them.
    Lark(String),
}

impl GrammarSpec {
    /// Returns how long it is, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::JsonSchema(text) | Self::Regex(text) | Self::Lark(text) => text.len(),
            Self::Choice(texts) => texts.iter().map(String::len).sum(),
        }
    }
}

/// A constraint at a position of an output, which it follows token by token, forward and back.
pub trait Constraint: Debug + Send {
    /// Follows the output by one token, which may be a draft token. After a token that is not allowed, or that ends the
    /// output, every token is allowed.
    fn push(&mut self, token: TokenId);

    /// Takes back the last `tokens` tokens.
    fn pop(&mut self, tokens: usize);

    /// Returns the allowed next tokens as a bit set, 32 tokens a word, the lowest id in the lowest bit; none if every token is
    /// allowed.
    ///
    /// # Errors
    /// The grammar library's reason, if it cannot compute the set.
    fn allowed(&self) -> Result<Option<Vec<u32>>, String>;

    /// Returns the length of the longest prefix of `tokens` that is allowed here.
    fn fitting(&self, tokens: &[TokenId]) -> usize;

    /// Returns the tokens that must come next: those of the tokenizer, of a text that must come.
    fn forced(&self) -> Vec<TokenId>;

    /// Returns a copy at the same position.
    fn boxed(&self) -> Box<dyn Constraint>;
}

impl Clone for Box<dyn Constraint> {
    fn clone(&self) -> Self {
        self.boxed()
    }
}

/// Masks what is not `allowed` in a row of logits.
pub(crate) fn mask<F>(row: &mut [F], allowed: &[u32], masked: F)
where
    F: Copy,
{
    let words = allowed.iter().copied().chain(std::iter::repeat(0));
    for (logits, word) in row.chunks_mut(32).zip(words) {
        match word {
            u32::MAX => {}
            0 => logits.fill(masked),
            _ => {
                for (at, logit) in logits.iter_mut().enumerate() {
                    if word >> at & 1 == 0 {
                        *logit = masked;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_word_tells_of_is_masked() {
        let mut row: Vec<i32> = (0..100).collect();
        mask(&mut row, &[u32::MAX, 0b101], -1);
        let kept: Vec<i32> = row.into_iter().filter(|&kept| kept >= 0).collect();
        let expected: Vec<i32> = (0..32).chain([32, 34]).collect();
        assert_eq!(kept, expected);
    }
}
