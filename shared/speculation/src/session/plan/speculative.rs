//! Blocks that the drafter proposes and the verifier decides (Narasimhan et al., "Faster Cascades
//! via Speculative Decoding", Algorithm 4), and the residual that greedy block verification carries
//! from one to the next (Sun et al., "Optimal Block-Level Draft Verification", Algorithm 3).

use super::super::{DraftStop, Plan, Request, Session, check};
use crate::draft_tree::DraftTree;
use crate::verification::layers::Horizon;

/// Tokens that the target decodes alone after a draft without a token, and how often they double at most.
const FEWEST_ALONE: u32 = 4;
const MOST_DOUBLED: u32 = 4;

impl Session {
    /// The first step of a round: a block, or at the last slot, and where drafting does not pay, what the
    /// verifier needs for one token.
    pub(super) fn block_request(&mut self) -> Request {
        let most = self.config.draft_len;
        let len = (self.config.goodput.as_mut()).map_or(most, |estimator| estimator.decide(most));
        if let Some(max_tokens) = self.rest(len) {
            self.timing.rests = true;
            return Request::Decode { max_tokens };
        }
        // The last slot is the token the target adds to every block.
        let max_tokens = len.min(self.remaining() - 1);
        let bonus_q = self.wants_bonus_after(max_tokens);
        if max_tokens == 0 && !bonus_q {
            return self.verify_request(DraftTree::default(), 0.into());
        }
        Request::Draft {
            max_tokens,
            bonus_q,
        }
    }

    /// How many tokens the target makes alone, in one go, where a block of `len` tokens says that drafting
    /// does not pay; none where each token needs the drafter's distribution.
    fn rest(&self, len: u32) -> Option<u32> {
        let estimator = self.config.goodput.as_ref().filter(|_| len == 0)?;
        (!self.needs_draft_probs()).then(|| estimator.rest().min(self.remaining()))
    }

    /// Has the target decode a few tokens alone where the drafter found none worth drafting, if draft lengths follow
    /// what pays; more of them with each such draft in a row. Whether it does.
    fn goes_alone(&mut self, drafts: &DraftTree) -> bool {
        if self.config.goodput.is_none() || !drafts.is_empty() || self.needs_draft_probs() {
            self.timing.empty_drafts = 0;
            return false;
        }
        let tokens = FEWEST_ALONE << self.timing.empty_drafts.min(MOST_DOUBLED);
        self.timing.empty_drafts += 1;
        self.timing.rests = true;
        let max_tokens = tokens.min(self.remaining());
        self.send(Request::Decode { max_tokens }, 0);
        true
    }

    /// Whether each token needs the drafter's distribution.
    fn needs_draft_probs(&self) -> bool {
        self.config.depends_on_draft || self.config.bonus_q || self.has_live_layers()
    }

    /// Asks the verifier about `drafts`, of which `max_tokens` were asked for, and why there are no more.
    pub(super) fn verify_block(&mut self, drafts: DraftTree, stop: DraftStop, max_tokens: u32) {
        if self.config.plan == Plan::Speculative && self.goes_alone(&drafts) {
            return;
        }
        // Whether a layer is active must not depend on what was drafted: its horizon is where drafting would have
        // ended without an end token, and a stop rule is asked anew along the output. A full context ends every path.
        let stopped = self.config.carries_layers && stop == DraftStop::Policy;
        let horizon = Horizon {
            len: if stopped || check::ends_block(&self.config, &drafts) {
                max_tokens
            } else {
                drafts.len() as u32
            },
            stopped,
        };
        let request = self.verify_request(drafts, horizon);
        self.send(request, 0);
    }

    pub(super) fn verify_request(&self, drafts: DraftTree, horizon: Horizon) -> Request {
        Request::Verify {
            drafts,
            horizon,
            layers: self.layers.clone(),
        }
    }

    /// Whether a residual layer still shapes the next token.
    pub(in super::super) fn has_live_layers(&self) -> bool {
        self.layers.iter().any(|layer| layer.remaining > 0)
    }

    /// Whether the draft distribution is needed at the position after a block of `len` tokens: there the target
    /// distribution is a function of it, or a layer is active that outlives the block.
    fn wants_bonus_after(&self, len: u32) -> bool {
        let outlived = self.layers.iter().any(|layer| layer.remaining > len);
        !self.config.lazy_bonus && (self.config.bonus_q || outlived)
    }
}
