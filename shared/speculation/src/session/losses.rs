//! What a session does when a peer fails: ask again, go on without it, or end.

use std::time::Duration;

use super::check::Malformed;
use super::{Fallback, FinishReason, Outstanding, Peer, Request, Session};

impl Session {
    pub(super) fn malformed(
        &mut self,
        outstanding: Outstanding,
        malformed: &Malformed,
        now: Duration,
    ) {
        // The same peer would say the same again.
        self.lost(outstanding, &malformed.to_string(), false, now);
    }

    /// The verifier found what the drafter said of its laws malformed: the drafter is to blame.
    pub(super) fn disbelieved(&mut self, round: u64, reason: &str, now: Duration) {
        let Some(outstanding) = self.take_outstanding(round, Peer::Verifier) else {
            return;
        };
        match &outstanding.request {
            Request::Verify { drafts } if !drafts.is_empty() => {
                self.statistics.discarded += drafts.len() as u32;
                self.give_up(Peer::Drafter, reason, now);
            }
            _ => self.give_up(Peer::Verifier, reason, now),
        }
    }

    pub(super) fn backpressure(
        &mut self,
        outstanding: Outstanding,
        retry_after: Duration,
        now: Duration,
    ) {
        if self.can_do_without(outstanding.request.peer()) {
            // The target alone is quicker than waiting.
            return self.lost(outstanding, "drafter is overloaded", false, now);
        }
        self.pause(outstanding, retry_after, "peer is overloaded", now);
    }

    pub(super) fn lost(
        &mut self,
        outstanding: Outstanding,
        reason: &str,
        retry: bool,
        now: Duration,
    ) {
        if retry {
            let pause = self.config.retry_pause * 4_u32.pow(outstanding.attempt.min(5));
            self.pause(outstanding, pause, reason, now);
        } else {
            self.give_up(outstanding.request.peer(), reason, now);
        }
    }

    pub(super) fn pause(
        &mut self,
        outstanding: Outstanding,
        pause: Duration,
        reason: &str,
        now: Duration,
    ) {
        let retries = if self.can_do_without(outstanding.request.peer()) {
            self.config.retries
        } else {
            self.config.last_resort_retries
        };
        if outstanding.attempt >= retries {
            return self.give_up(outstanding.request.peer(), reason, now);
        }
        self.statistics.retries += 1;
        self.outstanding = Some(Outstanding {
            attempt: outstanding.attempt + 1,
            due: now + pause,
            paused: true,
            request: outstanding.request,
        });
    }

    pub(super) fn give_up(&mut self, peer: Peer, reason: &str, now: Duration) {
        if !self.can_do_without(peer) {
            return self.finish(FinishReason::Failed {
                peer,
                reason: reason.to_owned(),
            });
        }
        let losses = self.statistics.fallbacks.len().min(16) as u32;
        self.statistics.fallbacks.push(Fallback {
            peer,
            position: self.output.len() as u32,
            reason: reason.to_owned(),
        });
        let alone = self
            .config
            .fallback_tokens
            .saturating_mul(2_u32.pow(losses));
        let max_tokens = alone.clamp(1, self.remaining());
        self.send(Request::Decode { max_tokens }, 0, now);
    }
}
