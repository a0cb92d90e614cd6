//! What was measured on one model.

use std::io;

use model::WeightFormat;

use crate::report::{BenchReport, Row, number, only_json, percent, text};
use crate::timing;

/// Most of a step that may be spent outside of matrix products, on the embedded target.
const OUTSIDE_GOAL: f64 = 0.25;

/// Least share of the tokens that memory allows, on a model larger than the caches.
const BANDWIDTH_GOAL: f64 = 0.75;

/// How many times faster than llama.cpp a step and a block should be.
const LLAMA_GOALS: [f64; 2] = [1.3, 2.5];

/// Figures of one model in one format.
pub(super) struct DecodeFigures {
    pub(super) on: String,
    pub(super) format: WeightFormat,
    pub(super) context: usize,
    /// Bytes read for a token at least.
    pub(super) bytes: usize,
    /// Forwards by the number of positions they score, the first one.
    pub(super) positions: Vec<(usize, timing::CaseTime)>,
    /// The products of a step alone.
    pub(super) products: timing::CaseTime,
    /// Reading the bytes.
    pub(super) read: timing::CaseTime,
    /// A step of llama.cpp, and a block of several positions.
    pub(super) llama_cpp: Option<(timing::CaseTime, timing::CaseTime)>,
}

impl DecodeFigures {
    fn step_us(&self) -> f64 {
        self.positions[0].1.us
    }

    fn tokens_per_second(&self) -> f64 {
        1e6 / self.step_us()
    }

    /// Share of a step that is not spent in matrix products.
    fn outside(&self) -> f64 {
        1.0 - self.products.ratio
    }

    /// How many times faster than llama.cpp a step is, and a block of the same size.
    fn against_llama_cpp(&self, block: usize) -> Option<[f64; 2]> {
        let (step, scored) = self.llama_cpp?;
        let ours = self.positions.iter().find(|(count, _)| *count == block)?;
        Some([step.ratio, scored.ratio / ours.1.ratio])
    }

    /// Adds its rows to the tables.
    ///
    /// # Errors
    /// If nobody can read them.
    pub(super) fn add_to(&self, report: &mut BenchReport) -> io::Result<()> {
        let reported = || -> Row {
            vec![
                text("on", self.on.clone()),
                text("format", self.format.name()),
            ]
        };
        let step = [
            only_json("context", self.context),
            number("ms_per_token", self.step_us() / 1e3, 3).called("ms/token"),
            number("tokens_per_second", self.tokens_per_second(), 0).called("tokens/s"),
            number("products_ms", self.products.us / 1e3, 3).called("products, ms"),
            percent("outside_products", self.outside(), 0).called("outside"),
            only_json("weight_bytes", self.bytes),
            number(
                "bandwidth_gb_per_second",
                self.bytes as f64 / self.read.us / 1e3,
                1,
            )
            .called("GB/s"),
            number("bound_tokens_per_second", 1e6 / self.read.us, 0).called("bound"),
            percent("of_bound", self.read.ratio, 0),
        ];
        report.row("steps", reported().into_iter().chain(step).collect())?;
        for (positions, of) in &self.positions {
            let forward = [
                text("positions", *positions).across(),
                only_json("ms", of.us / 1e3),
                number("ratio", of.ratio, 2).cell(),
            ];
            report.row("positions", reported().into_iter().chain(forward).collect())?;
        }
        let llama_cpp = self.llama_cpp.zip(self.against_llama_cpp(super::BLOCK));
        if let Some(((step, block), [decode, scored])) = llama_cpp {
            let compared = [
                number("ms_per_token", step.us / 1e3, 3).called("ms/token"),
                number("block_ms", block.us / 1e3, 3)
                    .called(format!("{} positions, ms", super::BLOCK)),
                number("decode_speedup", decode, 2),
                number("block_speedup", scored, 2),
            ];
            report.row(
                "llama-cpp",
                reported().into_iter().chain(compared).collect(),
            )?;
            report.note(format!(
                "llama-cpp: what it takes, and how many times faster ours is (goals {:.1} and {:.1})",
                LLAMA_GOALS[0], LLAMA_GOALS[1],
            ));
        }
        Ok(())
    }
}

/// Says what the columns are.
pub(super) fn explain(report: &mut BenchReport) {
    report.note(format!(
        "products: a step's matrix products alone; outside: the rest of the step (goal on the embedded target: \
         {:.0}%); bound: tokens/s if the weights were only read, at the GB/s measured in the same turns (goal on \
         the larger model in q8_0: {:.0}%); positions: a forward of several over one of one",
        100.0 * OUTSIDE_GOAL,
        100.0 * BANDWIDTH_GOAL,
    ));
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn shares_and_speedups_come_from_ratios_of_the_same_turn() {
        let of = |us, ratio| timing::CaseTime { us, ratio };
        let figures = DecodeFigures {
            on: "a model".to_owned(),
            format: WeightFormat::Q8_0,
            context: 128,
            bytes: 5_000_000,
            positions: vec![(1, of(200.0, 1.0)), (super::super::BLOCK, of(240.0, 1.2))],
            products: of(150.0, 0.8),
            read: of(100.0, 0.5),
            llama_cpp: Some((of(280.0, 1.4), of(610.0, 3.0))),
        };
        let mut report = BenchReport::quiet();
        figures.add_to(&mut report).expect("nothing is printed");
        let number = |value: &Value| value.as_f64().expect("a number");
        let step = &report.objects("steps")[0];
        assert!((number(&step["outside_products"]) - 0.2).abs() < 1e-12);
        assert_eq!(step["of_bound"], 0.5);
        assert_eq!(step["tokens_per_second"], 5000.0);
        assert_eq!(step["bandwidth_gb_per_second"], 50.0);
        let other = &report.objects("llama-cpp")[0];
        assert_eq!(other["decode_speedup"], 1.4);
        assert!((number(&other["block_speedup"]) - 2.5).abs() < 1e-12);
        let text = report.text();
        assert!(
            text.contains("20%") && text.contains("2.50") && text.contains("q8_0"),
            "{text}"
        );
    }
}
