//! What was found on one pair at one temperature.

use std::io;

use super::trial::{TrialComparison, TrialDraftLen};
use crate::measure::round_times;
use crate::pairs::calibration::Calibrated;
use crate::report::{BenchReport, Row, number, only_json, percent, text};

/// What the synthetic pair should gain at least.
pub(super) const GOAL: f64 = 1.5;

/// A pair measured at one temperature.
pub(super) struct SpeedupOutcome {
    pub(super) pair: &'static str,
    /// What the pair is, in words.
    pub(super) description: String,
    pub(super) temperature: f32,
    /// How the synthetic pair was made.
    pub(super) calibrated: Option<Calibrated>,
    /// Draft lengths tried, on prompts of their own.
    pub(super) sweep: Vec<(TrialDraftLen, TrialComparison)>,
    pub(super) prompts: usize,
    /// The best fixed one of them, and goodput, measured on other prompts.
    pub(super) compared: Vec<(TrialDraftLen, TrialComparison)>,
}

impl SpeedupOutcome {
    /// Adds its rows to the tables.
    ///
    /// # Errors
    /// If nobody can read them.
    pub(super) fn add_to(&self, report: &mut BenchReport) -> io::Result<()> {
        let reported = |draft_len: &TrialDraftLen| -> Row {
            vec![
                text("pair", self.pair),
                only_json("synthetic", self.calibrated.is_some()),
                text("temperature", self.temperature),
                text("draft_len", draft_len.to_string()),
            ]
        };
        for (draft_len, compared) in &self.sweep {
            let mut row = reported(draft_len);
            row.pop();
            row.extend([
                text("draft_len", draft_len.to_string()).across(),
                number("speedup", compared.speedup(), 2).cell(),
                only_json(
                    "draft_acceptance_rate",
                    compared.method.totals.acceptance_rate(),
                ),
            ]);
            report.row("draft-lengths", row)?;
        }
        for (draft_len, compared) in &self.compared {
            let method = &compared.method;
            let (alone, drafted) = (compared.baseline_seconds, compared.method_seconds);
            let mut row = reported(draft_len);
            row.extend([
                number("speedup", compared.speedup(), 2),
                number(
                    "baseline_tokens_per_second",
                    method.totals.tokens / alone,
                    0,
                )
                .called("target tokens/s"),
                number("tokens_per_second", method.totals.tokens / drafted, 0).called("tokens/s"),
                percent("draft_acceptance_rate", method.totals.acceptance_rate(), 0)
                    .called("accepted"),
                number("mean_acceptance_length", method.mean_acceptance_length(), 2)
                    .called("tokens/round"),
                text("prompts", self.prompts),
                only_json("tokens", method.totals.tokens),
                only_json("description", self.description.clone()),
            ]);
            report.row("speedup", row)?;
            let mut row = reported(draft_len);
            row.extend(round_times(&method.times));
            report.row("rounds", row)?;
        }
        if let Some(Calibrated { scale, acceptance }) = self.calibrated {
            report.row(
                "synthetic",
                vec![
                    text("temperature", self.temperature),
                    number("scale", f64::from(scale), 4).called("deeper residuals at"),
                    percent("calibrated_acceptance", acceptance, 0).called("accepted"),
                ],
            )?;
        }
        report.note(format!("{}: {}", self.pair, self.description));
        Ok(())
    }
}
