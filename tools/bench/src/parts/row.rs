//! One comparison, as a line of a table and as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};

/// What something costs, as a multiple of something else.
#[derive(Clone, Debug)]
pub(super) struct Row {
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

impl Row {
    pub(super) fn json(&self) -> Value {
        json!({
            "on": self.on,
            "context": self.context,
            "what": self.what,
            "baseline": self.baseline,
            "us": self.us,
            "baseline_us": self.baseline_us,
            "ratio": self.ratio,
            "goal": self.goal,
        })
    }
}

/// The rows as a table.
///
/// # Errors
/// If nobody can read it.
pub(super) fn write(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let width = |cell: fn(&Row) -> &String| rows.iter().map(|row| cell(row).len()).max();
    let on = width(|row| &row.on).unwrap_or_default();
    let what = width(|row| &row.what).unwrap_or_default();
    let baseline = width(|row| &row.baseline).unwrap_or_default().max(8);
    writeln!(
        out,
        "{:<on$} {:>7} {:<what$} {:>10} {:<baseline$} {:>10} {:>7} {:>6}",
        "", "context", "", "us", "against", "us", "ratio", "goal"
    )?;
    for row in rows {
        let missed = row.goal.is_some_and(|goal| row.ratio > goal);
        writeln!(
            out,
            "{:<on$} {:>7} {:<what$} {:>10.1} {:<baseline$} {:>10.1} {:>6.3}{} {:>6}",
            row.on,
            row.context,
            row.what,
            row.us,
            row.baseline,
            row.baseline_us,
            row.ratio,
            if missed { "*" } else { " " },
            row.goal
                .map_or_else(|| "-".to_owned(), |goal| goal.to_string()),
        )?;
    }
    if rows.iter().any(|row| row.goal.is_some()) {
        writeln!(out, "* above its goal")?;
    }
    writeln!(out)
}
