//! What is counted of one request, from its arrival to its end.

use std::sync::Arc;
use std::time::Instant;

use server::metrics::{Counter, Histogram, Metrics, Sum, names};
use speculation::session::{Input, Peer, Statistics};
use tonic::{Code, Status};
use wire::v1;

use super::model::ModelFigures;
use super::refusal;
use crate::error::Fault;
use crate::observe::Stage;
use crate::request::CheckedRequest;

/// `gen_ai.provider.name`: whose telemetry this is.
const PROVIDER: &str = "outrider";

/// `gen_ai.operation.name`: one for all requests, as their spans have it.
const OPERATION: &str = "chat";

/// What is counted of one request.
#[derive(Debug)]
pub(crate) struct RequestFigures {
    metrics: Metrics,
    admitted: bool,
    begun: Option<Begun>,
    /// What first went wrong with what a peer is asked now: it says more than what repeating that came to.
    fault: Option<Fault>,
}

/// What is counted of a request in order.
#[derive(Debug)]
struct Begun {
    model: Arc<ModelFigures>,
    of_method: MethodFigures,
    method: &'static str,
    /// Nodes at each level of a draft block.
    width: u32,
    /// Rounds counted so far.
    rounds: usize,
    output: Option<Output>,
}

/// When the output came.
#[derive(Debug)]
struct Output {
    first: Instant,
    last: Instant,
    /// Tokens that came first, together.
    first_tokens: u32,
    tokens: u32,
}

/// The figures of a model and method.
#[derive(Debug)]
struct MethodFigures {
    emitted: Counter,
    rounds: Counter,
    drafted: Counter,
    accepted: Counter,
    discarded: Counter,
    lengths: Histogram,
    target_forwards: Counter,
    judged: Counter,
    deferred: Sum,
}

impl MethodFigures {
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
            deferred: metrics.sum(&names::DEFERRED_POSITIONS, &[model, method]),
        }
    }
}

impl RequestFigures {
    /// A request came in.
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self {
            metrics: metrics.clone(),
            admitted: false,
            begun: None,
            fault: None,
        }
    }

    /// It was let in.
    pub(crate) fn admitted(&mut self) {
        self.admitted = true;
    }

    /// It never began.
    pub(crate) fn refused(&self, status: &Status) {
        let reason = refusal(status.code());
        self.metrics
            .counter(&names::REQUESTS_REFUSED, &[reason])
            .inc();
        if !self.admitted && status.code() == Code::ResourceExhausted {
            self.metrics.counter(&names::ADMISSION_REJECTS, &[]).inc();
        }
    }

    /// It is in order and about to run.
    pub(crate) fn prepared(&mut self, request: &CheckedRequest) {
        let model = Arc::clone(&request.group.figures);
        let method = request.method.name();
        model.prompt_tokens.inc_by(request.prompt.len() as u64);
        self.begun = Some(Begun {
            of_method: MethodFigures::new(&self.metrics, &model.model, method),
            model,
            method,
            width: request.method.tree.width(),
            rounds: 0,
            output: None,
        });
    }

    /// A peer is asked, for the `attempt`th time after the first.
    pub(crate) fn asked(&mut self, attempt: u32, peer: Peer) {
        if attempt == 0 {
            self.fault = None;
        } else if let Some(begun) = &self.begun {
            begun.model.retried(peer);
        }
    }

    /// A peer answered; `fault` is what its failure was, if it failed.
    pub(crate) fn answered(&mut self, answer: &Input, fault: Option<Fault>) {
        self.failed(match (answer, fault) {
            (Input::Failed { .. }, Some(fault)) => fault,
            (Input::Backpressure { .. }, _) => Fault::Overloaded,
            // If the session finds fault with an answer, then with what it says.
            _ => Fault::Malformed,
        });
    }

    /// A peer did not answer in time.
    pub(crate) fn silent(&mut self) {
        self.failed(Fault::Timeout);
    }

    fn failed(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    /// The request goes on without its drafter.
    pub(crate) fn fell_back(&self) {
        if let (Some(begun), Some(fault)) = (&self.begun, self.fault) {
            begun.model.fell_back(fault);
        }
    }

    /// It moved to another replica, so many times.
    pub(crate) fn moved(&self, times: u32) {
        if let Some(begun) = &self.begun {
            begun.model.migrations.inc_by(times.into());
        }
    }

    /// Output goes to the client.
    pub(crate) fn emitted(&mut self, chunk: &v1::Chunk) {
        let tokens = chunk.token_ids.len() as u32;
        let Some(begun) = self.begun.as_mut().filter(|_| tokens > 0) else {
            return;
        };
        begun.of_method.emitted.inc_by(tokens.into());
        let now = Instant::now();
        let output = begun.output.get_or_insert(Output {
            first: now,
            last: now,
            first_tokens: tokens,
            tokens: 0,
        });
        output.last = now;
        output.tokens += tokens;
    }

    /// A round gave tokens; `verified` if a verdict did, so that its draft tokens count.
    pub(crate) fn round(&mut self, report: &v1::RoundReport, verified: bool) {
        let Some(begun) = &mut self.begun else {
            return;
        };
        begun.model.round(report);
        if verified && report.drafted > 0 {
            begun.block(report.drafted, report.accepted);
        }
    }

    /// The client went away while it waited for `stage`.
    pub(crate) fn cancelled(&self, stage: Stage) {
        let labels = [stage.name()];
        self.metrics.counter(&names::CANCELLATIONS, &labels).inc();
    }

    /// It is over. `trace_id` names its trace, if it is sampled.
    pub(crate) fn finished(
        &mut self,
        finished: &v1::Finished,
        statistics: &Statistics,
        arrived: Instant,
        trace_id: Option<&str>,
    ) {
        let Some(mut begun) = self.begun.take() else {
            return;
        };
        begun.finish(finished, statistics);
        let outcome = outcome(finished);
        let labels = [begun.model.model.as_str(), begun.method, outcome];
        self.metrics.counter(&names::REQUESTS, &labels).inc();
        let gen_ai = [OPERATION, PROVIDER, begun.model.model.as_str()];
        let error = if is_success(outcome) { "" } else { outcome };
        let with_error = [gen_ai[0], gen_ai[1], gen_ai[2], error];
        let seconds = arrived.elapsed().as_secs_f64();
        let observe = |metric, labels: &[&str], value: f64| {
            let trace_id = trace_id.map(str::to_owned);
            self.metrics.observe_traced(metric, labels, value, trace_id);
        };
        observe(&names::REQUEST_DURATION, &with_error, seconds);
        let Some(output) = begun.output.filter(|_| is_success(outcome)) else {
            return;
        };
        let waited = output.first.duration_since(arrived).as_secs_f64();
        observe(&names::TIME_TO_FIRST_TOKEN, &gen_ai, waited);
        let more = output.tokens - output.first_tokens;
        if more > 0 {
            let each = (output.last - output.first).as_secs_f64() / f64::from(more);
            observe(&names::TIME_PER_OUTPUT_TOKEN, &gen_ai, each);
        }
    }
}

impl Begun {
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
        model.inexact.inc_by(u64::from(!finished.exact));
    }
}

/// How a request ended, in a word.
fn outcome(finished: &v1::Finished) -> &'static str {
    match finished.reason() {
        v1::FinishReason::Stop => "stop",
        v1::FinishReason::Length => "length",
        v1::FinishReason::Cancelled => "cancelled",
        v1::FinishReason::Error | v1::FinishReason::Unspecified
            if finished.error_code == Code::DeadlineExceeded as u32 =>
        {
            "deadline"
        }
        v1::FinishReason::Error | v1::FinishReason::Unspecified => "error",
    }
}

fn is_success(outcome: &str) -> bool {
    matches!(outcome, "stop" | "length")
}
