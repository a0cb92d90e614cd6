//! What the pipeline needs of the tokens before a position: how often each was seen, and the state of the grammar.

use std::collections::HashMap;

use crate::TokenId;
use crate::constraint::Constraint;
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
/// on the path to the position; and the constraint that output and draft tokens must follow. Empty, and free, where there is
/// neither.
///
/// It may be kept from round to round: [`History::follow`] takes back what was refused and counts what is new.
#[derive(Clone, Debug, Default)]
pub struct History {
    counting: bool,
    /// Tokens in the order they were first seen, some of them not seen any more.
    seen: Vec<(TokenId, Seen)>,
    /// Where each token stands there.
    index: HashMap<TokenId, u32>,
    /// Output and draft tokens counted.
    counted: Vec<TokenId>,
    constraint: Option<Box<dyn Constraint>>,
}

impl History {
    /// The history after `prompt` and `output`.
    pub fn new(params: &SamplingParams, prompt: &[TokenId], output: &[TokenId]) -> Self {
        let mut history = Self {
            counting: params.uses_history(),
            ..Self::default()
        };
        if history.counting {
            for &token in prompt {
                history.entry(token).in_prompt = true;
            }
        }
        history.follow(output);
        history
    }

    /// Puts the output under `constraint`, which is at its beginning; of a history before any output.
    #[must_use]
    pub fn under(mut self, constraint: Option<Box<dyn Constraint>>) -> Self {
        self.constraint = constraint;
        self
    }

    /// Returns the constraint at this position, if there is one.
    pub fn constraint(&self) -> Option<&dyn Constraint> {
        self.constraint.as_deref()
    }

    /// Makes it the history after `output`, whatever was pushed before: only what differs is counted.
    pub fn follow(&mut self, output: &[TokenId]) {
        if !self.follows() {
            return;
        }
        let shared = (self.counted.iter().zip(output))
            .take_while(|(counted, token)| counted == token)
            .count();
        let taken_back = self.counted.split_off(shared);
        if let Some(constraint) = &mut self.constraint {
            constraint.pop(taken_back.len());
        }
        for token in taken_back {
            if self.counting {
                self.entry(token).in_output -= 1;
            }
        }
        for &token in &output[shared..] {
            self.push(token);
        }
    }

    /// Adds an output or draft token.
    pub fn push(&mut self, token: TokenId) {
        if self.counting {
            self.entry(token).in_output += 1;
        }
        if let Some(constraint) = &mut self.constraint {
            constraint.push(token);
        }
        if self.follows() {
            self.counted.push(token);
        }
    }

    /// Returns whether the history changes with the output.
    fn follows(&self) -> bool {
        self.counting || self.constraint.is_some()
    }

    pub(crate) fn seen(&self) -> impl Iterator<Item = (TokenId, Seen)> + '_ {
        let seen = self.seen.iter().copied();
        seen.filter(|(_, seen)| *seen != Seen::default())
    }

    fn entry(&mut self, token: TokenId) -> &mut Seen {
        let index = *self.index.entry(token).or_insert_with(|| {
            self.seen.push((token, Seen::default()));
            self.seen.len() as u32 - 1
        });
        &mut self.seen[index as usize].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(history: &History) -> Vec<(TokenId, Seen)> {
        let mut seen: Vec<_> = history.seen().collect();
        seen.sort_by_key(|&(token, _)| token);
        seen
    }

    #[test]
    fn a_history_that_follows_is_that_counted_anew() {
        let params = SamplingParams {
            presence_penalty: 0.5,
            ..Default::default()
        };
        let prompt = [1, 2, 2];
        let mut history = History::new(&params, &prompt, &[]);
        // Accepted, refused from the second on, begun anew, the same again.
        let outputs: [&[TokenId]; 6] = [&[3, 4], &[3, 5, 5, 1], &[7], &[], &[3, 5], &[3, 5]];
        for output in outputs {
            history.follow(output);
            assert_eq!(
                sorted(&history),
                sorted(&History::new(&params, &prompt, output))
            );
            // Drafts, of which the next round may keep some.
            history.push(5);
            history.push(9);
        }
        assert_eq!(history.counted, [3, 5, 5, 9]);
    }

    #[test]
    fn nothing_is_counted_without_a_penalty() {
        let mut history = History::new(&SamplingParams::default(), &[1], &[2]);
        history.push(3);
        assert_eq!(history.seen().count(), 0);
        assert!(history.counted.is_empty());
    }
}
