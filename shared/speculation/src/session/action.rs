//! What goes into a session and what comes out of it.

use std::time::Duration;

use strum::{EnumDiscriminants, EnumString, IntoStaticStr, VariantArray};

use crate::TokenId;
use crate::draft_tree::DraftTree;
use crate::goodput::Price;
use crate::verification::layers::{Horizon, ResidualLayer};
use crate::verification::{LastToken, Verdict};

/// Which model does what, in which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, EnumDiscriminants)]
#[strum_discriminants(
    name(PlanKind),
    doc = "Which plan, its parameters apart.",
    derive(Hash, EnumString, IntoStaticStr, VariantArray),
    strum(serialize_all = "kebab-case")
)]
pub enum Plan {
    /// The drafter proposes a block, the verifier decides it, round after round.
    #[default]
    Speculative,
    /// The verifier decodes alone.
    TargetOnly,
    /// The drafter decodes alone.
    DraftOnly,
    /// The drafter decodes until its distribution says defer; then the verifier decodes one token.
    TokenCascade {
        /// Most draft tokens in a row before the target must speak, at least 1.
        max_run: u32,
    },
    /// The drafter answers alone; if the answer's score is too low, the verifier answers anew.
    SequenceCascade {
        /// Lowest score kept, a natural logarithm.
        threshold: f64,
        /// Whether the score is the mean log probability of the tokens, rather than their sum.
        mean: bool,
    },
    /// Both models at every position: the verifier draws each token from the target distribution.
    OracleCascade,
    /// The original BiLD: the drafter decodes until it is unsure, the verifier looks it over.
    Bild {
        /// Most draft tokens before the verifier looks, at least 1.
        window: u32,
        /// Whether the verifier looks at the last tokens too, when the drafter ends the output.
        verify_on_finish: bool,
        /// Whether the verifier also adds a token by itself at the beginning and after each rollback, as in the
        /// authors' code.
        code_variant: bool,
    },
}

/// Why a drafter ended its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DraftStop {
    /// As many tokens as asked for.
    Length,
    /// The last token ends the output.
    EndToken,
    /// The distribution at the next position says stop.
    Policy,
    /// The draft model's context is full.
    Context,
}

/// A service the session depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// Runs the draft model.
    Drafter,
    /// Runs the target model.
    Verifier,
}

impl Peer {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Drafter, Self::Verifier];

    /// Its name in errors, spans and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drafter => "drafter",
            Self::Verifier => "verifier",
        }
    }
}

/// Where an output token came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Drafted, and kept.
    Accepted,
    /// The target's, in place of a refused draft token.
    Recovered,
    /// The target's, after a block that was accepted whole.
    Bonus,
    /// The target's, decoding alone.
    Target,
    /// The target's, because a deferral rule handed the position over.
    Deferred,
}

/// A request the session asks the driver to make of a peer. Repeated with the same `round` it must
/// give the same answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Draft at most `max_tokens` tokens after the first `base_len` output tokens.
    Draft {
        /// Most draft tokens, or levels of a tree; 0 requests the distribution alone.
        max_tokens: u32,
        /// Whether the distribution at the position after the block is wanted too.
        bonus_q: bool,
    },
    /// Decide these draft tokens.
    Verify {
        /// The draft tokens; none asks for one token of the target's.
        drafts: DraftTree,
        /// How far drafting would have gone; greedy block verification.
        horizon: Horizon,
        /// Residual layers active at `base_len`; greedy block verification.
        layers: Vec<ResidualLayer>,
    },
    /// Decode `max_tokens` tokens with the target alone, streaming.
    Decode {
        /// Most tokens wanted, at least 1.
        max_tokens: u32,
    },
    /// Tell the log probabilities of the prompt's tokens, streaming.
    Score {
        /// Number of scores that are known already, from the first on.
        from: u32,
    },
}

impl Request {
    /// The peer it is made of.
    pub fn peer(&self) -> Peer {
        match self {
            Self::Draft { .. } => Peer::Drafter,
            Self::Verify { .. } | Self::Decode { .. } | Self::Score { .. } => Peer::Verifier,
        }
    }
}

/// What the driver must do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send `request` to its peer.
    Send {
        /// The round it belongs to; answers must carry it.
        round: u64,
        /// How often it was sent before.
        attempt: u32,
        /// Number of output tokens it builds on, held ones included.
        base_len: u32,
        /// What is asked.
        request: Request,
    },
    /// These tokens are final: hand them to the client.
    Emit(Vec<(TokenId, Origin)>),
    /// The log probabilities of `count` tokens of the prompt have come: hand them to the client.
    EmitScores {
        /// Number of scores before these.
        from: u32,
        /// Number of scores.
        count: u32,
    },
    /// Free the session at `peer`.
    Close(Peer),
    /// The request is over. Nothing comes after it.
    Finish(FinishReason),
}

/// Why a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// An end token or a stop string.
    Stop,
    /// The token limit.
    Length,
    /// The client went away.
    Cancelled,
    /// It could not go on.
    Failed {
        /// The peer that failed.
        peer: Peer,
        /// What is known of it.
        reason: String,
    },
    /// The request's own deadline passed.
    DeadlineExceeded,
}

/// What the draft tokens of a forward came to, where the target decodes and takes drafts as they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoredDrafts {
    /// Draft tokens that had a row.
    pub scored: u32,
    /// Tokens accepted, the first of those decoded.
    pub accepted: u32,
    /// What the last token decoded is.
    pub last: LastToken,
}

/// A draft block, as a drafter answers.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftBlock {
    /// The draft tokens.
    pub drafts: DraftTree,
    /// Why it ended.
    pub stop: DraftStop,
    /// Unscaled log probability of each token, where the plan scores them; else empty.
    pub logprobs: Vec<f32>,
    /// Forwards of each model of the drafter, the largest first; empty stands for one model and one
    /// forward a level, and one for a distribution that was only looked at.
    pub forwards: Vec<u32>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The drafter answered a [`Request::Draft`]. An empty block answers a request for nothing but the
    /// distribution, or says that the very first distribution stops ([`DraftStop::Policy`]), or that the context is
    /// full; elsewhere it is malformed.
    Drafted {
        /// The round answered.
        round: u64,
        /// The block.
        block: DraftBlock,
    },
    /// The verifier answered a [`Request::Verify`].
    Verified {
        /// The round answered.
        round: u64,
        /// The verdict.
        verdict: Verdict,
    },
    /// The verifier answered a part of a [`Request::Decode`].
    Decoded {
        /// The round answered.
        round: u64,
        /// Output position of the first token.
        at: u32,
        /// The tokens: of a forward that scored drafts, all of them.
        tokens: Vec<TokenId>,
        /// What became of these drafts; none if it scored none.
        drafts: Option<ScoredDrafts>,
    },
    /// The verifier answered a part of a [`Request::Score`].
    Scored {
        /// The round answered.
        round: u64,
        /// Number of scores before these.
        from: u32,
        /// Number of scores.
        count: u32,
    },
    /// The peer asked is at work on its answer, a long prefill for instance: its time begins anew.
    Progress {
        /// The round asked.
        round: u64,
        /// The peer asked.
        peer: Peer,
    },
    /// The verifier asked about a block takes only so many draft tokens in a round: blocks are no longer than
    /// that from now on.
    Limited {
        /// The round asked.
        round: u64,
        /// Most draft tokens of a round; all nodes of a tree count.
        max_draft_tokens: u32,
    },
    /// A peer reported its load with an answer. The report is valid whichever round the answer is for.
    Priced {
        /// The peer.
        peer: Peer,
        /// The load.
        price: Price,
        /// Whether drafter and verifier compute on the same processors; none where that is not known.
        share_processors: Option<bool>,
    },
    /// The peer computes other numbers than it did before: the session moved to another, or it was replaced. Told
    /// before its next answer.
    Changed {
        /// The peer.
        peer: Peer,
    },
    /// A peer did not answer, or answered with an error.
    Failed {
        /// The round asked.
        round: u64,
        /// The peer asked.
        peer: Peer,
        /// What is known of it.
        reason: String,
        /// Whether asking again could help.
        retry: bool,
    },
    /// The verifier refused the draft block because what came with it is no draft distribution.
    ProposalsRejected {
        /// The round asked.
        round: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A peer is overloaded and named a time to wait.
    Backpressure {
        /// The round asked.
        round: u64,
        /// The peer asked.
        peer: Peer,
        /// How long to wait.
        retry_after: Duration,
    },
    /// A stop string ended the output at `len` tokens.
    Stop {
        /// Output tokens kept.
        len: u32,
    },
    /// The client went away.
    Cancel,
}
