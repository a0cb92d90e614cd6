//! What is told of a head.

use std::io;

use super::learning::{
    LabelledChain, Replayed, StopAt, StopCosts, calibration, constant_kl, mean_kl, replay,
};

use crate::report::{BenchReport, number, text};

/// Longest draft block replayed.
const CAP: usize = 20;
/// Ranges of the calibration table.
const BINS: usize = 10;
/// Thresholds are tried in steps of one over this.
const STEPS: u32 = 20;

/// How good a head is.
pub(super) struct HeadQuality<'a> {
    pub(super) learnt: (&'a [f32], &'a [f32]),
    pub(super) held_out: &'a [LabelledChain],
    pub(super) costs: StopCosts,
}

impl HeadQuality<'_> {
    /// Adds it to the tables.
    ///
    /// # Errors
    /// If nobody can read it.
    pub(super) fn add_to(&self, report: &mut BenchReport) -> io::Result<()> {
        report.title("An acceptance head");
        let labels = self.all(|chain| &chain.labels);
        let predicted = self.all(|chain| &chain.predicted);
        for (name, labels, predicted) in [
            ("learnt from", self.learnt.0, self.learnt.1),
            ("held out", &labels, &predicted),
        ] {
            let row = vec![
                text("divergence", name).called("divergence, nats"),
                text("positions", labels.len()),
                number("head", mean_kl(labels, predicted), 4),
                number("constant", constant_kl(labels), 4).called("best constant"),
            ];
            report.row("divergence", row)?;
        }
        for bin in calibration(&labels, &predicted, BINS) {
            if bin.count > 0 {
                let row = vec![
                    number("predicted", bin.predicted, 3),
                    number("accepted", bin.label, 3),
                    text("positions", bin.count),
                ];
                report.row("calibration", row)?;
            }
        }
        report.note("calibration: what was held out, by prediction");
        self.stopping(report)
    }

    fn stopping(&self, report: &mut BenchReport) -> io::Result<()> {
        let StopCosts { draft, target } = self.costs;
        report.note(format!(
            "stopping: rounds replayed (approximated), at {draft:.3} ms a draft forward, {target:.3} ms a target \
             forward"
        ));
        let thresholds = (1..STEPS).map(|step| f64::from(step) / f64::from(STEPS));
        let learnt = thresholds.map(|threshold| StopAt::Refusal {
            threshold,
            cap: CAP,
        });
        let learnt = self.best(learnt);
        let fixed = self.best((1..=CAP).map(StopAt::Fixed));
        if learnt.is_none() && fixed.is_none() {
            report.note(format!(
                "none: no response held out has {CAP} tokens or an end; raise --max-tokens"
            ));
        }
        for (stop, replayed) in [learnt, fixed].into_iter().flatten() {
            let name = match stop {
                StopAt::Refusal { threshold, .. } => format!("best h {threshold:.2}"),
                StopAt::Fixed(len) => format!("best fixed {len}"),
            };
            let row = vec![
                text("stop", name),
                number("draft_len", replayed.draft_len, 2),
                number("emitted", replayed.emitted, 3),
                number("tokens_per_second", replayed.rate * 1e3, 1),
            ];
            report.row("stopping", row)?;
        }
        Ok(())
    }

    /// The way to stop that emits most tokens by time, the first among equals; none if there is no round to
    /// replay.
    fn best(&self, stops: impl Iterator<Item = StopAt>) -> Option<(StopAt, Replayed)> {
        let mut best: Option<(StopAt, Replayed)> = None;
        for stop in stops {
            let replayed = replay(self.held_out, stop, self.costs, CAP);
            if replayed.rate > best.map_or(0.0, |(_, best)| best.rate) {
                best = Some((stop, replayed));
            }
        }
        best
    }

    fn all(&self, of: impl Fn(&LabelledChain) -> &Vec<f32>) -> Vec<f32> {
        self.held_out
            .iter()
            .flat_map(|chain| of(chain).iter().copied())
            .collect()
    }
}
