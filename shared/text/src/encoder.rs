//! Tokenises a text piece by piece, and stops once it has more tokens than are wanted.

use std::collections::HashMap;

use tokenizers::{Encoding, Model, OffsetReferential, OffsetType, PreTokenizer, Token, Tokenizer};

use crate::cuts::Cuts;

/// Placeholder for the tokens of the text itself among the special tokens around them.
const OWN: u32 = u32::MAX;

/// Most words whose tokens are cached while a text is tokenised, and the most bytes of such a word.
const MAX_WORDS: usize = 4096;
const MAX_WORD_BYTES: usize = 32;

/// Most bytes of memory that tokenising takes for each byte of a piece. `tests/encoding_memory.rs` measures it.
pub const PIECE_FACTOR: u64 = 288;

/// Runs a tokenizer's steps on one piece of a text at a time, and keeps only the token ids. The tokenizers crate would
/// keep the string and the offsets of every token of the whole text.
#[derive(Debug)]
pub(crate) struct PieceEncoder {
    cuts: Cuts,
    /// The tokens around those of a text, without special tokens and with them.
    around: [Vec<u32>; 2],
}

/// A cache of the tokens of words, for one text.
type Words = HashMap<String, Vec<u32>>;

impl PieceEncoder {
    /// Creates the encoder of `tokenizer`.
    ///
    /// # Errors
    /// If the tokenizer's post-processor fails.
    pub(crate) fn of(tokenizer: &Tokenizer) -> tokenizers::Result<Self> {
        let around = |with_special| {
            let own = Encoding::from_tokens(vec![Token::new(OWN, String::new(), (0, 0))], 0);
            let around = tokenizer.post_process(own, None, with_special)?;
            tokenizers::Result::Ok(around.get_ids().to_vec())
        };
        Ok(Self {
            cuts: Cuts::of(tokenizer),
            around: [around(false)?, around(true)?],
        })
    }

    /// Returns the tokens of `text`, with special tokens around them if `with_special`. If there are more than `most`,
    /// it returns the first of them, and more than `most`.
    ///
    /// # Errors
    /// If the tokenizer cannot represent the text.
    pub(crate) fn encode(
        &self,
        tokenizer: &Tokenizer,
        text: &str,
        with_special: bool,
        most: usize,
    ) -> tokenizers::Result<Vec<u32>> {
        let mut own = Vec::new();
        let mut words = Words::new();
        for piece in self.cuts.pieces(text) {
            encode_piece(tokenizer, &text[piece.range], &mut words, &mut own, most)?;
            if own.len() > most {
                break;
            }
        }
        let around = &self.around[usize::from(with_special)];
        if around[..] == [OWN] {
            return Ok(own);
        }
        let mut tokens = Vec::with_capacity(around.len() + own.len());
        for &token in around {
            match token {
                OWN => tokens.extend_from_slice(&own),
                token => tokens.push(token),
            }
        }
        Ok(tokens)
    }

    /// Returns the most bytes of memory that encoding `text` takes, beside its tokens.
    pub(crate) fn bytes(&self, text: &str) -> u64 {
        let pieces = self.cuts.pieces(text);
        let longest = pieces.map(|piece| piece.range.len()).max();
        longest.unwrap_or_default() as u64 * PIECE_FACTOR
    }
}

fn encode_piece(
    tokenizer: &Tokenizer,
    piece: &str,
    words: &mut Words,
    tokens: &mut Vec<u32>,
    most: usize,
) -> tokenizers::Result<()> {
    let added = tokenizer.get_added_vocabulary();
    let mut splits = added.extract_and_normalize(tokenizer.get_normalizer(), piece);
    if let Some(pre_tokenizer) = tokenizer.get_pre_tokenizer() {
        pre_tokenizer.pre_tokenize(&mut splits)?;
    }
    let splits = splits.get_splits(OffsetReferential::Normalized, OffsetType::None);
    for (word, _, found) in splits {
        if tokens.len() > most {
            break;
        }
        if let Some(found) = found {
            tokens.extend(found.iter().map(|token| token.id));
        } else if let Some(known) = words.get(word) {
            tokens.extend_from_slice(known);
        } else {
            let begin = tokens.len();
            let encoded = tokenizer.get_model().tokenize(word)?;
            tokens.extend(encoded.into_iter().map(|token| token.id));
            if word.len() <= MAX_WORD_BYTES && words.len() < MAX_WORDS {
                words.insert(word.to_owned(), tokens[begin..].to_vec());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
