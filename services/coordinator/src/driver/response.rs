//! What a request under way tells its client.

use std::time::{Duration, Instant};

use ops::health::Health;
use speculation::TokenId;
use speculation::goodput::Estimator;
use speculation::session::{FinishReason, Input, Origin, Plan};
use text::OutputText;
use tonic::Code;
use v1::generate_response::Part;
use wire::failure::Failure;
use wire::v1;

use super::Driver;
use super::channel::ResponseSender;
use crate::events::RequestEvent;
use crate::proposers::PREDICTION;

/// How long a client should wait whose request a stopping coordinator cannot take, or finish.
pub(crate) const RESTART_RETRY_AFTER: Duration = Duration::from_secs(1);

/// The response of one request.
pub(super) struct ClientResponse {
    pub(super) output: OutputText,
    pub(super) sender: ResponseSender,
    /// Whether this coordinator is about to stop.
    pub(super) health: Health,
    /// When the request must be over.
    pub(super) deadline: Instant,
    pub(super) request_id: String,
    pub(super) first_token: Option<Duration>,
    /// Tokens handed to the client.
    pub(super) delivered: usize,
    /// What ended the request before the session did, or before its tokens were handed over.
    pub(super) early_end: Option<EarlyEnd>,
}

/// What ends a request whatever its session comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EarlyEnd {
    /// This coordinator is about to stop.
    LastCall,
    /// The client did not read before the request's deadline.
    Deadline,
}

impl Driver {
    /// Hands `tokens` to the client; and if they end a round, its report.
    pub(super) async fn emit(&mut self, tokens: &[(TokenId, Origin)]) {
        // A stop string among the tokens may cut the output, so where they began is noted before.
        let base_len = self.session.emitted().saturating_sub(tokens.len()) as u32;
        let emitted = self.response.output.emit(tokens);
        let now = self.now();
        self.response.first_token.get_or_insert(now);
        let mut chunk = emitted.chunk;
        if self.request.logprobs.is_some() {
            let range = base_len as usize..base_len as usize + chunk.token_ids.len();
            chunk.logprobs = self.round.logprobs.take(range);
        }
        self.observer
            .observe(&RequestEvent::Emitted { chunk: &chunk });
        self.place.quota.charge_output(chunk.token_ids.len());
        self.respond(Part::Chunk(chunk)).await;
        if let Some(len) = emitted.stopped_at {
            self.session.handle(Input::Stop { len }, self.now());
        }
        // The tokens of a round come first: the report speaks of what the client has.
        if let Some(by) = self.round.answered_by.take() {
            let (statistics, bytes) = (self.session.statistics(), self.peers.traffic().rounds);
            let range = (base_len, tokens.len() as u32);
            let report = self.round.report(by, statistics, range, bytes);
            self.observer.observe(&RequestEvent::RoundEnded {
                report: &report,
                verified: by == speculation::session::Peer::Verifier,
            });
            if self.request.report_rounds {
                let accepted_by = self.accepted_by(report.accepted);
                let report = v1::RoundReport {
                    accepted_by,
                    ..report
                };
                self.respond(Part::Round(report)).await;
            }
        }
    }

    /// Sends a prompt of a single token to a client that wants its log probabilities. Such a prompt has none, so no
    /// verifier is asked.
    pub(super) async fn begin_prompt(&mut self) {
        if self.request.prompt_logprobs && self.request.prompt.len() == 1 {
            let part = v1::PromptPart {
                token_ids: self.request.prompt.clone(),
                logprobs: Vec::new(),
            };
            self.respond(Part::Prompt(part)).await;
        }
    }

    /// Sends the next `count` log probabilities of the prompt to the client, which already has the first `from`. The
    /// prompt's first token, which has none, is sent with the first of them.
    pub(super) async fn emit_scores(&mut self, from: u32, count: u32) {
        let range = from as usize..(from + count) as usize;
        let first = if from == 0 { 0 } else { range.start + 1 };
        let part = v1::PromptPart {
            token_ids: self.request.prompt[first..=range.end].to_vec(),
            logprobs: self.round.logprobs.take(range),
        };
        self.respond(Part::Prompt(part)).await;
    }

    /// Sends a part to the client. A client that does not read holds its request up, until the
    /// request's deadline or the coordinator's last call and no longer; meanwhile what peers send is read and held,
    /// within bounds, so that it does not stand in the way of other requests.
    pub(super) async fn respond(&mut self, part: Part) {
        let tokens = match &part {
            Part::Chunk(chunk) => chunk.token_ids.len(),
            _ => 0,
        };
        let response = &self.response;
        let message = v1::GenerateResponse { part: Some(part) };
        let sent = tokio::select! {
            biased;
            sent = response.sender.send(message) => sent,
            () = response.health.last_call() => return self.end_early(EarlyEnd::LastCall),
            () = tokio::time::sleep_until(response.deadline.into()) => return self.end_early(EarlyEnd::Deadline),
            never = self.peers.read_ahead() => match never {},
        };
        if sent {
            self.response.delivered += tokens;
        } else {
            self.session.handle(Input::Cancel, self.now());
        }
    }

    pub(super) fn started(&self) -> v1::Started {
        let request = &self.request;
        v1::Started {
            request_id: self.response.request_id.clone(),
            model: request.model.clone(),
            method: request.method.name().to_owned(),
            seed: request.seed,
            prompt_tokens: request.prompt.len() as u32,
            max_tokens: request.max_tokens,
            reproducible: request.is_reproducible,
            warnings: request.warnings.clone(),
        }
    }

    pub(super) async fn finish(mut self, reason: &FinishReason) {
        self.observer.observe(&RequestEvent::Flushing);
        let rest = match reason {
            FinishReason::Stop | FinishReason::Length => self.response.output.finish(),
            _ => v1::Chunk::default(),
        };
        if rest != v1::Chunk::default() {
            let chunk = rest;
            self.observer
                .observe(&RequestEvent::Emitted { chunk: &chunk });
            self.respond(Part::Chunk(chunk)).await;
        }
        let mut predicted = (0, 0);
        if let Some((proposed, counted)) = self.peers.streamed() {
            let proposed = &proposed[..];
            let prediction = proposed.iter().find(|of| of.source == PREDICTION);
            predicted = prediction.map_or((0, 0), |of| (of.accepted, of.tokens - of.accepted));
            self.observer
                .observe(&RequestEvent::Streamed { proposed, counted });
        }
        let finished = self.finished(reason, predicted);
        let statistics = self.session.statistics();
        self.observer.finish(&self.request, &finished, statistics);
        let part = Some(Part::Finished(finished));
        self.response.sender.finish(v1::GenerateResponse { part });
    }

    /// Returns what the request came to; `predicted` counts the tokens of its prediction that were accepted, and those that were
    /// not.
    fn finished(&self, reason: &FinishReason, (accepted, rejected): (u64, u64)) -> v1::Finished {
        let (finish_reason, code, error) = match self.response.early_end {
            Some(EarlyEnd::LastCall) => interrupted(),
            Some(EarlyEnd::Deadline) => wire::report::finish(&FinishReason::DeadlineExceeded),
            None => wire::report::finish(reason),
        };
        let (calls, reasoning_tokens) = self.response.output.calls_and_reasoning();
        let finish_reason = match finish_reason {
            v1::FinishReason::Stop if calls > 0 => v1::FinishReason::ToolCalls,
            reason => reason,
        };
        let (request, session) = (&self.request, &self.session);
        let (moves, bytes) = (self.peers.moves(), self.peers.traffic());
        let statistics = session.statistics();
        let tokens = self.response.delivered;
        let lengths = session.goodput();
        v1::Finished {
            reason: finish_reason.into(),
            error,
            error_code: code as u32,
            usage: Some(v1::Usage {
                prompt_tokens: request.prompt.len() as u32,
                completion_tokens: tokens as u32,
                reasoning_tokens,
                accepted_prediction_tokens: accepted as u32,
                rejected_prediction_tokens: rejected as u32,
                cached_prompt_tokens: (self.round.reused.unwrap_or_default())
                    .min(request.prompt.len() as u32),
            }),
            speculation: Some(v1::SpeculationStatistics {
                draft_forwards: statistics.draft_forwards + self.round.distributions_fetched,
                migrations: moves,
                wire_bytes: bytes.opening + bytes.rounds,
                rounds: session.rounds(),
                predicted_gain: lengths.and_then(|lengths| lengths.decision().gain),
                measured_gain: lengths.and_then(Estimator::measured_gain),
                length_decision: lengths.map_or_else(String::new, |lengths| {
                    lengths.decision().why.name().to_owned()
                }),
                wire_bytes_per_round: bytes.rounds as f64 / session.rounds().max(1) as f64,
                ..wire::report::statistics(statistics)
            }),
            timing: Some(wire::report::timing(
                self.response.first_token,
                self.now(),
                tokens,
            )),
            effective_method: self.effective_method().to_owned(),
            exact: session.is_exact(),
            seed: request.seed,
            settings: wire::report::settings(&request.method, request.draft_len),
            lossless: request.method.is_lossless(),
            reproducible: request.is_reproducible && session.is_exact(),
            retry_after_ms: match self.response.early_end {
                Some(EarlyEnd::LastCall) => RESTART_RETRY_AFTER.as_millis() as u32,
                _ => 0,
            },
            stop_text: self.response.output.stop_text().to_owned(),
        }
    }

    /// Returns the method that made the output: the target alone if nothing was ever drafted, although the
    /// method asked for it.
    fn effective_method(&self) -> &'static str {
        let method = &self.request.method;
        let statistics = self.session.statistics();
        let needs_drafter =
            !matches!(method.plan, Plan::TargetOnly | Plan::DraftOnly) && !method.streams();
        let alone = !self.request.has_drafters
            || !statistics.fallbacks.is_empty() && statistics.draft_forwards == 0;
        if needs_drafter && alone {
            "target-only"
        } else {
            method.effective_name()
        }
    }
}

/// Returns why an answer ended that a stopping coordinator could not wait for.
fn interrupted() -> (v1::FinishReason, Code, String) {
    let what = "the coordinator is shutting down; ask again".to_owned();
    (v1::FinishReason::Error, Failure::Unavailable.code(), what)
}
