//! The vocabulary of a drafter without a model.

use model::bigram::BigramFile;
use wire::v1::PeerDescription;

/// What a drafter without a model must know of the models that it drafts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vocabulary {
    /// Number of token ids.
    pub(crate) size: u32,
    /// SHA-256 over the tokenizer's ids and bytes.
    pub(crate) fingerprint: Vec<u8>,
    /// Tokens that end a text.
    pub(crate) eos_token_ids: Vec<u32>,
}

impl Vocabulary {
    /// Returns the vocabulary that a table of bigrams is of.
    pub(crate) fn of_table(table: &BigramFile) -> Self {
        Self {
            size: table.vocab_size(),
            fingerprint: table.vocab_fingerprint.to_vec(),
            eos_token_ids: table.eos_token_ids.clone(),
        }
    }

    /// Returns the vocabulary of a target model that describes itself so.
    pub(crate) fn of_peer(target: &PeerDescription) -> Self {
        Self {
            size: target.vocab_size,
            fingerprint: target.vocab_fingerprint.clone(),
            eos_token_ids: target.eos_token_ids.clone(),
        }
    }
}
