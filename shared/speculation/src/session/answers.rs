//! What a session does with its peers' answers.

use std::time::Duration;

use super::{
    Action, CacheState, DraftBlock, DraftStop, Origin, Peer, Plan, Request, ScoredDrafts, Session,
    check,
};
use crate::TokenId;
use crate::draft_tree::DraftTree;
use crate::goodput::{MeasuredRound, Price};
use crate::verification::{LastToken, Verdict};

/// Tokens that the target decodes alone before it is timed.
const WARMING_UP: u32 = 8;

/// Why a drafter that can draft no more is lost.
pub(super) const CONTEXT_IS_FULL: &str = "the draft model's context is full";

impl Session {
    pub(super) fn drafted(&mut self, round: u64, answer: DraftBlock, now: Duration) {
        let Some(&Request::Draft {
            max_tokens,
            bonus_q,
        }) = self.requested()
        else {
            return;
        };
        let Some(outstanding) = self.take_outstanding(round, Peer::Drafter) else {
            return;
        };
        let took = outstanding.took(now);
        // With the distribution at the next position the verifier can still go on from both models.
        let bonus_came = bonus_q && self.config.plan == Plan::Speculative;
        if answer.drafts.is_empty() && answer.stop == DraftStop::Context && !bonus_came {
            return self.give_up(Peer::Drafter, CONTEXT_IS_FULL);
        }
        if let Err(malformed) = check::draft(&self.config, max_tokens, &answer) {
            return self.malformed(&outstanding, &malformed);
        }
        self.drafter_heard = true;
        // Who drafts without a forward, as Max-Gram does, needs none to catch up after a rest.
        let is_free = !answer.forwards.is_empty() && answer.forwards.iter().all(|&n| n == 0);
        let counts = match self.timing.drafter_cache {
            CacheState::Nothing => false,
            CacheState::Prompt => is_free,
            CacheState::Output => true,
        };
        self.timing.draft_took = took.filter(|_| counts);
        let verdict_at = self.timing.verdict_at.take().filter(|_| counts);
        self.timing.between = outstanding
            .sent
            .zip(verdict_at)
            .map(|(sent, at)| sent.saturating_sub(at));
        self.timing.drafter_cache = CacheState::Output;
        let looked_ahead = answer.stop == DraftStop::Policy
            || bonus_q && !check::ends_block(&self.config, &answer.drafts);
        self.statistics.drafted(&answer, looked_ahead);
        self.drafted_by_plan(answer, max_tokens);
    }

    pub(super) fn verified(&mut self, round: u64, answer: Verdict, now: Duration) {
        if !matches!(self.requested(), Some(Request::Verify { .. })) {
            return;
        }
        let Some(outstanding) = self.take_outstanding(round, Peer::Verifier) else {
            return;
        };
        let took = outstanding.took(now);
        let Request::Verify { drafts, .. } = &outstanding.request else {
            return;
        };
        if let Err(malformed) = check::verdict(&self.config, drafts, &answer) {
            return self.malformed(&outstanding, &malformed);
        }
        let (accepted, last) = (answer.path.len(), answer.last);
        self.target_goes_on = last == LastToken::Recovered;
        self.statistics.verified(drafts.len(), accepted, last);
        let took = took.filter(|_| self.timing.verifier_follows);
        self.timing.verifier_follows = true;
        self.measure(drafts, accepted, last, took);
        self.timing.verdict_at = Some(now);
        if let Plan::TokenCascade { max_run } = self.config.plan
            && self.run.is_full(max_run)
        {
            self.statistics.at_max_run += 1;
        }
        self.layers = answer.layers;
        let alone = drafts.is_empty();
        let origins = answer.emitted.iter().enumerate().map(|(index, &token)| {
            let origin = match () {
                () if index < accepted => Origin::Accepted,
                () if alone => self.target_origin(),
                () => last.into(),
            };
            (token, origin)
        });
        let mut tokens: Vec<_> = origins.collect();
        // Where the last slot was drafted too, the token added after it is one too many.
        let room = self.remaining() as usize;
        self.statistics.withheld += tokens.len().saturating_sub(room) as u32;
        tokens.truncate(room);
        if matches!(self.config.plan, Plan::TokenCascade { .. }) {
            self.run.end();
            self.statistics.deferral(std::iter::once(1.0));
        } else {
            let deferral = answer.deferral.iter().take(tokens.len());
            self.statistics.deferral(deferral.copied());
        }
        let ended = self.emit(tokens);
        self.go_on(ended);
    }

    pub(super) fn decoded(
        &mut self,
        round: u64,
        at: u32,
        (tokens, drafts): (&[TokenId], Option<ScoredDrafts>),
        now: Duration,
    ) {
        let expected = self.output.len() as u32;
        let round_is_current = round == self.round;
        let Some(outstanding) = &mut self.outstanding else {
            return;
        };
        let Request::Decode { max_tokens } = &mut outstanding.request else {
            return;
        };
        // What was decoded before a retry may arrive twice. A gap, or nothing at all, cannot come from
        // a peer in order; what is missing is asked for again when the time is up.
        if !round_is_current || outstanding.paused || at != expected || tokens.is_empty() {
            return;
        }
        if let Err(malformed) = check::decoded(&self.config, *max_tokens, tokens, drafts) {
            if let Some(outstanding) = self.outstanding.take() {
                self.malformed(&outstanding, &malformed);
            }
            return;
        }
        *max_tokens -= tokens.len() as u32;
        let done = *max_tokens == 0;
        // The first token includes a round trip, and the first few run with the caches of whatever ran before.
        let is_warm = outstanding.streamed >= WARMING_UP;
        let took = outstanding.took(now).filter(|_| is_warm);
        outstanding.streamed += tokens.len() as u32;
        outstanding.sent = Some(now);
        outstanding.progressed(now.saturating_add(self.config.round_timeout));
        if let Some(it) = drafts {
            self.statistics.drafted += it.scored;
            (self.statistics).verified(it.scored as usize, it.accepted as usize, it.last);
        } else {
            self.statistics.target_forwards += tokens.len() as u32;
        }
        let took = took.filter(|_| self.timing.verifier_follows);
        self.timing.verifier_follows = true;
        self.timing.verdict_at = None;
        if self.timing.drafter_cache == CacheState::Output {
            self.timing.drafter_cache = CacheState::Prompt;
        }
        let origin = self.decode_origin();
        let is_second = origin == Origin::Deferred;
        if is_second {
            let deferral = std::iter::repeat_n(1.0, tokens.len());
            self.statistics.deferral(deferral);
        } else if self.timing.rests {
            self.statistics.rested_tokens += tokens.len() as u32;
            if let Some(estimator) = &mut self.config.goodput {
                estimator.observe_alone(tokens.len() as u32, took);
            }
        } else if self.config.plan != Plan::TargetOnly && !self.config.streams {
            self.statistics.fallback_tokens += tokens.len() as u32;
        }
        self.run.end();
        self.target_goes_on = false;
        let accepted = drafts.map_or(0, |drafts| drafts.accepted) as usize;
        let added = drafts.map_or(origin, |drafts| drafts.last.into());
        let emitted = tokens.iter().enumerate().map(|(index, &token)| {
            let origin = if index < accepted {
                Origin::Accepted
            } else {
                added
            };
            (token, origin)
        });
        let ended = self.emit(emitted.collect());
        if done || ended {
            self.outstanding = None;
            self.go_on(ended);
        }
    }

    /// Takes note of the load that a peer reports, under draft length `auto`.
    pub(super) fn priced(&mut self, peer: Peer, price: Price, share_processors: Option<bool>) {
        // The first draft after a rest includes the forwards by which the drafter catches up; they are no part of a
        // draft token's price.
        if peer == Peer::Drafter && self.timing.drafter_cache != CacheState::Output {
            return;
        }
        if let Some(estimator) = &mut self.config.goodput {
            match peer {
                Peer::Drafter => estimator.drafter_reported(price, share_processors),
                Peer::Verifier => estimator.verifier_reported(price),
            }
        }
    }

    /// Returns the request whose answer is waited for.
    fn requested(&self) -> Option<&Request> {
        (self.outstanding.as_ref()).map(|outstanding| &outstanding.request)
    }

    /// Whether the last of `tokens` ends the output.
    pub(super) fn ends(&self, tokens: &[TokenId]) -> bool {
        let last = tokens.last();
        last.is_some_and(|token| self.config.end_tokens.contains(token))
    }

    /// Appends checked tokens; whether the last one ends the output.
    pub(super) fn emit(&mut self, tokens: Vec<(TokenId, Origin)>) -> bool {
        self.output.extend(tokens.iter().map(|&(token, _)| token));
        self.emitted = self.output.len();
        self.statistics.emitted = self.emitted as u32;
        if !tokens.is_empty() {
            self.actions.push_back(Action::Emit(tokens));
        }
        self.ends(&self.output)
    }

    /// Takes note of a decided block, if draft lengths follow what is measured.
    fn measure(
        &mut self,
        drafts: &DraftTree,
        accepted: usize,
        last: LastToken,
        took: Option<Duration>,
    ) {
        let Some(estimator) = &mut self.config.goodput else {
            return;
        };
        let levels = drafts.levels();
        let ended = last == LastToken::AcceptedEnd;
        estimator.observe(MeasuredRound {
            levels,
            nodes: drafts.len() as u32,
            accepted: accepted as u32,
            refused: !ended && (accepted as u32) < levels,
            draft: self.timing.draft_took,
            verify: took,
            between: self.timing.between,
        });
    }
}
