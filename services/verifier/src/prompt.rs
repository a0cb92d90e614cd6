//! Log probabilities of the prompt's tokens.

use peer::RoundError;
use speculation::logprobs::TokenLogprobs;

use crate::logprobs;
use crate::scoring::{Block, Judge};

/// Computes the log probabilities of prompt tokens from position `first` on; each comes from the row of the token before
/// it.
pub(crate) struct OfPrompt {
    pub(crate) first: usize,
}

impl Judge for OfPrompt {
    type Verdict = Vec<TokenLogprobs>;

    fn judge(
        &mut self,
        block: &mut Block,
        (rows, row_len): (&mut [f32], usize),
    ) -> Result<Vec<TokenLogprobs>, RoundError> {
        let vocab_size = block.spec.vocab_size as usize;
        let top = block.spec.logprobs.unwrap_or(0);
        let mut order = Vec::new();
        let tokens = block.spec.lead()[self.first..].iter();
        let scored = rows.chunks_exact(row_len).zip(tokens);
        let scored = scored
            .map(|(logits, &token)| logprobs::of(&logits[..vocab_size], token, top, &mut order));
        Ok(scored.collect::<Result<_, _>>()?)
    }
}
