//! A method on a task: how good its outputs were, and what that cost.

use super::judge::{Criteria, Output};
use super::task::CheckedTask;
use crate::measure::{Measured, MeasuredAnswer};
use crate::quality::Score;
use crate::report::{Row, number, only_json, percent, text};
use crate::spec::{Series, Variant};

/// What was measured of one method.
#[derive(Debug)]
pub(super) struct Point {
    /// What it has in common with the others of its line.
    series: String,
    /// What it differs in; empty if it stands alone.
    values: String,
    method: String,
    pub(super) outputs: Vec<Output>,
    pub(super) measured: Measured,
}

impl Point {
    pub(super) fn new(series: &Series, variant: &Variant) -> Self {
        Self {
            series: series.label.clone(),
            values: variant.values.clone(),
            method: variant.method.to_string(),
            outputs: Vec::new(),
            measured: Measured::default(),
        }
    }

    /// Adds an output for the task's item at this index.
    pub(super) fn add(&mut self, item: usize, answer: MeasuredAnswer) {
        self.measured.add(&answer.measured);
        self.outputs.push(Output {
            item,
            text: answer.text,
            token_ids: answer.token_ids,
        });
    }

    /// Returns its row, with the scores of its outputs by `criteria`.
    pub(super) fn row(
        &self,
        task: &CheckedTask,
        (criteria, scores): (&Criteria, &[Score]),
        temperature: f32,
        draft_len: u32,
    ) -> Row {
        let measured = &self.measured;
        let mut row = vec![
            only_json("task", task.name.clone()),
            only_json("method", self.method.clone()),
            text("series", self.series.clone()).called("method"),
            text("values", self.values.clone()),
            only_json("temperature", temperature),
            only_json("draft_len", draft_len),
            only_json("outputs", self.outputs.len()),
            only_json("metrics", criteria.names()),
        ];
        row.extend(criteria.fields(scores));
        row.extend([
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
        ]);
        row
    }
}

#[cfg(test)]
mod tests {
    use outrider::measure::RequestTotals;
    use outrider::prompts::FieldNames;

    use super::*;
    use crate::quality::Metric;
    use crate::report::BenchReport;

    /// A point of 20 outputs, with so many target forwards for 100 tokens.
    fn example(series: &str, values: &str, target_forwards: f64) -> Point {
        let totals = RequestTotals {
            tokens: 5.0,
            total_ms: 2.5,
            target_forwards: target_forwards / 20.0,
            ..Default::default()
        };
        let mut point = Point {
            series: series.to_owned(),
            values: values.to_owned(),
            method: format!("{series}:{values}"),
            outputs: Vec::new(),
            measured: Measured::default(),
        };
        for item in 0..20 {
            let measured = Measured {
                totals: totals.clone(),
                ..Default::default()
            };
            let answer = MeasuredAnswer {
                measured,
                ..Default::default()
            };
            point.add(item, answer);
        }
        point
    }

    #[test]
    fn every_point_has_its_line() {
        let task = CheckedTask::load(None, &FieldNames::default(), 2).expect("a task");
        let criteria = Criteria {
            metrics: vec![Metric::Exact],
            scorer: None,
        };
        let mut report = BenchReport::quiet();
        for (point, right) in [
            (example("target-only", "", 100.0), 20),
            (example("lossy", "alpha=0.5", 40.0), 15),
        ] {
            let mut scores = [0.0; 20];
            scores[..right].fill(1.0);
            let score = Score::mean(&scores);
            let row = point.row(&task, (&criteria, &[score]), 1.0, 4);
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
