//! The round under way: what is known of it until it is reported, and what the session is told of its peers' answers.

use std::time::Instant;

use fleet::PeerFault;
use speculation::goodput::Price;
use speculation::session::{DraftStop, Input, Peer, Statistics};
use wire::status::PeerFailure;
use wire::v1;

use super::{Driver, jitter};
use crate::events::{AnswerTiming, RequestEvent};
use crate::peer::{CallFailure, FailureKind, OutputLogprobs, PeerAnswer, RoundProposals};

/// What is known of the round under way, and how far rounds were reported.
#[derive(Default)]
pub(super) struct RoundRecord {
    /// What the drafter sent last. Kept for as long as the round lasts: a retry of the verifier sends it again.
    pub(super) proposals: RoundProposals,
    pub(super) draft: AnswerTiming,
    pub(super) verify: AnswerTiming,
    /// Log probabilities of the tokens of the last answer, if the request wants them.
    pub(super) logprobs: OutputLogprobs,
    /// The distributions of the round, where they are reported.
    pub(super) distributions: Option<v1::RoundDistributions>,
    /// What first went wrong with what a peer is asked now: it says more than what repeating that came to.
    pub(super) fault: Option<PeerFault>,
    /// Whose answer gives the tokens that are emitted next.
    pub(super) answered_by: Option<Peer>,
    /// Tokens that the verifier did not compute, as it said first; none before it has. Later it tells of places that the session
    /// came back to.
    pub(super) reused: Option<u32>,
    /// Draft distributions that were asked for after blocks.
    pub(super) distributions_fetched: u32,
    /// The round whose length was reported last.
    pub(super) decided: u64,
    /// Losses and moves that were told of.
    pub(super) fallbacks: usize,
    pub(super) migrations: u32,
    /// Draft tokens of each source accepted before this round.
    accepted: Vec<u64>,
    /// Rounds, steps, losses and bytes that were reported.
    rounds: u64,
    steps: usize,
    losses: usize,
    bytes: u64,
}

impl RoundRecord {
    /// Ends the round, which emitted `emitted` tokens after `base_len`. `bytes` is what rounds took so far.
    pub(super) fn report(
        &mut self,
        by: Peer,
        statistics: &Statistics,
        (base_len, emitted): (u32, u32),
        bytes: u64,
    ) -> v1::RoundReport {
        let steps = statistics.per_step_drafted.len();
        let (drafted, accepted) = match by {
            // Nobody looks these over.
            Peer::Drafter => (emitted, emitted),
            Peer::Verifier if steps > self.steps => (
                statistics.per_step_drafted[steps - 1],
                statistics.per_step_accepted[steps - 1],
            ),
            Peer::Verifier => (0, 0),
        };
        self.rounds += 1;
        self.steps = steps;
        let losses = &statistics.fallbacks[self.losses..];
        self.losses = statistics.fallbacks.len();
        let (draft, verify) = (
            std::mem::take(&mut self.draft),
            std::mem::take(&mut self.verify),
        );
        v1::RoundReport {
            round: self.rounds,
            base_len,
            drafted,
            accepted,
            emitted,
            draft_us: draft.elapsed.as_micros() as u32,
            verify_us: verify.elapsed.as_micros() as u32,
            drafter: told(draft.reported),
            verifier: told(verify.reported),
            wire_bytes: bytes - std::mem::replace(&mut self.bytes, bytes),
            distributions: self.distributions.take(),
            accepted_by: Vec::new(),
            fallbacks: wire::report::fallbacks(losses),
        }
    }
}

/// Returns what a peer said of its share; none of one that had no part in the round.
fn told(reported: v1::Timing) -> Option<v1::Timing> {
    (reported != v1::Timing::default()).then_some(reported)
}

impl Driver {
    /// Returns whose draft tokens a round accepted, `accepted` in all.
    pub(super) fn accepted_by(&mut self, accepted: u32) -> Vec<v1::AcceptedDrafts> {
        let of_source = |(source, tokens): (&str, u64)| v1::AcceptedDrafts {
            source: source.to_owned(),
            tokens: tokens as u32,
        };
        let mut found: Vec<(&str, u64)> = Vec::new();
        if let Some((proposed, _)) = self.peers.streamed() {
            let before = &mut self.round.accepted;
            before.resize(proposed.len(), 0);
            for (proposed, before) in proposed.iter().zip(before) {
                let more = proposed.accepted - std::mem::replace(before, proposed.accepted);
                found.push((proposed.source, more));
            }
        } else {
            found.push((self.request.method.drafting.into(), accepted.into()));
        }
        let found = found.into_iter().filter(|(_, tokens)| *tokens > 0);
        found.map(of_source).collect()
    }

    /// Tells the session, and whoever watches, what came of the request under way.
    pub(super) fn handle(&mut self, answer: Result<PeerAnswer, CallFailure>) {
        let Some(pending) = &self.pending else {
            return;
        };
        let round = pending.round;
        let input = match answer {
            Ok(answer) => self.answered(answer),
            Err(failure) => self.failed(round, &failure),
        };
        let comes_in_parts = matches!(
            input,
            Input::Progress { .. } | Input::Decoded { .. } | Input::Scored { .. }
        );
        if !comes_in_parts {
            self.pending = None;
        }
        let now = self.now();
        for peer in self.peers.take_changed() {
            self.session.handle(Input::Changed { peer }, now);
        }
        self.session.handle(input, now);
        self.observe_losses();
        self.end_held_at_stop();
    }

    fn answered(&mut self, answer: PeerAnswer) -> Input {
        let timing = AnswerTiming {
            elapsed: self.sent.elapsed(),
            ..answer.timing
        };
        // Without its drafter a request of rounds goes on in forwards, like one whose target decodes.
        let lost_drafter = !self.session.statistics().fallbacks.is_empty();
        let in_forwards =
            self.request.method.streams() || lost_drafter && self.request.report_rounds;
        let record = &mut self.round;
        let by_verifier = !matches!(answer.input, Input::Drafted { .. });
        if by_verifier && timing.reported != v1::Timing::default() {
            let reused = timing.reported.reused_tokens;
            record.reused.get_or_insert(reused);
        }
        record.logprobs = answer.logprobs;
        let peer = match &answer.input {
            Input::Drafted { block, .. } => {
                record.draft = timing;
                record.proposals = answer.proposals;
                record.answered_by = Some(Peer::Drafter);
                if block.drafts.is_empty() && block.stop == DraftStop::Context {
                    record.fault.get_or_insert(PeerFault::ContextFull);
                }
                Peer::Drafter
            }
            Input::Verified { .. } => {
                record.verify = timing;
                record.distributions = answer.distributions;
                record.distributions_fetched += answer.distributions_fetched;
                record.answered_by = Some(Peer::Verifier);
                Peer::Verifier
            }
            Input::Decoded { drafts, .. } if in_forwards => {
                // The next forward is awaited from now on.
                self.sent = Instant::now();
                record.verify = timing;
                let is_told = drafts.is_some() || self.request.report_rounds;
                record.answered_by = is_told.then_some(Peer::Verifier);
                Peer::Verifier
            }
            Input::Decoded { .. } | Input::Scored { .. } => {
                record.answered_by = None;
                Peer::Verifier
            }
            _ => return answer.input,
        };
        if let Some(price) = price(&answer.input, &timing.reported) {
            let share_processors = self.peers.shares_processors();
            let price = Input::Priced {
                peer,
                price,
                share_processors,
            };
            self.session.handle(price, self.now());
        }
        self.observer.observe(&RequestEvent::Answered {
            input: &answer.input,
            timing,
            address: self.peers.address(peer),
        });
        answer.input
    }

    fn failed(&mut self, round: u64, failure: &CallFailure) -> Input {
        let CallFailure { peer, error } = failure;
        (self.peers.session(*peer)).give_up(FailureKind::of(error));
        if error.blames_proposals() {
            let reason = error.to_string();
            self.peers
                .session(Peer::Drafter)
                .give_up(FailureKind::Malformed);
            self.observe_failure(round, Peer::Drafter, PeerFault::Malformed, &reason);
            return Input::ProposalsRejected { round, reason };
        }
        self.observe_failure(round, *peer, error.fault(), &error.details());
        let failure = error.failure();
        if let PeerFailure::Overloaded { retry_after } = failure {
            let endpoint = self.peers.endpoint(*peer);
            let retry_after =
                endpoint.map_or(retry_after, |it| it.overloaded(retry_after, jitter()));
            return Input::Backpressure {
                round,
                peer: *peer,
                retry_after,
            };
        }
        Input::Failed {
            round,
            peer: *peer,
            reason: error.to_string(),
            retry: failure == PeerFailure::Transient,
        }
    }

    pub(super) fn observe_failure(
        &mut self,
        round: u64,
        peer: Peer,
        fault: PeerFault,
        reason: &str,
    ) {
        self.round.fault.get_or_insert(fault);
        let address = self.peers.address(peer);
        self.observer.observe(&RequestEvent::Failed {
            round,
            peer,
            fault,
            reason,
            address,
        });
    }

    /// Tells whoever watches whom the session lost meanwhile, and where it moved.
    pub(super) fn observe_losses(&mut self) {
        let fallbacks = &self.session.statistics().fallbacks;
        for fallback in &fallbacks[self.round.fallbacks..] {
            // What only the session found fault with cannot be right.
            let fault = self.round.fault.unwrap_or(PeerFault::Malformed);
            self.observer
                .observe(&RequestEvent::FellBack { fallback, fault });
        }
        self.round.fallbacks = fallbacks.len();
        let migrations = self.peers.migrations();
        let times = migrations - self.round.migrations;
        if times > 0 {
            self.round.migrations = migrations;
            self.observer
                .observe(&RequestEvent::Moved { times, migrations });
        }
    }
}

/// Returns the price that a peer reports with an answer; none if the answer reports no load.
fn price(input: &Input, reported: &v1::Timing) -> Option<Price> {
    if reported.batch == 0 && reported.sessions == 0 {
        return None;
    }
    // A drafter makes one forward for each level, a verifier one for the block.
    let forwards = match input {
        Input::Drafted { block, .. } => block.drafts.levels().max(1),
        _ => 1,
    };
    let seconds = |nanoseconds: f64| nanoseconds / 1e9;
    Some(Price::new(
        seconds(reported.row_ns.into()),
        reported.batch.into(),
        reported.sessions.max(reported.batch).into(),
        seconds(f64::from(reported.forward_us) * 1e3) / f64::from(forwards),
    ))
}
