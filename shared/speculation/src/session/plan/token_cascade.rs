//! Token by token, the draft model until its distribution says defer (Narasimhan et al., "Faster Cascades via
//! Speculative Decoding", section 3.3). The drafter makes the test itself; one token of the target's
//! follows, and the draft model is asked again.
//!
//! After a run of `max_run` draft tokens the target must speak too, as in the code of Kim et al.,
//! "Speculative Decoding with Big Little Decoder". Whether the rule would have asked for that token as well is not
//! known: the draft model looks no further.

use super::super::answers::CONTEXT_IS_FULL;
use super::super::{DraftBlock, DraftStop, FinishReason, Peer, Request, Session};
use super::draft;
use crate::draft_tree::DraftTree;

/// Draft tokens in a row, up to the end of the output.
#[derive(Debug, Default)]
pub(in super::super) struct DraftRun {
    len: u32,
    /// Whether the distribution after them says defer.
    defers: bool,
}

impl DraftRun {
    /// Whether there are `max_run` draft tokens, so that the target decodes a token whatever the rule says.
    pub(in super::super) fn is_full(&self, max_run: u32) -> bool {
        self.len >= max_run
    }

    /// The target spoke: the draft model begins anew.
    pub(in super::super) fn end(&mut self) {
        *self = Self::default();
    }
}

impl Session {
    pub(super) fn run_request(&mut self, max_run: u32) -> Request {
        if self.run.defers || self.run.is_full(max_run) {
            return self.verify_request(DraftTree::default(), 0.into());
        }
        draft((max_run - self.run.len).min(self.remaining()))
    }

    pub(super) fn extend_run(&mut self, answer: &DraftBlock, max_run: u32) {
        let drafts = answer.drafts.tokens();
        self.run.len += drafts.len() as u32;
        self.run.defers = answer.stop == DraftStop::Policy;
        self.statistics
            .deferral(std::iter::repeat_n(0.0, drafts.len()));
        let ended = self.emit_drafts(drafts);
        let has_no_place = answer.stop == DraftStop::Context && !self.run.is_full(max_run);
        if ended {
            self.finish(FinishReason::Stop);
        } else if has_no_place && self.remaining() > 0 {
            self.give_up(Peer::Drafter, CONTEXT_IS_FULL);
        } else {
            self.go_on(false);
        }
    }
}
