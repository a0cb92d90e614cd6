//! What comes before the first round, the log probabilities of the prompt's tokens, and what after the last.

use std::time::Duration;

use super::{Action, FinishReason, Peer, Request, Session, check};

impl Session {
    /// Asks for the scores of the prompt, if they are wanted, or else for what the first round begins with.
    pub(super) fn begin(&mut self) {
        if self.config.prompt_scores > 0 {
            self.send(Request::Score { from: 0 }, 0);
        } else {
            self.go_on(false);
        }
    }

    pub(super) fn scored(&mut self, round: u64, at: u32, count: u32, now: Duration) {
        let round_is_current = round == self.round;
        let Some(outstanding) = &mut self.outstanding else {
            return;
        };
        let Request::Score { from } = &mut outstanding.request else {
            return;
        };
        // A part that came before a retry may arrive twice. A gap is closed by asking again when the time is up.
        if !round_is_current || outstanding.paused || at != *from || count == 0 {
            return;
        }
        let wanted = self.config.prompt_scores - at;
        if let Err(malformed) = check::prompt_scores(count, wanted) {
            if let Some(outstanding) = self.outstanding.take() {
                self.malformed(&outstanding, &malformed);
            }
            return;
        }
        *from += count;
        outstanding.progressed(now.saturating_add(self.config.round_timeout));
        self.actions
            .push_back(Action::EmitScores { from: at, count });
        if count == wanted {
            self.outstanding = None;
            self.go_on(false);
        }
    }

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
