//! Max-Gram over prompt and output.

use speculation::TokenId;
use speculation::max_gram::{Bigram, MaxGram};

use super::Proposer;

/// Tokens indexed before other work on this thread has its turn: about a millisecond's worth.
const PIECE: usize = 4_096;

/// Proposes what followed the longest earlier match of the sequence's end. There is no table of bigrams: nothing is
/// proposed where there is nothing to copy.
pub(super) struct CopiedDrafts {
    index: MaxGram,
    none: Bigram,
}

impl CopiedDrafts {
    /// Returns the source of a sequence that is written from `source`, which is searched first; empty for a model without
    /// an encoder.
    pub(super) fn new(source: &[TokenId]) -> Self {
        Self {
            index: MaxGram::new(source),
            none: Bigram::default(),
        }
    }
}

impl Proposer for CopiedDrafts {
    fn name(&self) -> &'static str {
        "max-gram"
    }

    fn follow(&mut self, lead: &[TokenId], output: &[TokenId]) -> bool {
        let known = self.index.len();
        let (part, from) = match known.checked_sub(lead.len()) {
            Some(from) => (output, from),
            None => (lead, known),
        };
        let new = &part[from.min(part.len())..];
        self.index.append(&new[..new.len().min(PIECE)]);
        self.index.len() < lead.len() + output.len()
    }

    fn propose(&mut self, most: usize) -> Vec<(TokenId, f32)> {
        let mut survival = 1.0;
        let proposed = self.index.propose_sure(most, &self.none).into_iter();
        let proposed = proposed.map(|sure| {
            survival *= sure.chance;
            (sure.id, survival as f32)
        });
        proposed.collect()
    }
}
