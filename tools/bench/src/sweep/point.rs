//! A method on a task: how often it was right, and what that cost.

use super::task::CheckedTask;
use crate::measure::Measured;
use crate::report::{Row, number, only_json, percent, text};
use crate::spec::{Series, Variant};

/// What was measured of one method.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// What it has in common with the others of its line.
    series: String,
    /// What it differs in; empty if it stands alone.
    values: String,
    method: String,
    outputs: u32,
    right: u32,
    pub(super) measured: Measured,
}

impl Point {
    pub(super) fn new(series: &Series, variant: &Variant) -> Self {
        Self {
            series: series.label.clone(),
            values: variant.values.clone(),
            method: variant.method.to_string(),
            outputs: 0,
            right: 0,
            measured: Measured::default(),
        }
    }

    /// Counts one output.
    pub(super) fn add(&mut self, right: bool, measured: &Measured) {
        self.outputs += 1;
        self.right += u32::from(right);
        self.measured.add(measured);
    }

    /// The share of outputs that were right.
    pub(super) fn quality(&self) -> f64 {
        f64::from(self.right) / f64::from(self.outputs.max(1))
    }

    /// The standard error of [`Point::quality`], if the outputs are independent.
    pub(super) fn standard_error(&self) -> f64 {
        let quality = self.quality();
        (quality * (1.0 - quality) / f64::from(self.outputs.max(1))).sqrt()
    }

    pub(super) fn row(&self, task: &CheckedTask, temperature: f32, draft_len: u32) -> Row {
        let measured = &self.measured;
        let right = format!(
            "{:.1} +- {:.1}%",
            100.0 * self.quality(),
            100.0 * self.standard_error()
        );
        vec![
            only_json("task", task.name.clone()),
            only_json("method", self.method.clone()),
            text("series", self.series.clone()).called("method"),
            text("values", self.values.clone()),
            only_json("temperature", temperature),
            only_json("draft_len", draft_len),
            only_json("outputs", self.outputs),
            percent("quality", self.quality(), 1)
                .called("right")
                .said(right),
            only_json("standard_error", self.standard_error()),
            number(
                "target_calls_per_token",
                measured.totals.target_calls_per_token(),
                3,
            )
            .called("calls/token"),
            number("tokens_per_second", measured.totals.tokens_per_second(), 0).called("tokens/s"),
            number(
                "mean_acceptance_length",
                measured.mean_acceptance_length(),
                2,
            )
            .called("tokens/round"),
            percent(
                "draft_acceptance_rate",
                measured.totals.acceptance_rate(),
                0,
            )
            .called("accepted"),
            percent("deferral_rate", measured.deferral_rate(), 0).called("deferred"),
            only_json("wire_bytes_per_round", measured.wire_bytes_per_round()),
        ]
    }
}

/// A point that was right `right` times of `outputs`, with so many target forwards for 100 tokens.
#[cfg(test)]
fn example(series: &str, values: &str, right: u32, target_forwards: f64) -> Point {
    use outrider::measure::RequestTotals;

    Point {
        series: series.to_owned(),
        values: values.to_owned(),
        method: format!("{series}:{values}"),
        outputs: 20,
        right,
        measured: Measured {
            totals: RequestTotals {
                tokens: 100.0,
                total_ms: 50.0,
                target_forwards,
                ..Default::default()
            },
            ..Default::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::BenchReport;

    #[test]
    fn quality_is_a_share_with_its_error() {
        let mut point = example("coupled", "", 4, 30.0);
        assert_eq!(point.quality(), 0.2);
        assert!((point.standard_error() - (0.16_f64 / 20.0).sqrt()).abs() < 1e-15);
        point.add(true, &Measured::default());
        assert_eq!(point.quality(), 5.0 / 21.0);
        point.add(false, &Measured::default());
        assert_eq!(point.quality(), 5.0 / 22.0);
    }

    #[test]
    fn every_point_has_its_line() {
        let task = CheckedTask::load(None, 2).expect("a task");
        let mut report = BenchReport::quiet();
        for point in [
            example("target-only", "", 20, 100.0),
            example("lossy", "alpha=0.5", 15, 40.0),
        ] {
            let row = point.row(&task, 1.0, 4);
            report.row("points", row).expect("nothing is printed");
        }
        let text = report.text();
        let line = |name: &str| text.lines().find(|line| line.contains(name));
        let lossy = line("| lossy").expect("a line");
        for figure in ["alpha=0.5", "75.0 +- 9.7%", "0.400", "2000"] {
            assert!(lossy.contains(figure), "{lossy}");
        }
        let target = line("| target-only").expect("a line");
        assert!(
            target.contains("100.0 +- 0.0%") && target.ends_with("- |"),
            "{target}"
        );
    }
}
