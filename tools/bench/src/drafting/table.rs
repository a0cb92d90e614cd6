//! Ways of drafting as tables.

use std::io;

use super::super::measure::Measured;
use super::super::report::{BenchReport, Row, number, only_json, percent, text};
use super::super::spec::MeasuredMethod;
use super::cost::{CostFit, ForwardCosts};

/// One way of drafting on prompts of one kind.
#[derive(Clone, Debug)]
pub(super) struct DraftingWay {
    /// The method with its parameters.
    pub(super) method: MeasuredMethod,
    /// All its requests together.
    pub(super) sum: Measured,
}

/// Ways that differ in a parameter.
#[derive(Clone, Debug)]
pub(super) struct WayFamily {
    /// What they have in common.
    pub(super) label: String,
    /// Each of them.
    pub(super) ways: Vec<DraftingWay>,
}

/// Everything measured on prompts of one kind at one temperature.
#[derive(Debug)]
pub(super) struct Measurement {
    pub(super) kind: String,
    pub(super) temperature: f32,
    pub(super) prompts: usize,
    /// The target alone.
    pub(super) baseline: Measured,
    pub(super) families: Vec<WayFamily>,
    /// What forwards cost here; none if the requests do not tell.
    pub(super) fit: Option<CostFit>,
    /// The costs to model with, and what they are called.
    pub(super) models: Vec<(String, ForwardCosts)>,
}

impl DraftingWay {
    fn per_token(&self, count: f64) -> f64 {
        count / self.sum.totals.tokens.max(1.0)
    }

    fn measured_speedup(&self, of: &Measurement) -> f64 {
        self.sum.totals.tokens_per_second() / of.baseline.totals.tokens_per_second().max(1e-9)
    }

    fn row(&self, of: &Measurement, family: &WayFamily) -> Row {
        let per_token = |forwards: &f64| self.per_token(*forwards);
        let draft_forwards: Vec<f64> = self.sum.draft_forwards.iter().map(per_token).collect();
        // The sum of nothing is -0.
        let all = draft_forwards.iter().fold(0.0, |sum, n| sum + n);
        let models = of.models.iter();
        let modelled = models.map(|(name, costs)| number(name, costs.speedup(&self.sum), 3));
        let figures = [
            only_json("prompts", of.prompts),
            only_json("family", family.label.clone()),
            text("method", self.method.to_string()),
            only_json("tokens", self.sum.totals.tokens),
            number("discard_rate", self.per_token(self.sum.discarded), 2).called("discard"),
            number(
                "verification_rate",
                self.per_token(self.sum.totals.target_forwards),
                3,
            )
            .called("verify"),
            number("draft_rate", all, 2).called("draft"),
            only_json("draft_forwards_per_token", draft_forwards),
        ];
        let wall = number("measured_speedup", self.measured_speedup(of), 3).called("wall time");
        let row = of.names().into_iter().chain(figures);
        row.chain(modelled).chain([wall]).collect()
    }
}

impl WayFamily {
    /// The fastest of the ways by `costs`.
    fn best(&self, costs: &ForwardCosts) -> &DraftingWay {
        let speedup = |way: &&DraftingWay| costs.speedup(&way.sum);
        self.ways
            .iter()
            .max_by(|a, b| speedup(a).total_cmp(&speedup(b)))
            .expect("a family has a way")
    }
}

impl Measurement {
    /// What it was measured on.
    fn names(&self) -> Row {
        vec![
            text("kind", self.kind.clone()),
            text("temperature", self.temperature),
        ]
    }

    /// Every way, what forwards cost, and the best of each family against the best of the first.
    ///
    /// # Errors
    /// If nobody can read it.
    pub(super) fn add_to(&self, report: &mut BenchReport) -> io::Result<()> {
        if let Some(CostFit { costs, explained }) = &self.fit {
            let mut row = self.names();
            row.extend([
                text("prompts", self.prompts),
                number("target_ms", costs.target, 3),
                number("position_ms", costs.position, 3),
            ]);
            let drafts = costs.drafts.iter().enumerate();
            row.extend(drafts.map(|(model, ms)| number(format!("draft_{}_ms", model + 1), *ms, 3)));
            row.extend([
                number("round_ms", costs.round, 3),
                percent("explained", *explained, 0),
            ]);
            report.row("costs", row)?;
        }
        for family in &self.families {
            for way in &family.ways {
                report.row("ways", way.row(self, family))?;
            }
        }
        for (name, costs) in &self.models {
            let first = costs.speedup(&self.families[0].best(costs).sum);
            for family in &self.families {
                let best = family.best(costs);
                let speedup = costs.speedup(&best.sum);
                let gain = speedup / first - 1.0;
                let method = best.method.to_string();
                let at = method.trim_start_matches(&family.label);
                let said = match at.trim_start_matches([':', '=']) {
                    "" => format!("{speedup:.3}"),
                    at => format!("{speedup:.3} at {at}"),
                };
                let mut row = self.names();
                row.extend([
                    text("cost", name.clone()),
                    text("family", family.label.clone()).across(),
                    only_json("method", method),
                    number("speedup", speedup, 3)
                        .cell()
                        .said(format!("{said}, {:+.1}%", 100.0 * gain)),
                    only_json("gain", gain),
                ]);
                report.row("best", row)?;
            }
        }
        report.note(
            "best: the largest modelled speedup of each family, the parameter it has there, and how much that \
             is above the best of the first family",
        );
        Ok(())
    }
}
