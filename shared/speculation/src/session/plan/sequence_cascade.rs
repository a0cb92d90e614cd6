//! The draft model's whole response, or else the target's (Narasimhan et al., "Faster Cascades via Speculative
//! Decoding", section 3.2): the response is kept iff its score, the mean log probability of its tokens, read from
//! the unscaled distributions, is at least the threshold. The paper sums; a sum falls with every token, and defers
//! every long response. The end token is scored if it was drafted. \[choice\]

use super::super::DraftBlock;
use super::super::answers::CONTEXT_IS_FULL;
use super::super::{Action, DraftStop, FinishReason, Origin, Peer, Plan, Request, Session};
use super::{accepted, draft};

/// The draft model's response: held until it is complete and decided.
#[derive(Debug, Default)]
pub(in super::super) struct HeldResponse {
    stage: ResponseStage,
    /// Unscaled log probability of each held token, at most 0.
    logprobs: Vec<f32>,
}

#[derive(Debug, Default)]
enum ResponseStage {
    #[default]
    Growing,
    /// Nothing more is drafted; how the request ends if it is kept.
    Complete(FinishReason),
    /// The score is too low: the target writes another response.
    Deferred,
    /// The drafter was lost: the target writes another response.
    Lost,
}

impl HeldResponse {
    pub(in super::super) fn is_given_up(&self) -> bool {
        matches!(self.stage, ResponseStage::Deferred | ResponseStage::Lost)
    }

    /// The sum, or the mean, of the held tokens' log probabilities; 0 if there are none.
    fn score(&self, mean: bool) -> f64 {
        let sum: f64 = self
            .logprobs
            .iter()
            .map(|&logprob| f64::from(logprob))
            .sum();
        let count = if mean { self.logprobs.len().max(1) } else { 1 };
        sum / count as f64
    }
}

impl Session {
    /// Whether what the drafter wrote is still held, and nothing emitted.
    pub(in super::super) fn is_holding(&self) -> bool {
        let holds = matches!(self.config.plan, Plan::SequenceCascade { .. });
        holds && !self.finished && !self.response.is_given_up()
    }

    /// Returns the origin of a token that the target decoded alone.
    pub(in super::super) fn decode_origin(&self) -> Origin {
        match self.response.stage {
            ResponseStage::Deferred => Origin::Deferred,
            ResponseStage::Growing | ResponseStage::Complete(_) | ResponseStage::Lost => {
                Origin::Target
            }
        }
    }

    pub(super) fn response_request(&self) -> Request {
        let max_tokens = self.remaining();
        if self.response.is_given_up() {
            Request::Decode { max_tokens }
        } else {
            draft(max_tokens)
        }
    }

    pub(super) fn extend_response(&mut self, answer: &DraftBlock) {
        self.output.extend_from_slice(answer.drafts.tokens());
        let logprobs = answer.logprobs.iter();
        self.response
            .logprobs
            .extend(logprobs.map(|logprob| logprob.min(0.0)));
        if self.ends(answer.drafts.tokens()) {
            self.response.stage = ResponseStage::Complete(FinishReason::Stop);
        } else if self.remaining() == 0 {
            self.response.stage = ResponseStage::Complete(FinishReason::Length);
        } else if answer.stop == DraftStop::Context {
            self.give_up(Peer::Drafter, CONTEXT_IS_FULL);
        } else {
            self.begin_round();
        }
    }

    /// A stop string ends the response at `len` tokens.
    pub(in super::super) fn end_response(&mut self, len: usize) {
        let dropped = self.output.len().saturating_sub(len);
        self.statistics.discarded += dropped as u32;
        self.output.truncate(len);
        self.response.logprobs.truncate(len);
        self.response.stage = ResponseStage::Complete(FinishReason::Stop);
        // What was to be drafted after it is not wanted any more.
        self.outstanding = None;
        let is_send = |action: &Action| matches!(action, Action::Send { .. });
        self.actions.retain(|action| !is_send(action));
    }

    /// Keeps or discards a response that is complete.
    pub(in super::super) fn decide_response(&mut self) {
        let Plan::SequenceCascade { threshold, mean } = self.config.plan else {
            return;
        };
        let ResponseStage::Complete(reason) = &self.response.stage else {
            return;
        };
        if self.finished {
            return;
        }
        let reason = reason.clone();
        if self.response.score(mean) >= threshold {
            let tokens = accepted(&std::mem::take(&mut self.output));
            let deferral = std::iter::repeat_n(0.0, tokens.len());
            self.statistics.deferral(deferral);
            self.emit(tokens);
            self.finish(reason);
        } else {
            self.discard_response(ResponseStage::Deferred);
        }
    }

    /// The drafter is lost, and with it what it wrote.
    pub(in super::super) fn lose_response(&mut self) {
        self.discard_response(ResponseStage::Lost);
    }

    /// The target writes another response, from nothing.
    fn discard_response(&mut self, stage: ResponseStage) {
        self.statistics.discarded += self.output.len() as u32;
        self.output.clear();
        self.response.logprobs.clear();
        self.response.stage = stage;
        self.begin_round();
    }
}
