//! One comparison.

use crate::report::{self, number, text};

/// What something costs, as a multiple of something else.
#[derive(Clone, Debug)]
pub(super) struct PartRow {
    /// The model, or what else it was measured on.
    pub(super) on: String,
    /// Tokens before it.
    pub(super) context: usize,
    /// What was measured.
    pub(super) what: String,
    /// What it is compared with.
    pub(super) baseline: String,
    /// Medians, in microseconds.
    pub(super) us: f64,
    pub(super) baseline_us: f64,
    /// Median of the ratios, which is not the ratio of the medians.
    pub(super) ratio: f64,
    /// The ratio aimed at.
    pub(super) goal: Option<f64>,
}

impl PartRow {
    /// Something that takes `us` microseconds, against what it may take.
    pub(super) fn limited(on: String, context: usize, what: &str, us: f64, limit_us: f64) -> Self {
        Self {
            on,
            context,
            what: what.to_owned(),
            baseline: "its limit".to_owned(),
            us,
            baseline_us: limit_us,
            ratio: us / limit_us,
            goal: Some(1.0),
        }
    }

    pub(super) fn fields(&self) -> report::Row {
        let missed = self.goal.is_some_and(|goal| self.ratio > goal);
        vec![
            text("on", self.on.clone()),
            text("context", self.context),
            text("what", self.what.clone()),
            number("us", self.us, 2),
            text("baseline", self.baseline.clone()).called("against"),
            number("baseline_us", self.baseline_us, 2).called("its us"),
            number("ratio", self.ratio, 3).missed(missed),
            text("goal", self.goal),
        ]
    }
}
