//! One product.

use model::WeightFormat;

use super::subject::INPUTS;
use crate::report::{self, number, only_json, percent, text};

/// What a product with so many rows costs.
#[derive(Clone, Debug)]
pub(super) struct KernelRow {
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

impl KernelRow {
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

    pub(super) fn fields(&self) -> report::Row {
        let (misses_read, misses_ratio) = self.misses();
        let of_ours = self.candle_us.map(|candle| candle / self.us);
        vec![
            text("format", self.format.name()),
            number("mb", self.bytes as f64 / 1e6, 0).called("MB"),
            only_json("outputs", self.outputs),
            only_json("inputs", INPUTS),
            only_json("within_cache", self.within_cache),
            text("rows", self.rows),
            number("us", self.us, 1),
            number("gb_per_s", self.gbs(), 1).called("GB/s"),
            number("read_gb_per_s", self.read_gbs, 1).called("reading, GB/s"),
            percent("of_read", self.of_read(), 0).missed(misses_read),
            only_json("of_read_goal", self.read_goal()),
            number("ratio", self.ratio, 2).missed(misses_ratio),
            only_json("ratio_goal", self.ratio_goal()),
            only_json("misses_goal", misses_read || misses_ratio),
            number("candle_us", self.candle_us, 1),
            number("candle_ratio", self.candle_ratio, 2),
            number("candle_of_ours", of_ours, 2).called("candle/ours"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_missed_on_their_side() {
        let row = |rows, within_cache, ratio, us| KernelRow {
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
