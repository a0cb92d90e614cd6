//! Max-Gram over prompt and output.

use speculation::TokenId;
use speculation::max_gram::{Bigram, MaxGram};

use super::Proposer;

/// Tokens indexed before other work on this thread has its turn: about a millisecond's worth.
const PIECE: usize = 4_096;

/// Proposes what followed the longest earlier match of the sequence's end. There is no table of bigrams: nothing is
/// proposed where there is nothing to copy.
pub(super) struct CopiedDrafts(pub(super) MaxGram);

impl Proposer for CopiedDrafts {
    fn name(&self) -> &'static str {
        "max-gram"
    }

    fn follow(&mut self, lead: &[TokenId], output: &[TokenId]) -> bool {
        let new = lead.iter().chain(output).skip(self.0.len());
        self.0.append(&new.take(PIECE).copied().collect::<Vec<_>>());
        self.0.len() < lead.len() + output.len()
    }

    fn propose(&mut self, most: usize) -> Vec<(TokenId, f32)> {
        let (len, mut survival, mut proposed) = (self.0.len(), 1.0, Vec::new());
        // In a text that repeats itself only one period follows the match, so the search is repeated after each.
        while proposed.len() < most {
            let more = (self.0).propose_sure(most - proposed.len(), &Bigram::default());
            if more.is_empty() {
                break;
            }
            for sure in more {
                survival *= sure.chance;
                proposed.push((sure.id, survival as f32));
                self.0.push(sure.id);
            }
        }
        self.0.truncate(len);
        proposed
    }
}
