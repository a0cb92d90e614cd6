//! One product, as a line of a table and as JSON.

use std::io::{self, Write};

use model::WeightFormat;
use serde_json::{Value, json};

use super::subject::INPUTS;
use crate::table::or_dash;

/// What a product with so many rows costs.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) format: WeightFormat,
    /// Of the weights.
    pub(super) bytes: usize,
    pub(super) outputs: usize,
    pub(super) within_cache: bool,
    pub(super) rows: usize,
    /// Median, in microseconds.
    pub(super) us: f64,
    /// Time over that of one row.
    pub(super) ratio: Option<f64>,
    /// GB/s of reading memory of this size.
    pub(super) read_gbs: f64,
    pub(super) candle_us: Option<f64>,
    pub(super) candle_ratio: Option<f64>,
}

impl Row {
    fn gbs(&self) -> f64 {
        self.bytes as f64 / self.us / 1e3
    }

    fn of_read(&self) -> f64 {
        self.gbs() / self.read_gbs
    }

    /// The largest ratio aimed at.
    fn ratio_goal(&self) -> Option<f64> {
        match (self.rows, self.within_cache) {
            // Q4_K computes more for each byte; it is there for its size.
            _ if self.format == WeightFormat::Q4_K => None,
            (5, true) => Some(1.3),
            (5, false) => Some(1.2),
            (16, false) => Some(2.0),
            _ => None,
        }
    }

    /// The smallest share of the reading aimed at.
    fn read_goal(&self) -> Option<f64> {
        let counts = self.rows == 1 && !self.within_cache && self.format != WeightFormat::Q4_K;
        counts.then_some(0.85)
    }

    fn misses(&self) -> (bool, bool) {
        let ratio = self.ratio.zip(self.ratio_goal());
        (
            self.read_goal().is_some_and(|goal| self.of_read() < goal),
            ratio.is_some_and(|(ratio, goal)| ratio > goal),
        )
    }

    pub(super) fn json(&self) -> Value {
        let (misses_read, misses_ratio) = self.misses();
        json!({
            "format": self.format.name(),
            "mb": self.bytes as f64 / 1e6,
            "outputs": self.outputs,
            "inputs": INPUTS,
            "within_cache": self.within_cache,
            "rows": self.rows,
            "us": self.us,
            "gb_per_s": self.gbs(),
            "read_gb_per_s": self.read_gbs,
            "of_read": self.of_read(),
            "of_read_goal": self.read_goal(),
            "ratio": self.ratio,
            "ratio_goal": self.ratio_goal(),
            "misses_goal": misses_read || misses_ratio,
            "candle_us": self.candle_us,
            "candle_ratio": self.candle_ratio,
        })
    }
}

/// The rows of one matrix as a table.
///
/// # Errors
/// If nobody can read it.
pub(super) fn write(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let Some(first) = rows.first() else {
        return Ok(());
    };
    writeln!(
        out,
        "\n{}, {:.0} MB, {} outputs; reading: {:.1} GB/s",
        first.format,
        first.bytes as f64 / 1e6,
        first.outputs,
        first.read_gbs
    )?;
    writeln!(
        out,
        "{:>4} {:>11} {:>7} {:>9} {:>8} {:>11} {:>8} {:>11}",
        "rows", "us", "GB/s", "of read", "rows/1", "candle us", "candle/1", "candle/ours"
    )?;
    for row in rows {
        let (misses_read, misses_ratio) = row.misses();
        let mark = |missed: bool| if missed { '*' } else { ' ' };
        writeln!(
            out,
            "{:>4} {:>11.1} {:>7.1} {:>7.0}%{} {:>7}{} {:>11} {:>8} {:>11}",
            row.rows,
            row.us,
            row.gbs(),
            100.0 * row.of_read(),
            mark(misses_read),
            or_dash(row.ratio, |ratio| format!("{ratio:.2}")),
            mark(misses_ratio),
            or_dash(row.candle_us, |us| format!("{us:.1}")),
            or_dash(row.candle_ratio, |ratio| format!("{ratio:.2}")),
            or_dash(row.candle_us, |us| format!("{:.2}", us / row.us)),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_missed_on_their_side() {
        let row = |rows, within_cache, ratio, us| Row {
            format: WeightFormat::F32,
            bytes: 1_000_000,
            outputs: 122,
            within_cache,
            rows,
            us,
            ratio: Some(ratio),
            read_gbs: 100.0,
            candle_us: None,
            candle_ratio: None,
        };
        // Read in 10 us.
        assert_eq!(row(1, false, 1.0, 11.7).misses(), (false, false));
        assert_eq!(row(1, false, 1.0, 11.8).misses(), (true, false));
        assert_eq!(row(1, true, 1.0, 20.0).misses(), (false, false));
        assert_eq!(row(5, false, 1.21, 20.0).misses(), (false, true));
        assert_eq!(row(5, true, 1.21, 20.0).misses(), (false, false));
        assert_eq!(row(5, true, 1.31, 20.0).misses(), (false, true));
        assert_eq!(row(16, false, 2.01, 20.0).misses(), (false, true));
        assert_eq!(row(16, true, 3.0, 20.0).misses(), (false, false));
    }
}
