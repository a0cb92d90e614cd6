//! A model's tokens as the bytes they stand for.

use std::sync::Arc;

use llguidance::ParserFactory;
use quick_cache::sync::Cache;
use speculation::TokenId;
use text::ServedText;
use toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};

/// Most states of a grammar's lexer; each takes one to two kilobytes.
const MOST_STATES: usize = 20_000;

/// Most texts whose tokens are kept, since schemas force the same ones again and again, and longest of them, in bytes.
const KEPT: usize = 1_024;
const LONGEST_KEPT: usize = 256;

/// The trie of a vocabulary, and its tokenizer.
struct Environment {
    trie: TokTrie,
    text: Arc<ServedText>,
    kept: Cache<Vec<u8>, Vec<TokenId>>,
}

impl Environment {
    /// Returns the tokenizer's own tokens of `bytes`. Where `bytes` are no UTF-8, or the tokenizer's tokens decode to other
    /// bytes, the longest matching tokens are returned instead.
    fn tokens(&self, bytes: &[u8]) -> Vec<TokenId> {
        let own = std::str::from_utf8(bytes).ok().and_then(|text| {
            let tokens = self.text.tokens(text, false, usize::MAX).ok()?;
            (self.trie.decode(&tokens) == bytes).then_some(tokens)
        });
        own.unwrap_or_else(|| self.trie.greedy_tokenize(bytes))
    }
}

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    /// Returns true: of a text that must come, the tokenizer's own tokens are allowed and no others.
    fn tokenize_is_canonical(&self) -> bool {
        true
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        if let Some(tokens) = self.kept.get(bytes) {
            return tokens;
        }
        let tokens = self.tokens(bytes);
        if bytes.len() <= LONGEST_KEPT {
            self.kept.insert(bytes.to_vec(), tokens.clone());
        }
        tokens
    }
}

/// Returns what grammars are compiled with, for the vocabulary of `text`.
///
/// # Errors
/// If no token ends the output.
pub(crate) fn factory(
    text: Arc<ServedText>,
    vocab_size: u32,
    ends: &[TokenId],
) -> Result<ParserFactory, String> {
    let Some(&end) = ends.first() else {
        return Err("the model has no end token, by which a complete text could end".to_owned());
    };
    let words: Vec<Vec<u8>> = (0..vocab_size).map(|token| word(&text, token)).collect();
    let trie = TokTrie::from(&TokRxInfo::new(vocab_size, end), &words).with_eos_tokens(ends);
    let environment: TokEnv = Arc::new(Environment {
        trie,
        text,
        kept: Cache::new(KEPT),
    });
    let abilities = InferenceCapabilities::default();
    let slices = llguidance::earley::SlicedBiasComputer::general_slices();
    let factory = ParserFactory::new(&environment, abilities, &slices);
    let mut factory = factory.map_err(|error| error.to_string())?;
    factory.quiet();
    let limits = factory.limits_mut();
    limits.verbose_errors = false;
    limits.max_lexer_states = MOST_STATES;
    // Precomputing masks of very large regular expressions takes seconds.
    limits.precompute_large_lexemes = false;
    Ok(factory)
}

/// Returns the bytes of `token`; those of a special token are marked, since it stands for no text.
fn word(text: &ServedText, token: TokenId) -> Vec<u8> {
    let bytes = text.token_bytes(token);
    if !bytes.is_empty() && text.is_special(token) {
        return [&[TokTrie::SPECIAL_TOKEN_MARKER], &bytes[..]].concat();
    }
    bytes
}
