//! The original BiLD (Kim et al., "Speculative Decoding with Big Little Decoder"; Narasimhan et al.,
//! appendix E.5): the drafter stops where its distribution is unsure or the window is full, and the target
//! looks the tokens over. The window may reach to the last slot; an output that the draft model
//! ends is not looked over unless asked for. In the authors' code the target also adds a token by itself at the
//! beginning, and another one after each rollback.
//!
//! A drafter that takes less than a window at once is asked again until the window is full: where the
//! target looks decides what it adds, so that must not depend on a peer's limits.

use super::super::{DraftBlock, DraftStop, Request, Session};
use super::draft;
use crate::draft_tree::DraftTree;

impl Session {
    /// Asks for what the window still lacks, or for a token of the target's where the authors' code has one.
    pub(super) fn window_request(&self, window: u32, code_variant: bool) -> Request {
        if code_variant && self.target_goes_on {
            return self.verify_request(DraftTree::default(), 0.into());
        }
        let filled = self.unemitted().len() as u32;
        draft((window - filled).min(self.remaining()))
    }

    pub(super) fn extend_window(
        &mut self,
        answer: &DraftBlock,
        window: u32,
        verify_on_finish: bool,
    ) {
        let ended = self.ends(answer.drafts.tokens());
        self.output.extend_from_slice(answer.drafts.tokens());
        let has_room = (self.unemitted().len() as u32) < window && self.remaining() > 0;
        if answer.stop == DraftStop::Length && has_room && !ended {
            return self.begin_round();
        }
        let drafts = self.output.split_off(self.emitted);
        let finishes = ended || drafts.len() as u32 == self.remaining();
        if finishes && !verify_on_finish {
            self.emit_drafts(&drafts);
            return self.go_on(ended);
        }
        let horizon = drafts.len() as u32;
        let request = self.verify_request(drafts.into(), horizon.into());
        self.send(request, 0);
    }
}
