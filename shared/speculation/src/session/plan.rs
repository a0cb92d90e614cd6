//! What is particular to each plan: the request a round begins with, and what a draft leads to.

mod bild;
mod sequence_cascade;
mod speculative;
mod token_cascade;

pub(super) use sequence_cascade::HeldResponse;
pub(super) use token_cascade::DraftRun;

use super::{DraftBlock, Origin, Plan, Request, Session};
use crate::TokenId;

impl Session {
    /// Asks for the first step of the next round.
    pub(super) fn begin_round(&mut self) {
        self.round += 1;
        self.drafter_heard = false;
        self.timing.draft_took = None;
        self.timing.between = None;
        self.timing.rests = false;
        let remaining = self.remaining();
        let request = match self.config.plan {
            Plan::Speculative if !self.config.streams => self.block_request(),
            Plan::Speculative | Plan::TargetOnly => Request::Decode {
                max_tokens: remaining,
            },
            Plan::DraftOnly => draft(self.config.draft_len.min(remaining)),
            Plan::TokenCascade { max_run } => self.run_request(max_run),
            Plan::SequenceCascade { .. } => self.response_request(),
            // The draft model's distribution at the very next position, and nothing drafted from it.
            Plan::OracleCascade => Request::Draft {
                max_tokens: 0,
                bonus_q: true,
            },
            Plan::Bild {
                window,
                code_variant,
                ..
            } => self.window_request(window, code_variant),
        };
        self.send(request, 0);
    }

    /// Goes on with a checked answer to a request for `max_tokens` draft tokens.
    pub(super) fn drafted_by_plan(&mut self, answer: DraftBlock, max_tokens: u32) {
        match self.config.plan {
            Plan::Speculative | Plan::OracleCascade => {
                self.verify_block(answer.drafts, answer.stop, max_tokens);
            }
            Plan::DraftOnly => {
                let ended = self.emit_drafts(answer.drafts.tokens());
                self.go_on(ended);
            }
            Plan::TokenCascade { max_run } => self.extend_run(&answer, max_run),
            Plan::SequenceCascade { .. } => self.extend_response(&answer),
            Plan::Bild {
                window,
                verify_on_finish,
                ..
            } => self.extend_window(&answer, window, verify_on_finish),
            // It never asks for a draft.
            Plan::TargetOnly => {}
        }
    }

    /// Returns the origin of a token that the target chose with no draft token before it in the round.
    pub(super) fn target_origin(&self) -> Origin {
        if let Plan::TokenCascade { .. } = self.config.plan {
            Origin::Deferred
        } else {
            Origin::Target
        }
    }

    /// Emits draft tokens that nobody verifies; whether the last one ends the output.
    fn emit_drafts(&mut self, tokens: &[TokenId]) -> bool {
        self.emit(accepted(tokens))
    }
}

/// `tokens`, kept as the draft model wrote them.
fn accepted(tokens: &[TokenId]) -> Vec<(TokenId, Origin)> {
    let tokens = tokens.iter();
    tokens.map(|&token| (token, Origin::Accepted)).collect()
}

fn draft(max_tokens: u32) -> Request {
    Request::Draft {
        max_tokens,
        bonus_q: false,
    }
}
