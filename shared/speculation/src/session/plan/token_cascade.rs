//! Token by token, the draft model until its distribution says defer (Narasimhan et al., "Faster Cascades via
//! Speculative Decoding", section 3.3). The drafter makes the test itself; one token of the target's
//! follows, and the draft model is asked again.
//!
//! After a run of `max_run` draft tokens the target must speak too, as in the code of Kim et al.,
//! "Speculative Decoding with Big Little Decoder". \[choice\]

use super::super::DraftBlock;
use super::super::answers::CONTEXT_IS_FULL;
use super::super::{DraftStop, FinishReason, Peer, Request, Session};
use super::draft;
use crate::draft_tree::DraftTree;

/// Draft tokens in a row, up to the end of the output.
#[derive(Debug, Default)]
pub(in super::super) struct Run {
    len: u32,
    /// Whether the distribution after them says defer.
    defers: bool,
}

impl Run {
    /// Whether the target decodes a token although the rule did not defer.
    pub(in super::super) fn is_forced(&self) -> bool {
        !self.defers
    }

    /// The target spoke: the draft model begins anew.
    pub(in super::super) fn end(&mut self) {
        *self = Self::default();
    }
}

impl Session {
    pub(super) fn run_request(&mut self, max_run: u32) -> Request {
        if self.run.defers || self.run.len >= max_run {
            return self.verify_request(DraftTree::default(), 0);
        }
        draft((max_run - self.run.len).min(self.remaining()))
    }

    pub(super) fn extend_run(&mut self, answer: &DraftBlock) {
        let count = answer.drafts.tokens().len();
        self.run.len += count as u32;
        self.run.defers = answer.stop == DraftStop::Policy;
        self.statistics.deferral(std::iter::repeat_n(0.0, count));
        let ended = self.emit_drafts(answer.drafts.tokens());
        if ended {
            self.finish(FinishReason::Stop);
        } else if answer.stop == DraftStop::Context && self.remaining() > 0 {
            self.give_up(Peer::Drafter, CONTEXT_IS_FULL);
        } else {
            self.go_on(false);
        }
    }
}
