//! Sources of draft tokens at the coordinator, for requests with schedule `stream`. They need no model and no peer.
//! A source is added in [`source::Source::all_of`]; its place there is its number on the wire.

mod lane;
mod max_gram;
mod predicted;
mod source;

use speculation::TokenId;

pub(crate) use lane::ProposalLane;

/// The name of the source that proposes what the client predicted.
pub(crate) const PREDICTION: &str = "prediction";

/// A source of draft tokens.
pub(crate) trait Proposer: Send {
    /// Its name in metrics.
    fn name(&self) -> &'static str;

    /// Follows the sequence, which is `lead` and `output` by now and only grows. Returns whether there is more to follow:
    /// then it is called again, when other work on this thread has had its turn.
    fn follow(&mut self, lead: &[TokenId], output: &[TokenId]) -> bool;

    /// Returns at most `most` tokens to follow the sequence, each with the probability that it and those before it stand.
    fn propose(&mut self, most: usize) -> Vec<(TokenId, f32)>;
}
