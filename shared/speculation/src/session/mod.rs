//! The state machine of one request, without I/O.
//!
//! The driver carries out what [`Session::poll`] asks for and reports back with
//! [`Session::handle`]; time comes in as a [`Duration`] since the request began. The same inputs at
//! the same times give the same actions, so a whole request can be replayed in a test.
//!
//! ```text
//!          Draft                Verify
//!  idle ─────────▶ drafting ─────────────▶ verifying ──▶ Emit ──▶ idle … Finish
//!   │                 │ drafter lost            │ verifier lost
//!   │                 ▼                         ▼
//!   └──────────▶ decoding (target alone)     Finish(Failed)
//! ```

mod action;
mod answers;
mod check;
mod losses;
mod statistics;

pub use action::{Action, FinishReason, Input, Origin, Peer, Plan, Request};
pub use statistics::{Fallback, Statistics};

use std::collections::VecDeque;
use std::time::Duration;

use crate::TokenId;

/// What a session needs to know of its request.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Which model does what.
    pub plan: Plan,
    /// Draft tokens a round, at least 1.
    pub draft_len: u32,
    /// Most output tokens, at least 1.
    pub max_tokens: u32,
    /// Tokens that end the output.
    pub end_tokens: Vec<TokenId>,
    /// Token ids are below this.
    pub vocab_size: u32,
    /// How long a peer may take for one answer.
    pub round_timeout: Duration,
    /// How long a drafter may take for one draft where the target can go on without it.
    pub draft_timeout: Duration,
    /// How often a request to a peer is repeated before the peer counts as lost.
    pub retries: u32,
    /// The same for a peer that the request cannot do without.
    pub last_resort_retries: u32,
    /// Pause before the first repetition; four times as long before each next.
    pub retry_pause: Duration,
    /// Tokens decoded without the drafter before it is tried again; doubles with each loss.
    pub fallback_tokens: u32,
    /// When the whole request must be over, if it must.
    pub deadline: Option<Duration>,
}

impl SessionConfig {
    /// A configuration with the default time limits.
    pub fn new(plan: Plan, draft_len: u32, max_tokens: u32, vocab_size: u32) -> Self {
        Self {
            plan,
            draft_len,
            max_tokens,
            end_tokens: Vec::new(),
            vocab_size,
            round_timeout: Duration::from_secs(30),
            draft_timeout: Duration::from_secs(5),
            retries: 2,
            last_resort_retries: 5,
            retry_pause: Duration::from_millis(20),
            fallback_tokens: 32,
            deadline: None,
        }
    }
}

/// A request on its way to a peer.
#[derive(Debug)]
struct Outstanding {
    request: Request,
    attempt: u32,
    /// When the answer is due; or, if `paused`, when to send again.
    due: Duration,
    paused: bool,
}

/// The state machine of one request.
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    output: Vec<TokenId>,
    round: u64,
    outstanding: Option<Outstanding>,
    actions: VecDeque<Action>,
    statistics: Statistics,
    finished: bool,
}

impl Session {
    /// A session that begins at time `now`.
    pub fn new(config: SessionConfig, now: Duration) -> Self {
        let mut session = Self {
            config,
            output: Vec::new(),
            round: 0,
            outstanding: None,
            actions: VecDeque::new(),
            statistics: Statistics::default(),
            finished: false,
        };
        session.begin_round(now);
        session
    }

    /// The next thing to do, if any.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The tokens to emit next, if that is the next thing to do.
    pub fn poll_emit(&mut self) -> Option<Vec<(TokenId, Origin)>> {
        match self
            .actions
            .pop_front_if(|action| matches!(action, Action::Emit(_)))
        {
            Some(Action::Emit(tokens)) => Some(tokens),
            _ => None,
        }
    }

    /// When [`Session::handle_timeout`] must be called if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Duration> {
        if self.finished {
            return None;
        }
        let due = self.outstanding.as_ref().map(|outstanding| outstanding.due);
        due.into_iter().chain(self.config.deadline).min()
    }

    /// The tokens emitted so far.
    pub fn output(&self) -> &[TokenId] {
        &self.output
    }

    /// What was counted so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Whether [`Action::Finish`] was given out, or is about to be.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Takes note of the time.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.finished {
            return;
        }
        if self.config.deadline.is_some_and(|deadline| now >= deadline) {
            return self.finish(FinishReason::DeadlineExceeded);
        }
        let Some(outstanding) = self
            .outstanding
            .take_if(|outstanding| outstanding.due <= now)
        else {
            return;
        };
        if outstanding.paused {
            self.send(outstanding.request, outstanding.attempt, now);
        } else {
            let after = self.patience(&outstanding.request).as_millis();
            let reason = format!("no answer within {after} ms");
            self.lost(outstanding, &reason, true, now);
        }
    }

    /// Takes note of what happened. Answers to anything but the outstanding request are stale and
    /// ignored; malformed ones count as the peer's failure and never reach the output.
    pub fn handle(&mut self, input: Input, now: Duration) {
        if let Input::Stop { len } = input {
            return self.stop(len as usize);
        }
        if self.finished {
            return;
        }
        match input {
            Input::Cancel => self.finish(FinishReason::Cancelled),
            Input::Stop { .. } => {}
            Input::Drafted { round, tokens } => self.drafted(round, tokens, now),
            Input::Verified {
                round,
                emitted,
                accepted,
                last,
            } => {
                self.verified(round, &emitted, accepted, last, now);
            }
            Input::Decoded { round, at, tokens } => self.decoded(round, at, &tokens, now),
            Input::Failed {
                round,
                peer,
                reason,
                retry,
            } => {
                if let Some(outstanding) = self.take_outstanding(round, peer) {
                    self.lost(outstanding, &reason, retry, now);
                }
            }
            Input::Disbelieved { round, reason } => self.disbelieved(round, &reason, now),
            Input::Backpressure {
                round,
                peer,
                retry_after,
            } => {
                if let Some(outstanding) = self.take_outstanding(round, peer) {
                    self.backpressure(outstanding, retry_after, now);
                }
            }
        }
    }

    fn remaining(&self) -> u32 {
        self.config.max_tokens - self.output.len() as u32
    }

    fn begin_round(&mut self, now: Duration) {
        let remaining = self.remaining();
        let draft_len = self.config.draft_len;
        self.round += 1;
        let request = match self.config.plan {
            // The last slot is the token the target adds to every block.
            Plan::Speculative => match draft_len.min(remaining - 1) {
                0 => Request::Verify { drafts: Vec::new() },
                max_tokens => Request::Draft { max_tokens },
            },
            Plan::TargetOnly => Request::Decode {
                max_tokens: remaining,
            },
            Plan::DraftOnly => Request::Draft {
                max_tokens: draft_len.min(remaining),
            },
        };
        self.send(request, 0, now);
    }

    fn send(&mut self, request: Request, attempt: u32, now: Duration) {
        self.actions.push_back(Action::Send {
            round: self.round,
            attempt,
            base_len: self.output.len() as u32,
            request: request.clone(),
        });
        let due = now + self.patience(&request);
        self.outstanding = Some(Outstanding {
            request,
            attempt,
            due,
            paused: false,
        });
    }

    /// How long an answer is waited for.
    fn patience(&self, request: &Request) -> Duration {
        if self.can_do_without(request.peer()) {
            self.config.draft_timeout
        } else {
            self.config.round_timeout
        }
    }

    /// Whether the request goes on without `peer`.
    fn can_do_without(&self, peer: Peer) -> bool {
        peer == Peer::Drafter && self.config.plan == Plan::Speculative
    }

    fn take_outstanding(&mut self, round: u64, peer: Peer) -> Option<Outstanding> {
        let current = self.round;
        self.outstanding.take_if(|outstanding| {
            round == current && !outstanding.paused && outstanding.request.peer() == peer
        })
    }

    /// A stop string is found in tokens already emitted, so the session may have gone on meanwhile,
    /// even to its end.
    fn stop(&mut self, len: usize) {
        let is_finish = |action: &Action| matches!(action, Action::Finish(_));
        if self.finished && !self.actions.iter().any(is_finish) {
            return;
        }
        self.output.truncate(len);
        self.actions.clear();
        self.finish(FinishReason::Stop);
    }

    fn finish(&mut self, reason: FinishReason) {
        self.finished = true;
        self.outstanding = None;
        // What was to be sent is not wanted any more; what was emitted still is.
        self.actions
            .retain(|action| matches!(action, Action::Emit(_)));
        self.actions.push_back(Action::Close(Peer::Drafter));
        self.actions.push_back(Action::Close(Peer::Verifier));
        self.actions.push_back(Action::Finish(reason));
    }
}

#[cfg(test)]
mod tests;
