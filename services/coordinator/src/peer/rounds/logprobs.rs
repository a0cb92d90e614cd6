//! Log probabilities of consecutive tokens, of the output or of the prompt, on their way from verifier to client.

use std::ops::Range;

use wire::status::BadField;
use wire::{logprobs, v1};

use crate::admitted::AdmittedRequest;

/// Log probabilities of consecutive tokens.
#[derive(Debug, Default)]
pub(crate) struct OutputLogprobs {
    /// Number of tokens before them.
    from: usize,
    of_tokens: Vec<v1::TokenLogprobs>,
}

impl OutputLogprobs {
    /// Reads the log probabilities that a verifier sent for `tokens` tokens, which follow `from` others.
    ///
    /// # Errors
    /// If there is not what `request` wants of each of them.
    pub(super) fn read(
        of_tokens: Vec<v1::TokenLogprobs>,
        from: usize,
        tokens: usize,
        request: &AdmittedRequest,
    ) -> Result<Self, BadField> {
        logprobs::check(&of_tokens, request.logprobs, tokens, request.vocab_size)?;
        Ok(Self { from, of_tokens })
    }

    /// Takes those of the tokens `range`; none if it does not hold them all.
    pub(crate) fn take(&mut self, range: Range<usize>) -> Vec<v1::TokenLogprobs> {
        let Self { from, of_tokens } = std::mem::take(self);
        let last = (range.end.checked_sub(from)).filter(|&last| last <= of_tokens.len());
        let (Some(first), Some(last)) = (range.start.checked_sub(from), last) else {
            return Vec::new();
        };
        let held = of_tokens.into_iter().take(last).skip(first);
        held.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_gets_its_own() {
        let at = |logprob| v1::TokenLogprobs {
            logprob,
            ..Default::default()
        };
        let held = || OutputLogprobs {
            from: 5,
            of_tokens: [-1.0, -2.0, -3.0].map(at).into(),
        };
        assert_eq!(held().take(5..8), [-1.0, -2.0, -3.0].map(at));
        assert_eq!(held().take(5..7), [-1.0, -2.0].map(at));
        assert_eq!(held().take(6..7), [at(-2.0)]);
        for other in [4..6, 7..9, 5..9, 0..1] {
            assert_eq!(held().take(other), []);
        }
        assert_eq!(OutputLogprobs::default().take(3..4), []);
    }
}
