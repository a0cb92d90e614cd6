//! What an engine over HTTP can do, and how it is asked.

use std::time::Instant;

use speculation::TokenId;
use speculation::certificate::PartialRow;

use crate::error::EngineError;
use crate::identity::Identity;
use crate::request::Scoring;

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
pub struct Caps {
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
pub struct ServedModel {
    /// Length of a row, in tokens.
    pub vocab_size: usize,
    /// Longest sequence and the tokens that must follow it in a request, in tokens.
    pub context_len: usize,
}

/// An engine that scores tokens.
pub trait ScoringEngine: Send + Sync {
    /// Returns what it can do.
    fn caps(&self) -> Caps;

    /// The rows of each sequence, in the order of the request: the first after its last committed token, then one
    /// after each draft token. Each knows the most likely tokens wanted and all that were asked of it; it may know
    /// more.
    ///
    /// # Errors
    /// If the engine cannot do it, does not answer before `deadline`, or answers anything but what was asked.
    fn score(
        &self,
        scoring: &Scoring<'_>,
        deadline: Instant,
    ) -> Result<Vec<Vec<PartialRow>>, EngineError>;

    /// The engine's own tokens of `text`, with those that its tokenizer puts around it.
    ///
    /// # Errors
    /// As [`Self::score`].
    fn tokens_of(&self, text: &str, deadline: Instant) -> Result<Vec<TokenId>, EngineError>;

    /// Asks the engine what it serves.
    ///
    /// # Errors
    /// If it does not before `deadline`.
    fn identity(&self, deadline: Instant) -> Result<Identity, EngineError>;

    /// Whether it says that it is well.
    ///
    /// # Errors
    /// If it does not before `deadline`.
    fn is_well(&self, deadline: Instant) -> Result<(), EngineError>;
}
