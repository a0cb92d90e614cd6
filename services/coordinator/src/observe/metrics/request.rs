//! What is counted of one request, from its arrival to its end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use ops::metrics::{Counter, Histogram, Metrics, names};
use ops::process::Process;
use speculation::session::Statistics;
use tonic::Status;
use wire::failure::Failure;
use wire::v1;

use super::model::ModelMetrics;
use super::output::{Output, TenantMetrics};
use super::refusal;
use crate::admitted::AdmittedRequest;
use crate::events::{Event, Stage};

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
    running: Option<RunningRequest>,
}

/// What is counted of a request in order.
#[derive(Debug)]
struct RunningRequest {
    model: Arc<ModelMetrics>,
    of_method: MethodMetrics,
    method: &'static str,
    /// Nodes at each level of a draft block.
    width: u32,
    /// Rounds counted so far.
    rounds: usize,
    output: Option<Output>,
}

/// The metrics of a model and method.
#[derive(Debug)]
struct MethodMetrics {
    emitted: Counter,
    rounds: Counter,
    drafted: Counter,
    accepted: Counter,
    discarded: Counter,
    lengths: Histogram,
    target_forwards: Counter,
    judged: Counter,
    deferred: Counter,
}

impl MethodMetrics {
    fn new(metrics: &Metrics, model: &str, method: &str) -> Self {
        let counter = |metric| metrics.counter(metric, &[model, method]);
        Self {
            emitted: counter(&names::EMITTED_TOKENS),
            rounds: counter(&names::ROUNDS),
            drafted: counter(&names::DRAFT_TOKENS),
            accepted: counter(&names::ACCEPTED_TOKENS),
            discarded: counter(&names::DISCARDED_TOKENS),
            lengths: metrics.histogram(&names::ACCEPTED_LENGTH, &[model, method]),
            target_forwards: counter(&names::TARGET_FORWARDS),
            judged: counter(&names::JUDGED_POSITIONS),
            deferred: counter(&names::DEFERRED_POSITIONS),
        }
    }
}

impl RequestMetrics {
    /// A request came in; `tenant` is the name of the token that it shows, if the token has one.
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

    /// It never began.
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

    pub(in crate::observe) fn observe(&mut self, event: &Event<'_>) {
        match *event {
            Event::Admitted => self.admitted = true,
            Event::Prepared { request, .. } => self.prepared(request),
            Event::Dropped { stage } => self.cancelled(stage),
            Event::Finished {
                finished,
                statistics,
                stage,
                trace_id,
            } => {
                if let Some(stage) = stage {
                    self.cancelled(stage);
                }
                self.finished(finished, statistics, trace_id);
            }
            _ => {
                if let Event::Emitted { chunk } = event {
                    let tokens = chunk.token_ids.len();
                    self.tenant.output_tokens.inc_by(tokens as f64);
                }
                if let Some(running) = &mut self.running {
                    running.observe(event);
                }
            }
        }
    }

    /// It is in order and about to run.
    fn prepared(&mut self, request: &AdmittedRequest) {
        let Some(model) = self.models.get(&request.model).cloned() else {
            return;
        };
        let method = request.method.name();
        let prompt_tokens = request.prompt.len() as f64;
        model.prompt_tokens.inc_by(prompt_tokens);
        self.tenant.prompt_tokens.inc_by(prompt_tokens);
        self.running = Some(RunningRequest {
            of_method: MethodMetrics::new(&self.metrics, &model.model, method),
            model,
            method,
            width: request.method.tree.width(),
            rounds: 0,
            output: None,
        });
    }

    /// The client went away while it waited for `stage`.
    fn cancelled(&self, stage: Stage) {
        let labels = [stage.name()];
        self.metrics.counter(&names::CANCELLATIONS, &labels).inc();
    }

    /// It is over. `trace_id` names its trace, if it is sampled.
    fn finished(
        &mut self,
        finished: &v1::Finished,
        statistics: &Statistics,
        trace_id: Option<&str>,
    ) {
        let Some(mut running) = self.running.take() else {
            return;
        };
        running.finish(finished, statistics);
        let outcome = outcome(finished);
        let labels = [running.model.model.as_str(), running.method, outcome];
        self.metrics.counter(&names::REQUESTS, &labels).inc();
        self.tenant.request(outcome);
        let gen_ai = [OPERATION, PROVIDER, running.model.model.as_str()];
        let succeeded = matches!(outcome, "stop" | "length");
        let error = if succeeded { "" } else { outcome };
        let with_error = [gen_ai[0], gen_ai[1], gen_ai[2], error];
        let seconds = self.arrived.elapsed().as_secs_f64();
        let observe = |metric, labels: &[&str], value: f64| {
            let histogram = self.metrics.histogram(metric, labels);
            histogram.observe_traced(value, trace_id);
        };
        observe(&names::REQUEST_DURATION, &with_error, seconds);
        let Some(output) = running.output.filter(|_| succeeded) else {
            return;
        };
        let waited = output.first().duration_since(self.arrived).as_secs_f64();
        observe(&names::TIME_TO_FIRST_TOKEN, &gen_ai, waited);
        if let Some(each) = output.per_token() {
            observe(&names::TIME_PER_OUTPUT_TOKEN, &gen_ai, each);
        }
    }
}

impl RunningRequest {
    fn observe(&mut self, event: &Event<'_>) {
        match *event {
            Event::Sent {
                attempt, request, ..
            } if attempt > 0 => self.model.retried(request.peer()),
            Event::LengthDecided { decision, .. } => self.model.length_decided(decision),
            Event::FellBack { fault, .. } => self.model.fell_back(fault),
            Event::Moved { times, .. } => {
                self.model.migrations.inc_by(times.into());
            }
            Event::Emitted { chunk } => self.emitted(chunk.token_ids.len() as u32),
            Event::RoundEnded { report, verified } => {
                self.model.round(report);
                if verified && report.drafted > 0 {
                    self.block(report.drafted, report.accepted);
                }
            }
            _ => {}
        }
    }

    /// Output goes to the client.
    fn emitted(&mut self, tokens: u32) {
        if tokens == 0 {
            return;
        }
        self.of_method.emitted.inc_by(tokens.into());
        let now = Instant::now();
        match &mut self.output {
            Some(output) => output.goes_on(now, tokens),
            None => self.output = Some(Output::begins(now)),
        }
    }

    /// A draft block was verified.
    fn block(&mut self, drafted: u32, accepted: u32) {
        self.rounds += 1;
        let counted = &self.of_method;
        counted.rounds.inc();
        counted.drafted.inc_by(drafted.into());
        counted.accepted.inc_by(accepted.into());
        counted.lengths.observe(accepted.into());
        self.model.block(drafted.div_ceil(self.width), accepted);
    }

    /// Counts what is known at the end.
    fn finish(&mut self, finished: &v1::Finished, statistics: &Statistics) {
        // Rounds whose tokens a stop text took back were not reported.
        for round in self.rounds..statistics.per_step_drafted.len() {
            let accepted = statistics.per_step_accepted[round];
            self.block(statistics.per_step_drafted[round], accepted);
        }
        let counted = &self.of_method;
        counted.discarded.inc_by(statistics.discarded.into());
        counted
            .target_forwards
            .inc_by(statistics.target_forwards.into());
        counted.judged.inc_by(statistics.deferral_positions.into());
        counted.deferred.inc_by(statistics.deferral_sum);
        let model = &self.model;
        model
            .fallback_tokens
            .inc_by(statistics.fallback_tokens.into());
        model.rested_tokens.inc_by(statistics.rested_tokens.into());
        let speculation = finished.speculation.as_ref();
        if let Some(gain) = speculation.and_then(|speculation| speculation.measured_gain) {
            model.measured_gain.observe(gain);
        }
        model.inexact.inc_by(f64::from(u8::from(!finished.exact)));
    }
}

/// How a request ended, in a word.
pub(in crate::observe) fn outcome(finished: &v1::Finished) -> &'static str {
    match finished.reason() {
        v1::FinishReason::Stop => "stop",
        v1::FinishReason::Length => "length",
        v1::FinishReason::Cancelled => "cancelled",
        v1::FinishReason::Error | v1::FinishReason::Unspecified
            if finished.error_code == Failure::Late.code() as u32 =>
        {
            "deadline"
        }
        v1::FinishReason::Error | v1::FinishReason::Unspecified => "error",
    }
}
