//! Token by token, the draft model until its distribution says defer (Narasimhan et al., "Faster Cascades via
//! Speculative Decoding", section 3.3). The drafter makes the test itself; one token of the target's
//! follows, and the draft model is asked again.
//!
//! After a run of `max_run` draft tokens the target must speak too, as in the code of Kim et al.,
//! "Speculative Decoding with Big Little Decoder". \[choice\] Whether the rule would have asked for that token too is
//! known only if the draft model looks further, so it is asked for one token more than a run may have: if it stops
//! before it, the rule deferred; the token itself is discarded.

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
    /// Whether the draft model would have gone on after the longest run.
    goes_on: bool,
}

impl DraftRun {
    /// Whether there are `max_run` draft tokens, so that the target decodes a token whatever the rule says.
    pub(in super::super) fn is_full(&self, max_run: u32) -> bool {
        self.len >= max_run
    }

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
        if self.run.defers || self.run.goes_on {
            return self.verify_request(DraftTree::default(), 0.into());
        }
        let one_more = (max_run - self.run.len).saturating_add(1);
        draft(one_more.min(self.remaining()))
    }

    pub(super) fn extend_run(&mut self, answer: &DraftBlock, max_run: u32) {
        let drafts = answer.drafts.tokens();
        let room = (max_run - self.run.len) as usize;
        let kept = &drafts[..drafts.len().min(room)];
        let beyond = drafts.len() - kept.len();
        self.statistics.discarded += beyond as u32;
        self.run.len += kept.len() as u32;
        let no_place = answer.stop == DraftStop::Context;
        self.run.goes_on = beyond > 0 || no_place && self.run.is_full(max_run);
        self.run.defers = answer.stop == DraftStop::Policy && beyond == 0;
        self.statistics
            .deferral(std::iter::repeat_n(0.0, kept.len()));
        let ended = self.emit_drafts(kept);
        if ended {
            self.finish(FinishReason::Stop);
        } else if no_place && !self.run.goes_on && self.remaining() > 0 {
            self.give_up(Peer::Drafter, CONTEXT_IS_FULL);
        } else {
            self.go_on(false);
        }
    }
}
