//! How often each token was seen, for the penalties of the pipeline.

use std::collections::HashMap;

use crate::TokenId;
use crate::sampling::SamplingParams;

/// Where one token was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Whether it stands in the prompt.
    pub(crate) in_prompt: bool,
    /// How often it stands in the output, drafted ancestors included.
    pub(crate) in_output: u32,
}

/// The tokens before a position, as the penalties count them: prompt, output and the draft tokens
/// on the path to the position. Empty, and free, when no penalty is set.
#[derive(Clone, Debug, Default)]
pub struct History {
    seen: HashMap<TokenId, Seen>,
    counting: bool,
}

impl History {
    /// The history after `prompt` and `output`.
    pub fn new(params: &SamplingParams, prompt: &[TokenId], output: &[TokenId]) -> Self {
        let mut history = Self {
            seen: HashMap::new(),
            counting: params.uses_history(),
        };
        if history.counting {
            for &token in prompt {
                history.seen.entry(token).or_default().in_prompt = true;
            }
            for &token in output {
                history.push(token);
            }
        }
        history
    }

    /// Adds an output or draft token.
    pub fn push(&mut self, token: TokenId) {
        if self.counting {
            self.seen.entry(token).or_default().in_output += 1;
        }
    }

    pub(crate) fn seen(&self) -> impl Iterator<Item = (TokenId, Seen)> + '_ {
        self.seen.iter().map(|(&token, &seen)| (token, seen))
    }
}
