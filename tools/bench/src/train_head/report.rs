//! What is printed of a head.

use std::fmt::Write;

use model::head::train::{
    Chain, Costs, Replayed, StopAt, calibration, constant_kl, mean_kl, replay,
};

/// Longest draft block replayed.
const CAP: usize = 20;
/// Ranges of the calibration table.
const BINS: usize = 10;
/// Thresholds are tried in steps of one over this.
const STEPS: u32 = 20;

/// How good a head is.
pub(super) struct Report<'a> {
    pub(super) learnt: (&'a [f32], &'a [f32]),
    pub(super) held_out: &'a [Chain],
    pub(super) costs: Costs,
}

impl Report<'_> {
    /// The report as text.
    pub(super) fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        let labels = self.all(|chain| &chain.labels);
        let predicted = self.all(|chain| &chain.predicted);
        writeln!(
            text,
            "divergence (nats)   positions     head   best constant"
        )?;
        for (name, labels, predicted) in [
            ("learnt from", self.learnt.0, self.learnt.1),
            ("held out", &labels, &predicted),
        ] {
            let (kl, constant) = (mean_kl(labels, predicted), constant_kl(labels));
            let count = labels.len();
            writeln!(text, "{name:<17} {count:>11} {kl:>8.4} {constant:>15.4}")?;
        }
        writeln!(
            text,
            "\nheld out, by prediction\n  predicted   accepted   positions"
        )?;
        for bin in calibration(&labels, &predicted, BINS) {
            if bin.count > 0 {
                let (predicted, label, count) = (bin.predicted, bin.label, bin.count);
                writeln!(text, "  {predicted:>9.3} {label:>10.3} {count:>11}")?;
            }
        }
        self.stopping(&mut text)?;
        Ok(text)
    }

    fn stopping(&self, text: &mut String) -> std::fmt::Result {
        let Costs { draft, target } = self.costs;
        writeln!(
            text,
            "\nrounds replayed (approximated), at {draft:.3} ms a draft forward, {target:.3} ms a target forward\n  \
             stop          draft length   emitted   tokens/s"
        )?;
        let thresholds = (1..STEPS).map(|step| f64::from(step) / f64::from(STEPS));
        let learnt = thresholds.map(|threshold| StopAt::Refusal {
            threshold,
            cap: CAP,
        });
        let learnt = self.best(learnt);
        let fixed = self.best((1..=CAP).map(StopAt::Fixed));
        if learnt.is_none() && fixed.is_none() {
            writeln!(
                text,
                "  none: no response held out has {CAP} tokens or an end; raise --max-tokens"
            )?;
        }
        for (stop, replayed) in [learnt, fixed].into_iter().flatten() {
            let name = match stop {
                StopAt::Refusal { threshold, .. } => format!("best h {threshold:.2}"),
                StopAt::Fixed(len) => format!("best fixed {len}"),
            };
            let (len, emitted) = (replayed.draft_len, replayed.emitted);
            let rate = replayed.rate * 1e3;
            writeln!(text, "  {name:<14}{len:>12.2} {emitted:>9.3} {rate:>10.1}")?;
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

    fn all(&self, of: impl Fn(&Chain) -> &Vec<f32>) -> Vec<f32> {
        self.held_out
            .iter()
            .flat_map(|chain| of(chain).iter().copied())
            .collect()
    }
}
