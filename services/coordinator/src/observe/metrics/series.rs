//! What is counted of models, methods and tenants, whoever asks for them. Handles are made once, so that counting in every
//! round takes no lookup; what counts seldom is looked up then.

use std::time::Duration;

use fleet::PeerFault;
use ops::metrics::{Counter, Histogram, Metric, Metrics, names};
use speculation::goodput::{Decision, Why};
use speculation::session::{Peer, Statistics};
use strum::VariantNames;
use wire::v1;

use crate::events::Proposed;

/// Draft positions that are counted one by one.
const POSITIONS: usize = 20;

/// What is counted together of the positions beyond.
const BEYOND: &str = "21+";

/// The metrics of one served model.
#[derive(Clone, Debug)]
pub(in crate::observe) struct ModelMetrics {
    metrics: Metrics,
    /// Name of the model.
    pub(in crate::observe) model: String,
    predicted_gain: Histogram,
    decisions: [Counter; Why::ALL.len()],
    /// One for each position, and one for those beyond.
    drafted: Vec<Counter>,
    accepted: Vec<Counter>,
    /// In the order of [`PHASES`].
    phases: [Histogram; PHASES.len()],
}

/// The parts of a round whose times are counted.
const PHASES: [&str; 8] = [
    "draft",
    "draft_queue",
    "draft_forward",
    "verify",
    "verify_queue",
    "verify_forward",
    "verify_accept",
    "wire",
];

impl ModelMetrics {
    /// Returns the metrics of `model`. Those that count seldom begin from nothing, so that their first time is seen as a
    /// change.
    pub(in crate::observe) fn new(metrics: &Metrics, model: &str) -> Self {
        for seldom in [
            &names::PROMPT_TOKENS,
            &names::FALLBACK_TOKENS,
            &names::RESTED_TOKENS,
            &names::INEXACT_REQUESTS,
            &names::MIGRATIONS,
        ] {
            metrics.counter(seldom, &[model]);
        }
        metrics.histogram(&names::MEASURED_GAIN, &[model]);
        for peer in Peer::ALL {
            metrics.counter(&names::RETRIES, &[model, peer.name()]);
        }
        for fault in PeerFault::VARIANTS {
            metrics.counter(&names::FALLBACKS, &[model, fault]);
        }
        let positions = |metric| {
            let single = (1..=POSITIONS).map(|position| position.to_string());
            let labels = single.chain([BEYOND.to_owned()]);
            labels
                .map(|position| metrics.counter(metric, &[model, &position]))
                .collect()
        };
        Self {
            metrics: metrics.clone(),
            model: model.to_owned(),
            predicted_gain: metrics.histogram(&names::PREDICTED_GAIN, &[model]),
            decisions: Why::ALL
                .map(|why| metrics.counter(&names::LENGTH_DECISIONS, &[model, why.name()])),
            drafted: positions(&names::POSITION_DRAFTED),
            accepted: positions(&names::POSITION_ACCEPTED),
            phases: PHASES.map(|phase| metrics.histogram(&names::ROUND_DURATION, &[model, phase])),
        }
    }

    /// Adds `value` to a metric of the model that counts seldom.
    pub(super) fn add(&self, metric: &Metric, value: f64) {
        self.metrics.counter(metric, &[&self.model]).inc_by(value);
    }

    /// Adds 1 to a metric of the model and of another label that counts seldom.
    pub(super) fn add_one(&self, metric: &Metric, label: &str) {
        self.metrics.counter(metric, &[&self.model, label]).inc();
    }

    /// Counts what became of the drafts of a request whose target took them as they came.
    pub(super) fn streamed(&self, proposed: &[Proposed], counted: &v1::ForwardDrafts) {
        for it in proposed {
            for (outcome, tokens) in [("proposed", it.tokens), ("accepted", it.accepted)] {
                let labels = [&self.model, it.source, outcome];
                let counter = self.metrics.counter(&names::STREAMED_DRAFTS, &labels);
                counter.inc_by(tokens as f64);
            }
        }
        for (why, tokens) in [
            ("unpaid", counted.offered.saturating_sub(counted.scored)),
            ("stale", counted.stale),
            ("room", counted.without_room),
            ("malformed", counted.malformed),
        ] {
            let counter = self
                .metrics
                .counter(&names::UNSCORED_DRAFTS, &[&self.model, why]);
            counter.inc_by(tokens.into());
        }
    }

    /// Counts by how much a request has measured that its draft lengths paid.
    pub(super) fn gained(&self, gain: f64) {
        let metric = &names::MEASURED_GAIN;
        self.metrics.histogram(metric, &[&self.model]).observe(gain);
    }

    /// Counts the length of a round that was decided.
    pub(super) fn length_decided(&self, decision: Decision) {
        self.decisions[decision.why as usize].inc();
        if let Some(gain) = decision.gain {
            self.predicted_gain.observe(gain);
        }
    }

    /// Counts a draft block that reached `levels` positions and was accepted up to `accepted` of them.
    pub(super) fn block(&self, levels: u32, accepted: u32) {
        reach(&self.drafted, levels as usize);
        reach(&self.accepted, accepted as usize);
    }

    /// Counts the time that a round took.
    pub(super) fn round(&self, report: &v1::RoundReport) {
        for (phase, us) in self.phases.iter().zip(durations(report)) {
            if let Some(us) = us {
                phase.observe_duration(Duration::from_micros(us.into()));
            }
        }
    }
}

/// Returns the times of a round in microseconds, in the order of [`PHASES`]; none for a peer that was not asked. What peers
/// do not say of a round is the wire; of a forward whose timing was not told, nothing but the whole is known.
fn durations(report: &v1::RoundReport) -> [Option<u32>; PHASES.len()] {
    let drafter = report.drafter.unwrap_or_default();
    let verifier = report.verifier.unwrap_or_default();
    let [draft, verify] = [report.draft_us, report.verify_us].map(|us| (us > 0).then_some(us));
    let wire = report.draft_us.saturating_sub(drafter.total_us)
        + report.verify_us.saturating_sub(verifier.total_us);
    let is_told = verify.is_none() || verifier.total_us > 0;
    let told = verify.filter(|_| is_told);
    [
        draft,
        draft.map(|_| drafter.queue_us),
        draft.map(|_| drafter.forward_us),
        verify,
        told.map(|_| verifier.queue_us),
        told.map(|_| verifier.forward_us),
        told.map(|_| verifier.accept_us),
        is_told.then_some(wire),
    ]
}

/// Counts the first `len` positions.
fn reach(positions: &[Counter], len: usize) {
    for position in &positions[..len.min(POSITIONS)] {
        position.inc();
    }
    if len > POSITIONS {
        positions[POSITIONS].inc_by((len - POSITIONS) as f64);
    }
}

/// The metrics of a model and method.
#[derive(Debug)]
pub(super) struct MethodMetrics {
    pub(super) emitted: Counter,
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
    pub(super) fn new(metrics: &Metrics, model: &str, method: &str) -> Self {
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

    /// Counts a draft block that was verified.
    pub(super) fn block(&self, drafted: u32, accepted: u32) {
        self.rounds.inc();
        self.drafted.inc_by(drafted.into());
        self.accepted.inc_by(accepted.into());
        self.lengths.observe(accepted.into());
    }

    /// Counts a request that is over.
    pub(super) fn finish(&self, statistics: &Statistics) {
        self.discarded.inc_by(statistics.discarded.into());
        self.target_forwards
            .inc_by(statistics.target_forwards.into());
        self.judged.inc_by(statistics.deferral_positions.into());
        self.deferred.inc_by(statistics.deferral_sum);
    }
}

/// The tenant of requests that show no token, or one without a name.
const UNNAMED: &str = "unnamed";

/// The metrics of one tenant. Names come from the file of tokens, so that there are no more than it has.
#[derive(Debug)]
pub(super) struct TenantMetrics {
    metrics: Metrics,
    tenant: String,
    pub(super) prompt_tokens: Counter,
    pub(super) output_tokens: Counter,
}

impl TenantMetrics {
    pub(super) fn new(metrics: &Metrics, tenant: Option<&str>) -> Self {
        let tenant = tenant.unwrap_or(UNNAMED).to_owned();
        let tokens = |kind| metrics.counter(&names::TENANT_TOKENS, &[&tenant, kind]);
        Self {
            prompt_tokens: tokens("prompt"),
            output_tokens: tokens("output"),
            metrics: metrics.clone(),
            tenant,
        }
    }

    /// Counts a request that came to `outcome`.
    pub(super) fn request(&self, outcome: &str) {
        let labels = [self.tenant.as_str(), outcome];
        self.metrics.counter(&names::TENANT_REQUESTS, &labels).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_beyond_the_last_are_counted_together() {
        let registry = Metrics::default();
        let metrics = ModelMetrics::new(&registry, "m");
        metrics.block(23, 2);
        metrics.block(2, 0);
        let count = |counters: &[Counter]| counters.iter().map(Counter::get).collect::<Vec<_>>();
        let mut drafted = vec![1.0; POSITIONS];
        drafted[..2].fill(2.0);
        drafted.push(3.0);
        assert_eq!(count(&metrics.drafted), drafted);
        let mut accepted = vec![0.0; POSITIONS + 1];
        accepted[..2].fill(1.0);
        assert_eq!(count(&metrics.accepted), accepted);
    }

    #[test]
    fn what_peers_do_not_say_of_a_round_is_the_wire() {
        let registry = Metrics::default();
        let metrics = ModelMetrics::new(&registry, "m");
        let reported = |queue_us, forward_us, total_us| v1::Timing {
            queue_us,
            forward_us,
            total_us,
            accept_us: total_us / 100,
            ..Default::default()
        };
        metrics.round(&v1::RoundReport {
            draft_us: 2_000,
            verify_us: 5_000,
            drafter: Some(reported(10, 1_000, 1_500)),
            verifier: Some(reported(20, 4_000, 4_200)),
            ..Default::default()
        });
        // Without a draft there is nothing to be told of one.
        metrics.round(&v1::RoundReport {
            verify_us: 1_000,
            verifier: Some(reported(0, 900, 900)),
            ..Default::default()
        });
        let text = registry.encode().expect("text");
        for (sample, value) in [
            ("sum{model=\"m\",phase=\"draft\"}", "0.002"),
            ("count{model=\"m\",phase=\"draft\"}", "1"),
            ("count{model=\"m\",phase=\"draft_queue\"}", "1"),
            ("sum{model=\"m\",phase=\"verify\"}", "0.006"),
            ("count{model=\"m\",phase=\"verify_forward\"}", "2"),
            ("sum{model=\"m\",phase=\"verify_queue\"}", "0.00002"),
            ("sum{model=\"m\",phase=\"verify_accept\"}", "0.000051"),
            ("sum{model=\"m\",phase=\"wire\"}", "0.0014"),
            ("count{model=\"m\",phase=\"wire\"}", "2"),
        ] {
            let name = format!("outrider_round_duration_seconds_{sample} ");
            let line = text.lines().find_map(|line| line.strip_prefix(&name));
            let found: f64 = line.expect(sample).parse().expect("a number");
            let expected: f64 = value.parse().expect("a number");
            assert!((found - expected).abs() < 1e-9, "{sample}: {found}");
        }
    }
}
