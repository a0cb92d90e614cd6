//! What is counted of one served model, whoever asks for it.

use std::time::Duration;

use ops::metrics::{Counter, Histogram, Metrics, names};
use speculation::goodput::{Decision, Why};
use speculation::session::Peer;
use wire::v1;

use crate::events::Fault;

/// Draft positions that are counted one by one.
const POSITIONS: usize = 20;

/// What is counted together of the positions beyond.
const BEYOND: &str = "21+";

/// The metrics of one served model. Made once, so that counting takes no lookup.
#[derive(Clone, Debug)]
pub(in crate::observe) struct ModelMetrics {
    /// Name of the model.
    pub(in crate::observe) model: String,
    pub(super) prompt_tokens: Counter,
    pub(super) fallback_tokens: Counter,
    pub(super) rested_tokens: Counter,
    pub(super) measured_gain: Histogram,
    predicted_gain: Histogram,
    decisions: [Counter; Why::ALL.len()],
    pub(super) inexact: Counter,
    pub(super) migrations: Counter,
    drafter_retries: Counter,
    verifier_retries: Counter,
    fallbacks: [Counter; Fault::ALL.len()],
    /// One for each position, and one for those beyond.
    drafted: Vec<Counter>,
    accepted: Vec<Counter>,
    phases: Phases,
}

#[derive(Clone, Debug)]
struct Phases {
    draft: Peered,
    verify: Peered,
    accept: Histogram,
    wire: Histogram,
}

/// What asking a peer took, and what the peer says of it.
#[derive(Clone, Debug)]
struct Peered {
    whole: Histogram,
    queue: Histogram,
    forward: Histogram,
}

impl ModelMetrics {
    pub(in crate::observe) fn new(metrics: &Metrics, model: &str) -> Self {
        let counter = |metric| metrics.counter(metric, &[model]);
        let positions = |metric| {
            let single = (1..=POSITIONS).map(|position| position.to_string());
            let labels = single.chain([BEYOND.to_owned()]);
            labels
                .map(|position| metrics.counter(metric, &[model, &position]))
                .collect()
        };
        let phase = |phase: &str| metrics.histogram(&names::ROUND_DURATION, &[model, phase]);
        let peered = |what: &str| Peered {
            whole: phase(what),
            queue: phase(&format!("{what}_queue")),
            forward: phase(&format!("{what}_forward")),
        };
        let retries = |peer| metrics.counter(&names::RETRIES, &[model, peer]);
        Self {
            model: model.to_owned(),
            prompt_tokens: counter(&names::PROMPT_TOKENS),
            fallback_tokens: counter(&names::FALLBACK_TOKENS),
            rested_tokens: counter(&names::RESTED_TOKENS),
            measured_gain: metrics.histogram(&names::MEASURED_GAIN, &[model]),
            predicted_gain: metrics.histogram(&names::PREDICTED_GAIN, &[model]),
            decisions: Why::ALL
                .map(|why| metrics.counter(&names::LENGTH_DECISIONS, &[model, why.name()])),
            inexact: counter(&names::INEXACT_REQUESTS),
            migrations: counter(&names::MIGRATIONS),
            drafter_retries: retries("drafter"),
            verifier_retries: retries("verifier"),
            fallbacks: Fault::ALL
                .map(|fault| metrics.counter(&names::FALLBACKS, &[model, fault.name()])),
            drafted: positions(&names::POSITION_DRAFTED),
            accepted: positions(&names::POSITION_ACCEPTED),
            phases: Phases {
                draft: peered("draft"),
                verify: peered("verify"),
                accept: phase("verify_accept"),
                wire: phase("wire"),
            },
        }
    }

    /// The length of a round was decided.
    pub(super) fn length_decided(&self, decision: Decision) {
        self.decisions[decision.why as usize].inc();
        if let Some(gain) = decision.gain {
            self.predicted_gain.observe(gain);
        }
    }

    /// A request to `peer` was sent again.
    pub(super) fn retried(&self, peer: Peer) {
        match peer {
            Peer::Drafter => self.drafter_retries.inc(),
            Peer::Verifier => self.verifier_retries.inc(),
        };
    }

    /// A request went on without its drafter.
    pub(super) fn fell_back(&self, fault: Fault) {
        self.fallbacks[fault as usize].inc();
    }

    /// A draft block that reached `levels` positions was accepted up to `accepted` of them.
    pub(super) fn block(&self, levels: u32, accepted: u32) {
        reach(&self.drafted, levels as usize);
        reach(&self.accepted, accepted as usize);
    }

    /// A round took its time.
    pub(super) fn round(&self, report: &v1::RoundReport) {
        let Phases {
            draft,
            verify,
            accept,
            wire,
        } = &self.phases;
        let peers = [
            (draft, report.draft_us, report.drafter),
            (verify, report.verify_us, report.verifier),
        ];
        let mut rest = 0;
        for (phase, whole_us, reported) in peers {
            if whole_us == 0 {
                continue;
            }
            let reported = reported.unwrap_or_default();
            phase.whole.observe_duration(micros(whole_us));
            phase.queue.observe_duration(micros(reported.queue_us));
            phase.forward.observe_duration(micros(reported.forward_us));
            rest += whole_us.saturating_sub(reported.total_us);
        }
        if report.verify_us > 0 {
            let reported = report.verifier.unwrap_or_default();
            accept.observe_duration(micros(reported.accept_us));
        }
        wire.observe_duration(micros(rest));
    }
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

fn micros(us: u32) -> Duration {
    Duration::from_micros(us.into())
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
