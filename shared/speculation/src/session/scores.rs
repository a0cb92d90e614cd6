//! The log probabilities of the prompt's tokens, which a verifier tells before anything is generated.

use std::time::Duration;

use super::{Action, Request, Session, check};

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
        // This part is progress: the next one has its own time and its own retries.
        outstanding.due = Some(now.saturating_add(self.config.round_timeout));
        outstanding.attempt = 0;
        outstanding.failures = 0;
        self.actions
            .push_back(Action::EmitScores { from: at, count });
        if count == wanted {
            self.outstanding = None;
            self.go_on(false);
        }
    }
}
