//! The log lines of one request.

use std::sync::Arc;
use std::time::Instant;

use wire::v1;

use crate::admitted::AdmittedRequest;
use crate::events::RequestEvent;

/// The log lines of one request. What a client wrote never stands in them.
#[derive(Debug)]
pub(super) struct RequestLog {
    pub(super) began: Instant,
    /// What the client is told its request is called; empty before it is prepared.
    pub(super) request_id: String,
    /// The name of the token that it shows, which is in the coordinator's own file.
    pub(super) tenant: Option<Arc<str>>,
}

impl RequestLog {
    /// Returns the span that the request's log lines are written in.
    pub(super) fn lines(&self) -> tracing::Span {
        // Of the highest level, so that lines of every level have their request's id.
        tracing::error_span!("request", request_id = self.request_id)
    }

    pub(super) fn observe(&mut self, event: &RequestEvent<'_>) {
        match *event {
            RequestEvent::Prepared { request_id, .. } => {
                request_id.clone_into(&mut self.request_id);
            }
            RequestEvent::Sent {
                round,
                attempt,
                request,
                ..
            } if attempt > 0 => {
                tracing::debug!(round, attempt, peer = ?request.peer(), "asking again");
            }
            RequestEvent::Failed {
                round,
                peer,
                fault,
                reason,
                address,
            } => {
                let fault = fault.name();
                let address = address.map(tracing::field::display);
                tracing::debug!(round, ?peer, fault, address, reason, "peer failed");
            }
            RequestEvent::FellBack { fallback, .. } => {
                let (peer, position, reason) = (fallback.peer, fallback.position, &fallback.reason);
                tracing::debug!(?peer, position, reason, "going on without a peer");
            }
            RequestEvent::Moved { migrations, .. } => {
                tracing::debug!(migrations, "moved to another replica");
            }
            RequestEvent::Finished {
                request,
                finished,
                statistics,
                ..
            } => self.finished(request, finished, statistics.fallbacks.len()),
            RequestEvent::Dropped { stage } => {
                tracing::debug!(stage = stage.into_str(), "request dropped");
            }
            RequestEvent::LengthDecided { decision, .. } => {
                let why = decision.why.name();
                tracing::trace!(
                    len = decision.len,
                    gain = decision.gain,
                    why,
                    "length decided"
                );
            }
            RequestEvent::Admitted
            | RequestEvent::Sent { .. }
            | RequestEvent::Answered { .. }
            | RequestEvent::Streamed { .. }
            | RequestEvent::Emitted { .. }
            | RequestEvent::RoundEnded { .. }
            | RequestEvent::Flushing => {}
        }
    }

    fn finished(&self, request: &AdmittedRequest, finished: &v1::Finished, fallbacks: usize) {
        let usage = finished.usage.unwrap_or_default();
        let (tokens, cached_tokens) = (usage.completion_tokens, usage.cached_prompt_tokens);
        let total_ms = self.began.elapsed().as_millis() as u64;
        let first_token_ms = finished.timing.filter(|_| tokens > 0);
        let first_token_ms = first_token_ms.map(|timing| timing.time_to_first_token_ms as u64);
        let speculation = finished.speculation.as_ref();
        let accepted = speculation.map_or(0, |it| it.num_accepted_draft_tokens);
        let (model, method) = (&request.model, request.method.name());
        let prompt_tokens = request.prompt.len();
        let tenant = self.tenant.as_deref();
        // The level of a line is known when the program is compiled.
        macro_rules! line {
            ($level:ident, $why:ident, $text:literal) => {
                tracing::$level!(
                    $why,
                    tenant,
                    model,
                    method,
                    prompt_tokens,
                    cached_tokens,
                    tokens,
                    accepted,
                    first_token_ms,
                    total_ms,
                    fallbacks,
                    $text
                )
            };
        }
        if finished.reason() == v1::FinishReason::Error {
            let error = &finished.error;
            line!(warn, error, "request failed");
        } else {
            let reason = finished.reason().as_str_name();
            line!(info, reason, "request finished");
        }
    }
}
