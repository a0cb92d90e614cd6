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
//!
//! The [`Plan`] says which of these steps a round has; `plan` holds what is particular to each.

mod action;
mod answers;
mod check;
mod config;
mod end;
mod losses;
mod plan;
mod statistics;

pub use action::{Action, DraftStop, FinishReason, Input, Origin, Peer, Plan, Request};
pub use config::SessionConfig;
pub use statistics::{Fallback, Statistics};

use std::collections::VecDeque;
use std::time::Duration;

use crate::TokenId;
use crate::goodput::Estimator;
use crate::verification::layers::Layer;
use answers::{DraftAnswer, VerdictAnswer};
use plan::{Response, Run};

/// A request on its way to a peer.
#[derive(Debug)]
struct Outstanding {
    request: Request,
    attempt: u32,
    sent: Duration,
    /// When the answer is due; or, if `paused`, when to send again.
    due: Duration,
    paused: bool,
    /// Why it had to be repeated the first time.
    first_failure: Option<String>,
}

impl Outstanding {
    /// How long its answer took, if it comes at `now`; none if it was asked for more than once.
    fn took(&self, now: Duration) -> Option<Duration> {
        (self.attempt == 0).then(|| now.saturating_sub(self.sent))
    }
}

/// The state machine of one request.
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    /// What a peer must take for the output: emitted tokens, then held ones.
    output: Vec<TokenId>,
    /// How many of them were emitted.
    emitted: usize,
    round: u64,
    outstanding: Option<Outstanding>,
    actions: VecDeque<Action>,
    statistics: Statistics,
    finished: bool,
    inexact: bool,
    /// Residual layers active after the output; greedy block verification.
    layers: Vec<Layer>,
    /// Whether the drafter was heard in this round, so that a verdict builds on what it said.
    drafter_heard: bool,
    pace: Pace,
    run: Run,
    response: Response,
}

/// What the times of a round tell of its cost.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// How long the drafter took in this round, if that counts.
    draft_took: Option<Duration>,
    /// Whether the target decodes alone in this round because drafting does not pay.
    rests: bool,
    /// Whether the drafter followed the output up to the last round: an answer that includes catching up
    /// tells nothing of what a round costs.
    drafter_follows: bool,
    /// The same of the verifier.
    verifier_follows: bool,
}

impl Session {
    /// A session that begins at time `now`.
    pub fn new(config: SessionConfig, now: Duration) -> Self {
        let mut session = Self {
            config,
            output: Vec::new(),
            emitted: 0,
            round: 0,
            outstanding: None,
            actions: VecDeque::new(),
            statistics: Statistics::default(),
            finished: false,
            inexact: false,
            layers: Vec::new(),
            drafter_heard: false,
            pace: Pace::default(),
            run: Run::default(),
            response: Response::default(),
        };
        session.begin_round(now);
        session
    }

    /// The next thing to do, if any. A held response that is complete is kept or discarded here, so
    /// whoever looks for stop strings in [`Session::held`] does so between an answer and this.
    pub fn poll(&mut self) -> Option<Action> {
        if self.actions.is_empty() {
            self.decide_response();
        }
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

    /// What a peer must take for the output so far: the tokens emitted, and those still held.
    pub fn output(&self) -> &[TokenId] {
        &self.output
    }

    /// How many of them were emitted, and so will stay.
    pub fn emitted(&self) -> usize {
        self.emitted
    }

    /// The tokens of a response that is held until it is complete ([`Plan::SequenceCascade`]).
    pub fn held(&self) -> &[TokenId] {
        if self.is_holding() {
            self.unemitted()
        } else {
            &[]
        }
    }

    fn unemitted(&self) -> &[TokenId] {
        &self.output[self.emitted..]
    }

    /// Whether the draft model's whole response was given up and the target writes another one
    /// ([`Plan::SequenceCascade`]). Its noise must not be the noise of the first: whether the first
    /// was given up depends on that.
    pub fn is_second_response(&self) -> bool {
        self.response.is_given_up()
    }

    /// Rounds begun.
    pub fn rounds(&self) -> u64 {
        self.round
    }

    /// What was counted so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// What is known of acceptance and times, if the length of blocks follows it: a start for the next
    /// request of the same drafter, verification and temperature.
    pub fn goodput(&self) -> Option<&Estimator> {
        self.config.goodput.as_ref()
    }

    /// Whether the output is what the method promises. False once the target went on alone where the
    /// method needs the draft law.
    pub fn is_exact(&self) -> bool {
        !self.inexact
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
            if let Some(again) = &mut self.outstanding {
                again.first_failure = outstanding.first_failure;
            }
        } else {
            let peer = outstanding.request.peer();
            let after = self.patience(peer).as_millis();
            let reason = format!("no answer within {after} ms");
            self.lost(outstanding, peer, &reason, true, now);
        }
    }

    /// Takes note of what happened. Answers to anything but the outstanding request are stale and
    /// ignored; malformed ones count as the peer's failure and never reach the output.
    pub fn handle(&mut self, input: Input, now: Duration) {
        if let Input::Stop { len } = input {
            return self.stop(len as usize, now);
        }
        if self.finished {
            return;
        }
        match input {
            Input::Cancel => self.finish(FinishReason::Cancelled),
            Input::Stop { .. } => {}
            Input::Drafted {
                round,
                drafts,
                stop,
                logprobs,
                forwards,
            } => {
                let answer = DraftAnswer {
                    drafts,
                    stop,
                    logprobs,
                    forwards,
                };
                self.drafted(round, answer, now);
            }
            Input::Verified {
                round,
                emitted,
                path,
                last,
                deferral,
                layers,
            } => {
                let answer = VerdictAnswer {
                    emitted,
                    path,
                    last,
                    deferral,
                    layers,
                };
                self.verified(round, answer, now);
            }
            Input::Decoded { round, at, tokens } => self.decoded(round, at, &tokens, now),
            Input::Failed {
                round,
                peer,
                reason,
                retry,
            } => {
                if let Some(outstanding) = self.take_outstanding(round, peer) {
                    self.lost(outstanding, peer, &reason, retry, now);
                }
            }
            Input::Disbelieved { round, reason } => self.disbelieved(round, &reason, now),
            Input::Backpressure {
                round,
                peer,
                retry_after,
            } => {
                if let Some(outstanding) = self.take_outstanding(round, peer) {
                    self.backpressure(outstanding, peer, retry_after, now);
                }
            }
        }
    }

    fn remaining(&self) -> u32 {
        self.config.max_tokens - self.output.len() as u32
    }

    fn send(&mut self, request: Request, attempt: u32, now: Duration) {
        self.actions.push_back(Action::Send {
            round: self.round,
            attempt,
            base_len: self.output.len() as u32,
            request: request.clone(),
        });
        let due = now + self.patience(request.peer());
        self.outstanding = Some(Outstanding {
            request,
            attempt,
            sent: now,
            due,
            paused: false,
            first_failure: None,
        });
    }

    /// Takes the outstanding request if it is `peer` that its answer hangs on.
    fn take_outstanding(&mut self, round: u64, peer: Peer) -> Option<Outstanding> {
        let current = self.round;
        let lazy_bonus = self.config.lazy_bonus;
        self.outstanding.take_if(|outstanding| {
            let request = &outstanding.request;
            // Whoever decides a block itself may have to ask the drafter for a law on the way.
            let on_the_way = lazy_bonus && matches!(request, Request::Verify { .. });
            let concerned = request.peer() == peer || on_the_way && peer == Peer::Drafter;
            round == current && !outstanding.paused && concerned
        })
    }
}

#[cfg(test)]
mod tests;
