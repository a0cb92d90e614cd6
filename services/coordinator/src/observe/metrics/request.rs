//! What is counted of one request, from its arrival to its end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use ops::metrics::{Metrics, names};
use ops::process::Process;
use speculation::session::Statistics;
use tonic::Status;
use wire::failure::Failure;
use wire::v1;

use super::refusal;
use super::series::{MethodMetrics, ModelMetrics, TenantMetrics};
use crate::admitted::AdmittedRequest;
use crate::events::{RequestEvent, RequestStage};

/// `gen_ai.provider.name`: whose telemetry this is.
const PROVIDER: &str = "outrider";

/// `gen_ai.operation.name`: one for all requests, as their spans have it.
const OPERATION: &str = "chat";

/// What is counted of one request.
#[derive(Debug)]
pub(in crate::observe) struct RequestMetrics {
    metrics: Metrics,
    models: Arc<HashMap<String, Arc<ModelMetrics>>>,
    tenant: TenantMetrics,
    arrived: Instant,
    admitted: bool,
    running: Option<RunningMetrics>,
}

/// What is counted of a request in order.
#[derive(Debug)]
struct RunningMetrics {
    model: Arc<ModelMetrics>,
    of_method: MethodMetrics,
    /// Nodes at each level of a draft block.
    width: u32,
    /// Rounds counted so far.
    rounds: usize,
    output: Option<OutputTiming>,
}

impl RequestMetrics {
    /// Begins with a request that came in; `tenant` is the name of the token that it shows, if the token has one.
    pub(in crate::observe) fn new(
        process: &Process,
        models: Arc<HashMap<String, Arc<ModelMetrics>>>,
        tenant: Option<&str>,
        arrived: Instant,
    ) -> Self {
        Self {
            metrics: process.metrics.clone(),
            models,
            tenant: TenantMetrics::new(&process.metrics, tenant),
            arrived,
            admitted: false,
            running: None,
        }
    }

    /// Counts a request that never began.
    pub(in crate::observe) fn refused(&self, status: &Status) {
        let reason = refusal(status.code());
        self.tenant.request("refused");
        self.metrics
            .counter(&names::REQUESTS_REFUSED, &[reason])
            .inc();
        if !self.admitted && Failure::of_status(status) == Some(Failure::Overloaded) {
            self.metrics.counter(&names::ADMISSION_REJECTS, &[]).inc();
        }
    }

    pub(in crate::observe) fn observe(&mut self, event: &RequestEvent<'_>) {
        match *event {
            RequestEvent::Admitted => self.admitted = true,
            RequestEvent::Prepared { request, .. } => self.prepared(request),
            RequestEvent::Dropped { stage } => self.cancelled(stage),
            RequestEvent::Finished {
                request,
                finished,
                statistics,
                stage,
                trace_id,
            } => {
                if let Some(stage) = stage {
                    self.cancelled(stage);
                }
                self.finished(request, finished, statistics, trace_id);
            }
            _ => {
                if let RequestEvent::Emitted { chunk } = event {
                    let tokens = chunk.token_ids.len();
                    self.tenant.output_tokens.inc_by(tokens as f64);
                }
                if let Some(running) = &mut self.running {
                    running.observe(event);
                }
            }
        }
    }

    /// Counts a request that is in order and about to run.
    fn prepared(&mut self, request: &AdmittedRequest) {
        let Some(model) = self.models.get(&request.model).cloned() else {
            return;
        };
        let method = request.method.name();
        let prompt_tokens = request.prompt.len() as f64;
        model.add(&names::PROMPT_TOKENS, prompt_tokens);
        self.tenant.prompt_tokens.inc_by(prompt_tokens);
        self.running = Some(RunningMetrics {
            of_method: MethodMetrics::new(&self.metrics, &model.model, method),
            model,
            width: request.method.tree.width(),
            rounds: 0,
            output: None,
        });
    }

    /// Counts a client that went away while it waited for `stage`.
    fn cancelled(&self, stage: RequestStage) {
        let labels = [stage.into_str()];
        self.metrics.counter(&names::CANCELLATIONS, &labels).inc();
    }

    /// Counts a request that is over. `trace_id` names its trace, if it is sampled.
    fn finished(
        &mut self,
        request: &AdmittedRequest,
        finished: &v1::Finished,
        statistics: &Statistics,
        trace_id: Option<&str>,
    ) {
        let Some(mut running) = self.running.take() else {
            return;
        };
        running.finish(finished, statistics);
        let outcome = outcome(finished);
        let model = running.model.model.as_str();
        let labels = [model, request.method.name(), outcome];
        self.metrics.counter(&names::REQUESTS, &labels).inc();
        self.tenant.request(outcome);
        let gen_ai = [OPERATION, PROVIDER, model];
        let succeeded = matches!(outcome, "stop" | "length" | "tool_calls");
        let error = if succeeded { "" } else { outcome };
        let with_error = [OPERATION, PROVIDER, model, error];
        let seconds = self.arrived.elapsed().as_secs_f64();
        let observe = |metric, labels: &[&str], value: f64| {
            let histogram = self.metrics.histogram(metric, labels);
            histogram.observe_traced(value, trace_id);
        };
        observe(&names::REQUEST_DURATION, &with_error, seconds);
        let Some(output) = running.output.filter(|_| succeeded) else {
            return;
        };
        let waited = output.first.duration_since(self.arrived).as_secs_f64();
        observe(&names::TIME_TO_FIRST_TOKEN, &gen_ai, waited);
        if let Some(each) = output.per_token() {
            observe(&names::TIME_PER_OUTPUT_TOKEN, &gen_ai, each);
        }
    }
}

impl RunningMetrics {
    fn observe(&mut self, event: &RequestEvent<'_>) {
        match *event {
            RequestEvent::Sent {
                attempt, request, ..
            } if attempt > 0 => (self.model).add_one(&names::RETRIES, request.peer().name()),
            RequestEvent::LengthDecided { decision, .. } => self.model.length_decided(decision),
            RequestEvent::FellBack { fault, .. } => {
                self.model.add_one(&names::FALLBACKS, fault.name());
            }
            RequestEvent::Moved { times, .. } => self.model.add(&names::MIGRATIONS, times.into()),
            RequestEvent::Streamed { proposed, counted } => {
                self.model.streamed(proposed, &counted);
            }
            RequestEvent::Emitted { chunk } => self.emitted(chunk.token_ids.len() as u32),
            RequestEvent::RoundEnded { report, verified } => {
                self.model.round(report);
                if verified && report.drafted > 0 {
                    self.block(report.drafted, report.accepted);
                }
            }
            _ => {}
        }
    }

    /// Counts output that goes to the client.
    fn emitted(&mut self, tokens: u32) {
        if tokens == 0 {
            return;
        }
        self.of_method.emitted.inc_by(tokens.into());
        let now = Instant::now();
        match &mut self.output {
            Some(output) => output.goes_on(now, tokens),
            None => self.output = Some(OutputTiming::begins(now)),
        }
    }

    /// Counts a draft block that was verified.
    fn block(&mut self, drafted: u32, accepted: u32) {
        self.rounds += 1;
        self.of_method.block(drafted, accepted);
        self.model.block(drafted.div_ceil(self.width), accepted);
    }

    /// Counts what is known at the end.
    fn finish(&mut self, finished: &v1::Finished, statistics: &Statistics) {
        // Rounds whose tokens a stop text took back were not reported.
        for round in self.rounds..statistics.per_step_drafted.len() {
            let accepted = statistics.per_step_accepted[round];
            self.block(statistics.per_step_drafted[round], accepted);
        }
        self.of_method.finish(statistics);
        let speculation = finished.speculation.as_ref();
        if let Some(gain) = speculation.and_then(|speculation| speculation.measured_gain) {
            self.model.gained(gain);
        }
        let inexact = u32::from(!finished.exact);
        for (metric, count) in [
            (&names::FALLBACK_TOKENS, statistics.fallback_tokens),
            (&names::RESTED_TOKENS, statistics.rested_tokens),
            (&names::INEXACT_REQUESTS, inexact),
        ] {
            self.model.add(metric, count.into());
        }
    }
}

/// When the output of a request came, and how many tokens.
#[derive(Clone, Copy, Debug)]
struct OutputTiming {
    /// When the first tokens came.
    first: Instant,
    last: Instant,
    /// Tokens after those that came first, together.
    later: u32,
}

impl OutputTiming {
    /// Begins when the first tokens come.
    fn begins(at: Instant) -> Self {
        Self {
            first: at,
            last: at,
            later: 0,
        }
    }

    /// Adds so many more tokens.
    fn goes_on(&mut self, at: Instant, tokens: u32) {
        self.last = at;
        self.later += tokens;
    }

    /// Returns the seconds that each token after the first ones took. None if there is none.
    fn per_token(&self) -> Option<f64> {
        let took = (self.last - self.first).as_secs_f64();
        (self.later > 0).then(|| took / f64::from(self.later))
    }
}

/// Returns how a request ended, in a word.
pub(in crate::observe) fn outcome(finished: &v1::Finished) -> &'static str {
    match finished.reason() {
        v1::FinishReason::Stop => "stop",
        v1::FinishReason::Length => "length",
        v1::FinishReason::ToolCalls => "tool_calls",
        v1::FinishReason::Cancelled => "cancelled",
        v1::FinishReason::Error | v1::FinishReason::Unspecified
            if finished.error_code == Failure::Late.code() as u32 =>
        {
            "deadline"
        }
        v1::FinishReason::Error | v1::FinishReason::Unspecified => "error",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// However many tokens come first, the time since then is that of the others.
    #[test]
    fn the_tokens_that_come_first_have_no_time_of_their_own() {
        let first = Instant::now();
        let at = |ms| first + Duration::from_millis(ms);
        let mut output = OutputTiming::begins(first);
        assert_eq!(output.per_token(), None);
        output.goes_on(at(30), 5);
        output.goes_on(at(80), 3);
        assert_eq!(output.per_token(), Some(0.01));
        assert_eq!(output.first, first);
    }
}
