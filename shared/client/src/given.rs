//! Keeps track of the parts of an answer that the caller has, so that a resumed answer gives out only new ones.

use wire::v1;
use wire::v1::output_part::Part;

/// A coordinator that was asked again with the seed of an answer gave other tokens than those given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the answer cannot go on after its loss: output token {position} is {}, and it was {given} before",
    .found.map_or_else(|| "missing".to_owned(), |found| found.to_string())
)]
pub struct OtherTokens {
    /// Position of the first output token that differs, from 0.
    pub position: usize,
    /// The token given out.
    pub given: u32,
    /// The token in its place; none if the output ends before it.
    pub found: Option<u32>,
}

/// The parts that were given out, and how many of them the present request has repeated.
#[derive(Debug, Default)]
pub(crate) struct GivenParts {
    tokens: Vec<u32>,
    /// Output tokens of the present request, at most as many as were given out.
    seen: usize,
    /// Tokens of the prompt.
    prompt: Tally,
    /// Bytes of text behind the last token.
    tail: Tally,
    /// Output tokens at the end of the last round that was reported.
    reported: u32,
    /// Whether the answer was asked for again.
    is_again: bool,
}

/// How many of something were given out, and how many the present request has brought.
#[derive(Debug, Default)]
struct Tally {
    given: usize,
    seen: usize,
}

impl Tally {
    /// Counts `new` more; how many of them were given out already.
    fn count(&mut self, new: usize) -> usize {
        let old = (self.given - self.seen).min(new);
        self.seen += new;
        self.given = self.given.max(self.seen);
        old
    }
}

impl GivenParts {
    /// Output tokens given out.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens.len()
    }

    /// The answer is asked for again, from its beginning.
    pub(crate) fn again(&mut self) {
        self.is_again = true;
        (self.seen, self.prompt.seen, self.tail.seen) = (0, 0, 0);
    }

    /// Removes from a part of the prompt the tokens that were given out; none if no other is left.
    pub(crate) fn prompt(&mut self, mut part: v1::PromptPart) -> Option<v1::PromptPart> {
        // The prompt's first token has no log probability.
        let without = usize::from(self.prompt.seen == 0);
        let old = self.prompt.count(part.token_ids.len());
        cut(&mut part.token_ids, old);
        cut(&mut part.logprobs, old.saturating_sub(without));
        (old == 0 || !part.token_ids.is_empty()).then_some(part)
    }

    /// Removes from a chunk the tokens that were given out; none if no other is left.
    ///
    /// # Errors
    /// [`OtherTokens`] if a token is not the one given out at its position.
    pub(crate) fn chunk(&mut self, mut chunk: v1::Chunk) -> Result<Option<v1::Chunk>, OtherTokens> {
        if chunk.token_ids.is_empty() {
            // Equal tokens have equal text, and it comes whole.
            return Ok((self.tail.count(1) == 0).then_some(chunk));
        }
        let left = &self.tokens[self.seen..];
        let old = left.len().min(chunk.token_ids.len());
        let other = (left.iter().zip(&chunk.token_ids)).position(|(given, found)| given != found);
        if let Some(offset) = other {
            return Err(OtherTokens {
                position: self.seen + offset,
                given: left[offset],
                found: Some(chunk.token_ids[offset]),
            });
        }
        self.seen += chunk.token_ids.len();
        if old > 0 {
            // Pieces hold calls and reasoning as they were written.
            let has_parts = !chunk.parts.is_empty() || chunk.text.is_empty();
            cut(&mut chunk.token_ids, old);
            cut(&mut chunk.origins, old);
            cut(&mut chunk.pieces, old);
            cut(&mut chunk.logprobs, old);
            let old = old as u32;
            chunk.parts.retain_mut(|part| {
                let is_new = part.token >= old;
                part.token = part.token.saturating_sub(old);
                is_new
            });
            chunk.text = if has_parts {
                let parts = chunk.parts.iter().filter_map(|part| match &part.part {
                    Some(Part::Content(text)) => Some(text.as_str()),
                    _ => None,
                });
                parts.collect()
            } else {
                chunk.pieces.concat()
            };
        }
        self.tokens.extend(&chunk.token_ids);
        Ok((!chunk.token_ids.is_empty()).then_some(chunk))
    }

    /// Returns whether the report of a round tells of tokens that no report before it told of.
    pub(crate) fn is_new(&mut self, round: &v1::RoundReport) -> bool {
        let end = round.base_len.saturating_add(round.emitted);
        let is_new = !self.is_again || end > self.reported;
        self.reported = self.reported.max(end);
        is_new
    }

    /// Checks that an answer which has come to its end holds all that was given out.
    ///
    /// # Errors
    /// [`OtherTokens`] if tokens are missing.
    pub(crate) fn check_end(&self) -> Result<(), OtherTokens> {
        match self.tokens.get(self.seen) {
            None => Ok(()),
            Some(&given) => Err(OtherTokens {
                position: self.seen,
                given,
                found: None,
            }),
        }
    }
}

/// Removes the first `count` items.
fn cut<T>(items: &mut Vec<T>, count: usize) {
    items.drain(..count.min(items.len()));
}

#[cfg(test)]
mod tests;
