//! How a request ends, and what is left undone.

use super::{Action, FinishReason, Peer, Session};

impl Session {
    pub(super) fn go_on(&mut self, ended: bool) {
        if ended {
            self.finish(FinishReason::Stop);
        } else if self.remaining() == 0 {
            self.finish(FinishReason::Length);
        } else {
            self.begin_round();
        }
    }

    /// A stop string is found in tokens already emitted, so the session may have gone on meanwhile,
    /// even to its end; or in tokens still held.
    pub(super) fn stop(&mut self, len: usize) {
        if self.is_holding() {
            return self.end_response(len);
        }
        let is_finish = |action: &Action| matches!(action, Action::Finish(_));
        if self.finished && !self.actions.iter().any(is_finish) {
            return;
        }
        self.statistics.discarded += self.unemitted().len() as u32;
        self.output.truncate(self.emitted.min(len));
        self.statistics.withheld += (self.emitted - self.output.len()) as u32;
        self.emitted = self.output.len();
        self.statistics.emitted = self.emitted as u32;
        self.actions.clear();
        self.finish(FinishReason::Stop);
    }

    pub(super) fn finish(&mut self, reason: FinishReason) {
        self.finished = true;
        if let Some(outstanding) = self.outstanding.take() {
            self.discard_drafts(&outstanding.request);
        }
        // What was held will never be emitted.
        self.statistics.discarded += self.unemitted().len() as u32;
        self.output.truncate(self.emitted);
        // What was to be sent is not wanted any more; what was emitted still is.
        self.actions
            .retain(|action| matches!(action, Action::Emit(_) | Action::EmitScores { .. }));
        self.actions.push_back(Action::Close(Peer::Drafter));
        self.actions.push_back(Action::Close(Peer::Verifier));
        self.actions.push_back(Action::Finish(reason));
    }
}
