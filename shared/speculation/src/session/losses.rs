//! What a session does when a peer fails: ask again, go on without it, or end.

use std::time::Duration;

use super::check::Malformed;
use super::{Fallback, FinishReason, Outstanding, Peer, Plan, Request, Session};

/// For how long a peer may fail before fewer attempts are made than the configuration allows.
const LONG: Duration = Duration::from_secs(5);

/// How often the pause before a repetition grows.
const GROWING_PAUSES: u32 = 5;

impl Session {
    /// How long an answer of `peer` is waited for.
    pub(super) fn patience(&self, peer: Peer) -> Duration {
        if self.is_soon_given_up(peer) {
            self.config.draft_timeout
        } else {
            self.config.round_timeout
        }
    }

    /// Whether the request goes on without `peer`, if it must.
    fn can_do_without(&self, peer: Peer) -> bool {
        let lone = matches!(self.config.plan, Plan::TargetOnly | Plan::DraftOnly);
        peer == Peer::Drafter && !lone && !self.config.streams
    }

    /// Whether `peer` is not waited for as long as one that the request cannot do without. Where
    /// residual layers are live, or a whole response is held, going on without it costs too much.
    fn is_soon_given_up(&self, peer: Peer) -> bool {
        let holds = matches!(self.config.plan, Plan::SequenceCascade { .. });
        self.can_do_without(peer) && !holds && !self.has_live_layers()
    }

    pub(super) fn malformed(&mut self, outstanding: &Outstanding, malformed: &Malformed) {
        // The same peer would say the same again.
        let peer = outstanding.request.peer();
        self.abandon(outstanding, peer, &malformed.to_string());
    }

    /// The verifier found the drafter's proposals malformed. The drafter is to blame, if it sent any.
    pub(super) fn proposals_rejected(&mut self, round: u64, reason: &str) {
        let Some(outstanding) = self.take_outstanding(round, Peer::Verifier) else {
            return;
        };
        let verifies = matches!(outstanding.request, Request::Verify { .. });
        let blamed = if verifies && (self.drafter_heard || self.config.lazy_bonus) {
            Peer::Drafter
        } else {
            Peer::Verifier
        };
        self.abandon(&outstanding, blamed, reason);
    }

    pub(super) fn backpressure(
        &mut self,
        outstanding: Outstanding,
        peer: Peer,
        retry_after: Duration,
        now: Duration,
    ) {
        if self.is_soon_given_up(peer) {
            // The target alone is quicker than waiting.
            return self.abandon(&outstanding, peer, "drafter is overloaded");
        }
        let reason = "peer is overloaded";
        if self.config.deadline.is_none() {
            return self.retry(outstanding, peer, retry_after, reason, now);
        }
        // The peer is there and says when to come back: that is waited for as long as the request may take.
        self.pause(outstanding, retry_after, reason, now);
    }

    /// The peer asked is at work: it may be silent for its patience again, from `now` on.
    pub(super) fn progressed(&mut self, round: u64, peer: Peer, now: Duration) {
        if !self.is_waiting_on(round, peer) {
            return;
        }
        let patience = self.patience(peer);
        if let Some(outstanding) = &mut self.outstanding {
            outstanding.due = outstanding.due.max(Some(now.saturating_add(patience)));
        }
    }

    /// The verifier takes fewer draft tokens in a round than the block asked about has: the block is given up,
    /// and those after it are no longer than the verifier takes.
    pub(super) fn limited(&mut self, round: u64, max_draft_tokens: u32) {
        let Some(outstanding) = self.take_outstanding(round, Peer::Verifier) else {
            return;
        };
        self.discard_drafts(&outstanding.request);
        let width = self.config.tree.width();
        let levels = max_draft_tokens / width;
        if levels == 0 || self.config.plan != Plan::Speculative {
            let reason = format!(
                "the verifier takes {max_draft_tokens} draft tokens in a round, a level has {width}"
            );
            return self.give_up(Peer::Drafter, &reason);
        }
        self.config.draft_len = self.config.draft_len.min(levels);
        self.begin_round();
    }

    /// `peer` failed, on which the answer to `outstanding` hangs.
    pub(super) fn lost(
        &mut self,
        outstanding: Outstanding,
        peer: Peer,
        reason: &str,
        retry: bool,
        now: Duration,
    ) {
        if retry {
            let pause = self.pause_after(outstanding.failures);
            self.retry(outstanding, peer, pause, reason, now);
        } else {
            self.abandon(&outstanding, peer, reason);
        }
    }

    /// Asks again after `pause`, unless it was in vain too often. A peer that the request cannot do without is not asked
    /// for longer than all pauses together take, or five seconds: where attempts themselves take long, because it is
    /// silent, there are fewer of them.
    fn retry(
        &mut self,
        outstanding: Outstanding,
        peer: Peer,
        pause: Duration,
        reason: &str,
        now: Duration,
    ) {
        let is_last_resort = !self.is_soon_given_up(peer);
        let retries = if is_last_resort {
            self.config.last_resort_retries
        } else {
            self.config.retries
        };
        let since = outstanding.failing_since.unwrap_or(now);
        let has_lasted = now.saturating_sub(since) >= self.pauses(retries).max(LONG);
        let is_over = is_last_resort && outstanding.failures > 0 && has_lasted;
        if outstanding.failures >= retries || is_over {
            return self.abandon(&outstanding, peer, reason);
        }
        let counted = Outstanding {
            failures: outstanding.failures + 1,
            failing_since: Some(since),
            ..outstanding
        };
        self.pause(counted, pause, reason, now);
    }

    /// All pauses before `repetitions` repetitions, however many these are.
    pub(super) fn pauses(&self, repetitions: u32) -> Duration {
        let growing = repetitions.min(GROWING_PAUSES + 1);
        let longest = self.pause_after(GROWING_PAUSES);
        let grown: Duration = (0..growing)
            .map(|failures| self.pause_after(failures))
            .sum();
        grown.saturating_add(longest.saturating_mul(repetitions - growing))
    }

    /// The pause after a failure that others came before, `failures` of them.
    fn pause_after(&self, failures: u32) -> Duration {
        self.config.retry_pause * 4_u32.pow(failures.min(GROWING_PAUSES))
    }

    /// Asks again after `pause`.
    fn pause(&mut self, outstanding: Outstanding, pause: Duration, reason: &str, now: Duration) {
        let first = outstanding.first_failure;
        self.statistics.retries += 1;
        self.outstanding = Some(Outstanding {
            attempt: outstanding.attempt + 1,
            due: Some(now.saturating_add(pause)),
            paused: true,
            first_failure: Some(first.unwrap_or_else(|| reason.to_owned())),
            ..outstanding
        });
    }

    fn abandon(&mut self, outstanding: &Outstanding, peer: Peer, reason: &str) {
        self.discard_drafts(&outstanding.request);
        // What went wrong first says more than what repeating it came to.
        match &outstanding.first_failure {
            Some(first) if first != reason => {
                self.give_up(peer, &format!("{first}; then {reason}"));
            }
            _ => self.give_up(peer, reason),
        }
    }

    /// Draft tokens that were to be verified are of no use any more.
    pub(super) fn discard_drafts(&mut self, request: &Request) {
        if let Request::Verify { drafts, .. } = request {
            self.statistics.discarded += drafts.len() as u32;
        }
    }

    /// Takes note that `peer` computes other numbers than before: what both have a part in is of no one distribution.
    pub(super) fn changed(&mut self, peer: Peer) {
        let config = &self.config;
        self.inexact |= match peer {
            Peer::Drafter => {
                config.plan == Plan::DraftOnly || config.depends_on_draft || config.carries_layers
            }
            Peer::Verifier => config.plan != Plan::DraftOnly,
        };
    }

    /// Goes on without `peer`, or ends if that cannot be.
    pub(super) fn give_up(&mut self, peer: Peer, reason: &str) {
        if !self.can_do_without(peer) {
            return self.finish(FinishReason::Failed {
                peer,
                reason: reason.to_owned(),
            });
        }
        // Draft tokens that nobody looked over are of no use now; a whole response is a matter of its own.
        if !self.is_holding() {
            self.statistics.discarded += self.unemitted().len() as u32;
            self.output.truncate(self.emitted);
        }
        let losses = self.statistics.fallbacks.len().min(16) as u32;
        self.statistics.fallbacks.push(Fallback {
            peer,
            position: self.output.len() as u32,
            reason: reason.to_owned(),
        });
        self.inexact |= self.config.depends_on_draft || self.has_live_layers();
        // Without the draft distribution there is no residual to carry on.
        self.layers.clear();
        if self.is_holding() {
            return self.lose_response();
        }
        let alone = self
            .config
            .fallback_tokens
            .saturating_mul(2_u32.pow(losses));
        let max_tokens = alone.clamp(1, self.remaining());
        self.send(Request::Decode { max_tokens }, 0);
    }
}
