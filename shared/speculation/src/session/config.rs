//! What is settled about a request before it begins.

use std::time::Duration;

use super::Plan;
use crate::TokenId;
use crate::drafting::TreeShape;
use crate::goodput::Estimator;

/// What a session needs to know of its request.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts of a request that do not depend on one another"
)]
pub struct SessionConfig {
    /// Which model does what.
    pub plan: Plan,
    /// Most draft tokens of a block, at least 1; the cascades have bounds of their own.
    pub draft_len: u32,
    /// What is known of acceptance and times at the beginning, if the length of each block, up to
    /// `draft_len`, is to follow what is measured of them; none for blocks of `draft_len`. The session
    /// goes on from it, see [`super::Session::goodput`].
    pub goodput: Option<Estimator>,
    /// Whether the target decodes all along under [`Plan::Speculative`], and takes drafts as they come, rather than in
    /// rounds.
    pub streams: bool,
    /// The shape of blocks; `draft_len` is then their depth.
    pub tree: TreeShape,
    /// Whether every verified position needs the draft distribution, the one after the block too, and the
    /// session must ask for it. False where the coordinator decides and fetches it when needed.
    pub bonus_q: bool,
    /// Whether the driver of the session decides the blocks itself, and requests a distribution of the drafter
    /// only where the decision needs one. The session then requests none beforehand, whatever
    /// [`SessionConfig::bonus_q`] says, except under [`Plan::OracleCascade`].
    pub lazy_bonus: bool,
    /// Whether tokens drawn without the drafter are not what the method promises.
    pub depends_on_draft: bool,
    /// Whether verdicts may leave residual layers: greedy block verification.
    pub carries_layers: bool,
    /// Tokens of the prompt whose log probabilities the client wants, before anything is generated; 0 for none.
    pub prompt_scores: u32,
    /// Most output tokens.
    pub max_tokens: u32,
    /// Tokens that end the output.
    pub end_tokens: Vec<TokenId>,
    /// Token ids are below this.
    pub vocab_size: u32,
    /// How long a peer may take for one answer.
    pub round_timeout: Duration,
    /// How long a drafter may take for one draft where the target can go on without it.
    pub draft_timeout: Duration,
    /// How often a request to a peer is repeated before the peer counts as lost.
    pub retries: u32,
    /// The same for a peer that the request cannot do without.
    pub last_resort_retries: u32,
    /// Pause before the first repetition; four times as long before each next.
    pub retry_pause: Duration,
    /// Tokens decoded without the drafter before it is tried again; doubles with each loss.
    pub fallback_tokens: u32,
    /// When the whole request must be over, if it must.
    pub deadline: Option<Duration>,
}
