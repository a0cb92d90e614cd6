//! Log probabilities of the tokens that a block emits, and of the prompt's.

use peer::RoundError;
use speculation::logprobs::{LogitsRow, TokenLogprobs};
use speculation::pipeline::DistributionError;
use speculation::verification::Verdict;

use crate::scoring::{Block, Judge};

/// A block whose verdict comes with log probabilities, if the session wants them: one for each emitted token.
pub(crate) struct WithLogprobs<J>(pub(crate) J);

impl<J: Judge<Verdict = Verdict>> Judge for WithLogprobs<J> {
    type Verdict = (Verdict, Vec<TokenLogprobs>);

    fn judge(
        &mut self,
        block: &mut Block,
        (rows, row_len): (&mut [f32], usize),
    ) -> Result<Self::Verdict, RoundError> {
        let Some(top) = block.spec.logprobs else {
            return Ok((self.0.judge(block, (rows, row_len))?, Vec::new()));
        };
        let vocab_size = block.spec.vocab_size as usize;
        // Deciding turns the logits into distributions, in place.
        let logits = rows.to_vec();
        let verdict = self.0.judge(block, (rows, row_len))?;
        // After the output, then after each accepted node.
        let after = std::iter::once(0).chain(verdict.path.iter().map(|&node| node as usize + 1));
        let mut order = Vec::new();
        let emitted = after.zip(&verdict.emitted).map(|(row, &token)| {
            let logits = &logits[row * row_len..][..vocab_size];
            of(logits, token, top, &mut order)
        });
        let logprobs = emitted.collect::<Result<_, _>>()?;
        Ok((verdict, logprobs))
    }

    fn parents(&self) -> &[Option<u32>] {
        self.0.parents()
    }

    fn kept(&self) -> &[u32] {
        self.0.kept()
    }
}

/// The log probabilities of `token` and the `top` most likely ones, from `logits` (vocab). `order` is scratch.
pub(crate) fn of(
    logits: &[f32],
    token: u32,
    top: u32,
    order: &mut Vec<u32>,
) -> Result<TokenLogprobs, DistributionError> {
    // Bans may have hidden a row without any support of its own.
    let row = LogitsRow::of(logits).ok_or(DistributionError::NoSupport)?;
    Ok(row.logprobs(token, top as usize, order))
}

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
        let scored =
            scored.map(|(logits, &token)| of(&logits[..vocab_size], token, top, &mut order));
        Ok(scored.collect::<Result<_, _>>()?)
    }
}
