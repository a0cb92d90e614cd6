//! A position in an output under a grammar.

use std::fmt;
use std::sync::Arc;

use llguidance::Matcher;
use parking_lot::Mutex;
use speculation::TokenId;
use speculation::constraint::Constraint;

use crate::compile::in_one_line;

/// A grammar compiled for a vocabulary.
#[derive(Clone)]
pub struct Grammar(Arc<Mutex<Matcher>>);

impl Grammar {
    pub(crate) fn new(matcher: Matcher) -> Self {
        Self(Arc::new(Mutex::new(matcher)))
    }

    /// Returns whether it is the same as `other`, compiled once.
    #[cfg(test)]
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the grammar at the beginning of an output.
    pub fn start(&self) -> Box<dyn Constraint> {
        let matcher = self.0.lock().deep_clone();
        Box::new(GrammarState {
            matcher: Mutex::new(matcher),
            beyond: 0,
        })
    }
}

impl fmt::Debug for Grammar {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Grammar").finish_non_exhaustive()
    }
}

/// A grammar that follows an output.
struct GrammarState {
    /// The matcher after the tokens that the grammar allows. It caches what it computes of its position.
    matcher: Mutex<Matcher>,
    /// Number of tokens pushed since the first that the grammar does not allow, or since the end token, these included.
    beyond: usize,
}

impl Constraint for GrammarState {
    fn push(&mut self, token: TokenId) {
        let matcher = self.matcher.get_mut();
        let fits = self.beyond == 0
            && !ends_output(matcher, token)
            && matches!(matcher.try_consume_tokens(&[token]), Ok(1));
        self.beyond += usize::from(!fits);
    }

    fn pop(&mut self, tokens: usize) {
        let beyond = tokens.min(self.beyond);
        self.beyond -= beyond;
        if tokens > beyond {
            // If the rollback fails, the matcher returns that error for the next mask.
            let _ = self.matcher.get_mut().rollback(tokens - beyond);
        }
    }

    fn allowed(&self) -> Result<Option<Vec<u32>>, String> {
        let mut matcher = self.matcher.lock();
        if self.beyond > 0 {
            // A token that the matcher could not follow, though it may come, must not set the output free.
            let error = matcher.get_error();
            return error.map_or(Ok(None), |error| Err(in_one_line(&error)));
        }
        let mask = matcher.compute_mask_or_eos();
        let mask = mask.map_err(|error| in_one_line(&error.to_string()))?;
        Ok(Some(mask.as_slice().to_vec()))
    }

    fn fitting(&self, tokens: &[TokenId]) -> usize {
        if self.beyond > 0 {
            return 0;
        }
        let mut matcher = self.matcher.lock();
        if matcher.is_stopped() {
            let ends = |token: &TokenId| ends_output(&matcher, *token);
            let is_complete = matcher.stop_reason().is_ok();
            return usize::from(is_complete && tokens.first().is_some_and(ends));
        }
        matcher.validate_tokens(tokens).unwrap_or(0)
    }

    fn forced(&self) -> Vec<TokenId> {
        if self.beyond > 0 {
            return Vec::new();
        }
        self.matcher.lock().compute_ff_tokens()
    }

    fn boxed(&self) -> Box<dyn Constraint> {
        let matcher = self.matcher.lock().deep_clone();
        Box::new(Self {
            matcher: Mutex::new(matcher),
            beyond: self.beyond,
        })
    }
}

/// Returns whether `token` is an end token.
fn ends_output(matcher: &Matcher, token: TokenId) -> bool {
    let environment = matcher.tok_env();
    environment.is_ok_and(|it| it.tok_trie().eos_tokens().contains(&token))
}

impl fmt::Debug for GrammarState {
    /// Leaves the text of prompts and outputs out of logs.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("GrammarState")
            .field("beyond", &self.beyond)
            .finish_non_exhaustive()
    }
}
