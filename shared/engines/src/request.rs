//! What is asked of an engine: rows of several sequences.

use speculation::TokenId;

use crate::error::ScoringError;

/// Rows to be scored in one call.
#[derive(Clone, Copy, Debug)]
pub struct ScoreRequest<'a> {
    /// The sequences, in any order.
    pub sequences: &'a [ScoredSequence<'a>],
    /// K: how many most likely tokens are wanted of each row. More than the vocabulary has is the whole row.
    pub top: usize,
}

/// One sequence, of which the rows after its last committed token and after each draft token are scored.
#[derive(Clone, Copy, Debug)]
pub struct ScoredSequence<'a> {
    /// Committed tokens, prompt included, then draft tokens.
    pub tokens: &'a [TokenId],
    /// How many of them are committed; at least 1.
    pub committed: usize,
    /// The tokens whose log probability is wanted of each row (rows), in any order; none twice in a row.
    pub asked: &'a [Vec<TokenId>],
    /// Separates sequences in the engine's prefix cache: entries are reused only for sequences of the same salt, if the
    /// engine supports that. Sequences with an empty salt are not separated.
    pub salt: &'a str,
}

impl ScoredSequence<'_> {
    /// Returns the number of rows: one after the last committed token and one after each draft token.
    pub fn rows(&self) -> usize {
        self.tokens.len() + 1 - self.committed
    }

    /// Returns the tokens that any row asks for, ascending: what is asked of each row where an engine takes one list for all.
    pub fn union(&self) -> Vec<TokenId> {
        let mut ids: Vec<TokenId> = self.asked.iter().flatten().copied().collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

impl ScoreRequest<'_> {
    /// Checks that an engine with `vocab_size` tokens and a context of `context_len` can be asked for this.
    ///
    /// # Errors
    /// Names what is out of range.
    pub fn check(&self, vocab_size: usize, context_len: usize) -> Result<(), ScoringError> {
        let require = |fits: bool, problem| {
            if fits {
                Ok(())
            } else {
                Err(ScoringError::Request(problem))
            }
        };
        require(!self.sequences.is_empty(), "there is no sequence")?;
        let is_known = |token: &TokenId| (*token as usize) < vocab_size;
        for sequence in self.sequences {
            let committed = 1..=sequence.tokens.len();
            require(
                committed.contains(&sequence.committed),
                "a sequence has no committed token, or more of them than tokens",
            )?;
            require(
                sequence.asked.len() == sequence.rows(),
                "tokens are asked of another number of rows than there are",
            )?;
            // One token more must fit: the one that a request generates or ends with.
            require(
                sequence.tokens.len() < context_len,
                "a sequence is longer than the engine's context",
            )?;
            let all = sequence
                .tokens
                .iter()
                .chain(sequence.asked.iter().flatten());
            require(
                all.into_iter().all(is_known),
                "a token is outside of the engine's vocabulary",
            )?;
        }
        Ok(())
    }

    /// Returns the number of rows of all sequences.
    pub fn rows(&self) -> usize {
        self.sequences.iter().map(ScoredSequence::rows).sum()
    }

    /// Returns the most entries that any row has, tokens asked for included, where a sequence's lists are asked of each row.
    pub(crate) fn entries(&self, vocab_size: usize) -> usize {
        let asked = self.sequences.iter().map(|sequence| {
            let asked: usize = sequence.asked.iter().map(Vec::len).sum();
            asked * sequence.rows()
        });
        self.top.min(vocab_size) * self.rows() + asked.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_asked_is_refused_before_it_is_sent() {
        let asked = [vec![3], vec![4, 1]];
        let sequence = ScoredSequence {
            tokens: &[1, 2, 3],
            committed: 2,
            asked: &asked,
            salt: "",
        };
        let check = |sequence: ScoredSequence<'_>, vocab_size, context_len| {
            let scoring = ScoreRequest {
                sequences: &[sequence],
                top: 4,
            };
            scoring
                .check(vocab_size, context_len)
                .err()
                .map(|error| error.to_string())
        };
        assert_eq!(check(sequence, 5, 4), None);
        assert_eq!(sequence.union(), [1, 3, 4]);
        let refused = |sequence, vocab_size, context_len, part: &str| {
            let error = check(sequence, vocab_size, context_len).expect(part);
            assert!(error.contains(part), "{error}: {part}");
        };
        refused(sequence, 4, 4, "vocabulary");
        refused(sequence, 5, 3, "context");
        refused(
            ScoredSequence {
                committed: 0,
                ..sequence
            },
            5,
            4,
            "committed",
        );
        refused(
            ScoredSequence {
                committed: 4,
                ..sequence
            },
            5,
            4,
            "committed",
        );
        refused(
            ScoredSequence {
                committed: 1,
                ..sequence
            },
            5,
            4,
            "rows",
        );
        let none = ScoreRequest {
            sequences: &[],
            top: 4,
        };
        assert!(none.check(5, 4).is_err());
    }
}
