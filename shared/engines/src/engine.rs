//! What an engine over HTTP can do, how it is asked, and what it says of itself.

use std::fmt;
use std::time::Instant;

use speculation::TokenId;
use speculation::certificate::PartialRow;

use crate::error::ScoringError;
use crate::request::{ScoreRequest, ScoredSequence};

/// Which tokens' log probabilities can be asked for, beside the most likely ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    /// None.
    None,
    /// One list for all rows of a sequence.
    Shared,
    /// A list for each row.
    PerRow,
}

/// What an engine can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineCaps {
    /// Which tokens can be asked for.
    pub ids: Ids,
    /// Whether keys and values of a sequence's committed tokens are kept between requests. Without, a request reads
    /// the whole sequence, and its answer may hold a row for each of its tokens.
    pub keeps_cache: bool,
    /// Most sequences of one request.
    pub max_sequences: usize,
    /// Whether sequences of different salts share no entries of the prefix cache, so that the time of an answer reveals
    /// nothing of other tenants' prompts.
    pub parts_tenants: bool,
}

/// The sizes of the model that an engine serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelSizes {
    /// Length of a row, in tokens.
    pub vocab_size: usize,
    /// Longest sequence and the tokens that must follow it in a request, in tokens.
    pub context_len: usize,
}

/// What an engine returns of a sequence.
#[derive(Clone, Debug)]
pub struct ScoredRows {
    /// The first after its last committed token, then one after each draft token.
    pub rows: Vec<PartialRow>,
    /// How many of its tokens the engine did not compute, for its prefix cache held them; 0 where it does not say.
    pub cached_tokens: usize,
}

/// An engine that scores tokens.
pub trait ScoringEngine: fmt::Debug + Send + Sync {
    /// Returns what it can do.
    fn caps(&self) -> EngineCaps;

    /// Returns the rows of each sequence, in the order of the request. Each row knows the most likely tokens wanted and all
    /// that were asked of it; it may know more.
    ///
    /// # Errors
    /// If the engine cannot do it, does not answer before `deadline`, or answers anything but what was asked.
    fn score(
        &self,
        request: &ScoreRequest<'_>,
        deadline: Instant,
    ) -> Result<Vec<ScoredRows>, ScoringError>;

    /// Returns the row after `tokens`, which knows the `top` most likely tokens and those that are `asked`.
    ///
    /// # Errors
    /// As [`Self::score`].
    fn row_after(
        &self,
        tokens: &[TokenId],
        top: usize,
        asked: &[TokenId],
        deadline: Instant,
    ) -> Result<PartialRow, ScoringError> {
        let sequence = ScoredSequence {
            tokens,
            committed: tokens.len(),
            asked: &[asked.to_vec()],
            salt: "",
        };
        let request = ScoreRequest {
            sequences: &[sequence],
            top,
        };
        let scored = self.score(&request, deadline)?;
        let row = scored.into_iter().flat_map(|it| it.rows).next();
        row.ok_or(ScoringError::Answer("holds no row"))
    }

    /// Returns the engine's own tokens of `text`, with those that its tokenizer puts around it.
    ///
    /// # Errors
    /// As [`Self::score`].
    fn tokens_of(&self, text: &str, deadline: Instant) -> Result<Vec<TokenId>, ScoringError>;

    /// Asks the engine what it serves.
    ///
    /// # Errors
    /// If it does not before `deadline`.
    fn identity(&self, deadline: Instant) -> Result<EngineIdentity, ScoringError>;

    /// Checks that the engine says that it is well.
    ///
    /// # Errors
    /// If it does not before `deadline`.
    fn is_well(&self, deadline: Instant) -> Result<(), ScoringError>;
}

/// An engine that was asked what it is.
#[derive(Debug)]
pub struct Engine {
    /// What scores.
    pub scoring: Box<dyn ScoringEngine>,
    /// What it says of itself.
    pub identity: EngineIdentity,
}

/// What an engine says of itself. If it changes, another engine answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineIdentity {
    /// Name and version.
    pub version: String,
    /// What it calls the model.
    pub model: String,
    /// What its numbers depend on beside version and number format, as far as it says.
    pub fingerprint: String,
    /// Format of its numbers; empty where it does not say.
    pub dtype: String,
    /// Longest sequence that it scores, draft tokens included.
    pub longest: usize,
}

impl EngineIdentity {
    /// Describes the differences from `before`; the text is empty if there are none.
    pub fn differences(&self, before: &Self) -> String {
        let longest = [self, before].map(|identity| identity.longest.to_string());
        let [now, then] = &longest;
        let parts = [
            ("model", &self.model, &before.model),
            ("version", &self.version, &before.version),
            (
                "weights and formats",
                &self.fingerprint,
                &before.fingerprint,
            ),
            ("number format", &self.dtype, &before.dtype),
            ("longest sequence", now, then),
        ];
        let parts = parts.iter().filter(|(_, now, then)| now != then);
        let parts = parts.map(|(what, now, then)| format!("{what} '{now}', before '{then}'"));
        parts.collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_and_nothing_else() {
        let before = EngineIdentity {
            version: "sglang 0.5.23".to_owned(),
            model: "A".to_owned(),
            fingerprint: "/models/A".to_owned(),
            dtype: "bfloat16".to_owned(),
            longest: 505,
        };
        assert_eq!(before.differences(&before), "");
        let now = EngineIdentity {
            model: "B".to_owned(),
            longest: 4_000,
            ..before.clone()
        };
        assert_eq!(
            now.differences(&before),
            "model 'B', before 'A'; longest sequence '4000', before '505'"
        );
    }
}
