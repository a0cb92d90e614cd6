//! What a chain is decided by.

use std::sync::Arc;

use crate::TokenId;
use crate::noise::Noise;
use crate::sampling::SamplingParams;

/// How a draft token is tested.
#[derive(Clone, Debug)]
pub enum Test {
    /// Coupled verification: it stands if the target chooses it under the noise that both share.
    Coupled,
    /// Token verification: it stands with probability min(1, π/q). For each draft token, the support of the draft
    /// distribution q and its probabilities, ascending by token.
    Token(Vec<Vec<(TokenId, f64)>>),
}

/// What a chain is decided by.
#[derive(Clone, Debug)]
pub struct Rules {
    /// How tokens are drawn.
    pub params: Arc<SamplingParams>,
    /// The noise of the request.
    pub noise: Noise,
    /// Length of the whole rows.
    pub vocab_size: usize,
    /// How draft tokens are tested.
    pub test: Test,
    /// How many alternatives are told with the log probability of each emitted token; none if none are wanted.
    pub logprobs: Option<usize>,
}
