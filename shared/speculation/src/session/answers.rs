//! What a session does with its peers' answers.

use std::time::Duration;

use super::{Action, FinishReason, Origin, Outstanding, Peer, Plan, Request, Session, check};
use crate::TokenId;
use crate::verification::LastToken;

impl Session {
    pub(super) fn drafted(&mut self, round: u64, tokens: Vec<TokenId>, now: Duration) {
        let Some(outstanding) = self.take_outstanding(round, Peer::Drafter) else {
            return;
        };
        let Request::Draft { max_tokens } = outstanding.request else {
            return;
        };
        if let Err(malformed) = check::draft(&self.config, max_tokens, &tokens) {
            return self.malformed(outstanding, &malformed, now);
        }
        if self.config.plan == Plan::DraftOnly {
            let ended = self.emit(
                tokens
                    .into_iter()
                    .map(|token| (token, Origin::Accepted))
                    .collect(),
            );
            return self.go_on(ended, now);
        }
        self.send(Request::Verify { drafts: tokens }, 0, now);
    }

    pub(super) fn verified(
        &mut self,
        round: u64,
        emitted: &[TokenId],
        accepted: usize,
        last: LastToken,
        now: Duration,
    ) {
        let is_verify = |o: &Outstanding| matches!(o.request, Request::Verify { .. });
        if !self.outstanding.as_ref().is_some_and(is_verify) {
            return;
        }
        let Some(outstanding) = self.take_outstanding(round, Peer::Verifier) else {
            return;
        };
        let Request::Verify { drafts } = &outstanding.request else {
            return;
        };
        if let Err(malformed) = check::verdict(&self.config, drafts, emitted, accepted, last) {
            return self.malformed(outstanding, &malformed, now);
        }
        self.statistics.verified(drafts.len(), accepted);
        let alone = drafts.is_empty();
        let origins = emitted.iter().enumerate().map(|(index, &token)| {
            let origin = match () {
                () if index < accepted => Origin::Accepted,
                () if alone => Origin::Target,
                () => last.into(),
            };
            (token, origin)
        });
        let ended = self.emit(origins.collect());
        self.go_on(ended, now);
    }

    pub(super) fn decoded(&mut self, round: u64, at: u32, tokens: &[TokenId], now: Duration) {
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
        if let Err(malformed) = check::decoded(&self.config, *max_tokens, tokens) {
            if let Some(outstanding) = self.outstanding.take() {
                self.malformed(outstanding, &malformed, now);
            }
            return;
        }
        *max_tokens -= tokens.len() as u32;
        let done = *max_tokens == 0;
        // Progress: what comes after it has its own time and its own retries.
        outstanding.due = now + self.config.round_timeout;
        outstanding.attempt = 0;
        self.statistics.target_forwards += tokens.len() as u32;
        let ended = self.emit(
            tokens
                .iter()
                .map(|&token| (token, Origin::Target))
                .collect(),
        );
        if done || ended {
            self.outstanding = None;
            self.go_on(ended, now);
        }
    }

    /// Appends checked tokens; whether the last one ends the output.
    pub(super) fn emit(&mut self, tokens: Vec<(TokenId, Origin)>) -> bool {
        self.output.extend(tokens.iter().map(|&(token, _)| token));
        let ended = self
            .output
            .last()
            .is_some_and(|token| self.config.end_tokens.contains(token));
        self.actions.push_back(Action::Emit(tokens));
        ended
    }

    pub(super) fn go_on(&mut self, ended: bool, now: Duration) {
        if ended {
            self.finish(FinishReason::Stop);
        } else if self.remaining() == 0 {
            self.finish(FinishReason::Length);
        } else {
            self.begin_round(now);
        }
    }
}
