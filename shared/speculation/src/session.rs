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
//! Before the first round the verifier tells the prompt's log probabilities, if they are wanted.
//!
//! The [`Plan`] says which of these steps a round has; `plan` holds what is particular to each.

mod action;
mod answers;
mod begin_end;
mod check;
mod config;
mod losses;
mod plan;
mod statistics;

pub use action::{
    Action, DraftBlock, DraftStop, FinishReason, Input, Origin, Peer, Plan, PlanKind, Request,
    ScoredDrafts,
};
pub use config::SessionConfig;
pub use statistics::{Fallback, Statistics};

use std::collections::VecDeque;
use std::time::Duration;

use crate::TokenId;
use crate::goodput::Estimator;
use crate::verification::layers::ResidualLayer;
use plan::{DraftRun, HeldResponse};

/// A request on its way to a peer.
#[derive(Debug)]
struct Outstanding {
    request: Request,
    attempt: u32,
    /// Failures among the attempts before; what an overloaded peer puts off is none.
    failures: u32,
    /// When the first of these was.
    failing_since: Option<Duration>,
    /// When it was handed out to be sent, if it was.
    sent: Option<Duration>,
    /// When the answer is due, once it was handed out; or, if `paused`, when to send again.
    due: Option<Duration>,
    paused: bool,
    /// Tokens of its answer that came so far.
    streamed: u32,
    /// Why it had to be repeated the first time.
    first_failure: Option<String>,
}

impl Outstanding {
    /// How long its answer took, if it comes at `now`; none if it was asked for more than once.
    fn took(&self, now: Duration) -> Option<Duration> {
        let sent = self.sent.filter(|_| self.attempt == 0)?;
        Some(now.saturating_sub(sent))
    }

    /// Takes note of a part of the answer: what comes after it is due at `due`, and has its own retries.
    fn progressed(&mut self, due: Duration) {
        self.due = Some(due);
        self.attempt = 0;
        self.failures = 0;
    }
}

/// The state machine of one request.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "what became of a request, each by itself"
)]
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
    layers: Vec<ResidualLayer>,
    /// Whether the drafter was heard in this round, so that a verdict builds on what it said.
    drafter_heard: bool,
    /// Whether nothing was generated yet, or the last verdict replaced a draft token: where the authors' code of BiLD
    /// has the target add a token by itself.
    target_goes_on: bool,
    timing: RoundTiming,
    run: DraftRun,
    response: HeldResponse,
}

/// What the times of a round tell of its cost.
#[derive(Clone, Copy, Debug, Default)]
struct RoundTiming {
    /// How long the drafter took in this round, if that counts.
    draft_took: Option<Duration>,
    /// When the last verdict came, if the target decoded nothing alone since.
    verdict_at: Option<Duration>,
    /// How long after that this round's draft was asked for.
    between: Option<Duration>,
    /// Whether the target decodes alone in this round because drafting does not pay.
    rests: bool,
    /// Drafts in a row that were empty because no token was worth it.
    empty_drafts: u32,
    drafter_cache: CacheState,
    /// Whether the verifier followed the output up to the last round: an answer that includes catching up
    /// tells nothing of what a round costs.
    verifier_follows: bool,
}

/// How far a drafter has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CacheState {
    /// It has not answered yet.
    #[default]
    Nothing,
    /// The prompt, and not all of the output: the target decoded alone since.
    Prompt,
    /// All up to the last round.
    Output,
}

impl Session {
    /// A session at its beginning.
    pub fn new(config: SessionConfig) -> Self {
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
            target_goes_on: true,
            timing: RoundTiming::default(),
            run: DraftRun::default(),
            response: HeldResponse::default(),
        };
        session.begin();
        session
    }

    /// The next thing to do, if any. A held response that is complete is kept or discarded here, so
    /// whoever looks for stop strings in [`Session::held`] does so between an answer and this.
    ///
    /// The time of a peer begins when its [`Action::Send`] is handed out, at `now`: however long the actions
    /// before it took to carry out is nothing to the peer.
    pub fn poll(&mut self, now: Duration) -> Option<Action> {
        if self.actions.is_empty() {
            self.decide_response();
        }
        let action = self.actions.pop_front()?;
        if let Action::Send { request, .. } = &action {
            let patience = self.patience(request.peer());
            if let Some(outstanding) = &mut self.outstanding {
                outstanding.sent = Some(now);
                outstanding.due = Some(now.saturating_add(patience));
            }
        }
        Some(action)
    }

    /// When [`Session::handle_timeout`] must be called if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Duration> {
        if self.finished {
            return None;
        }
        let due = (self.outstanding.as_ref()).and_then(|outstanding| outstanding.due);
        due.into_iter().chain(self.config.deadline).min()
    }

    /// Returns what a peer must take for the output so far: the tokens emitted, and those still held.
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

    /// Rounds begun.
    pub fn rounds(&self) -> u64 {
        self.round
    }

    /// Returns what was counted so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns what is known of acceptance and times, if the length of blocks follows it: a start for the next request
    /// of the same drafter, verification and temperature.
    pub fn goodput(&self) -> Option<&Estimator> {
        self.config.goodput.as_ref()
    }

    /// Whether the output is what the method promises. False once the target went on alone where the
    /// method needs the draft distribution, or numbers changed that have a part in the output.
    pub fn is_exact(&self) -> bool {
        !self.inexact
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
            .take_if(|outstanding| outstanding.due.is_some_and(|due| due <= now))
        else {
            return;
        };
        if outstanding.paused {
            self.send(outstanding.request, outstanding.attempt);
            if let Some(again) = &mut self.outstanding {
                again.first_failure = outstanding.first_failure;
                again.failures = outstanding.failures;
                again.failing_since = outstanding.failing_since;
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
            return self.stop(len as usize);
        }
        if self.finished {
            return;
        }
        match input {
            Input::Cancel => self.finish(FinishReason::Cancelled),
            Input::Stop { .. } => {}
            Input::Drafted { round, block } => self.drafted(round, block, now),
            Input::Verified { round, verdict } => self.verified(round, verdict, now),
            Input::Progress { round, peer } => self.progressed(round, peer, now),
            Input::Priced {
                peer,
                price,
                share_processors,
            } => self.priced(peer, price, share_processors),
            Input::Changed { peer } => self.changed(peer),
            Input::Limited {
                round,
                max_draft_tokens,
            } => self.limited(round, max_draft_tokens),
            Input::Decoded {
                round,
                at,
                tokens,
                drafts,
            } => self.decoded(round, at, (&tokens, drafts), now),
            Input::Scored { round, from, count } => self.scored(round, from, count, now),
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
            Input::ProposalsRejected { round, reason } => {
                self.proposals_rejected(round, &reason);
            }
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

    fn send(&mut self, request: Request, attempt: u32) {
        self.actions.push_back(Action::Send {
            round: self.round,
            attempt,
            base_len: self.output.len() as u32,
            request: request.clone(),
        });
        self.outstanding = Some(Outstanding {
            request,
            attempt,
            failures: 0,
            failing_since: None,
            sent: None,
            due: None,
            paused: false,
            streamed: 0,
            first_failure: None,
        });
    }

    /// Takes the outstanding request if it is `peer` that its answer hangs on.
    fn take_outstanding(&mut self, round: u64, peer: Peer) -> Option<Outstanding> {
        if self.is_waiting_on(round, peer) {
            self.outstanding.take()
        } else {
            None
        }
    }

    /// Whether the answer to the outstanding request of `round` hangs on `peer`.
    fn is_waiting_on(&self, round: u64, peer: Peer) -> bool {
        self.outstanding.as_ref().is_some_and(|outstanding| {
            let request = &outstanding.request;
            // A coordinator that decides blocks itself may have to ask the drafter for a distribution meanwhile.
            let on_the_way = self.config.lazy_bonus && matches!(request, Request::Verify { .. });
            let concerned = request.peer() == peer || on_the_way && peer == Peer::Drafter;
            round == self.round && !outstanding.paused && concerned
        })
    }
}

#[cfg(test)]
mod tests;
