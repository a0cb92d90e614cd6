//! What was measured on one model, as a table and as JSON.

use std::io::{self, Write};

use model::WeightFormat;
use serde_json::{Value, json};

use crate::timing;

/// Most of a step that may be spent outside of matrix products, on the embedded target.
const OUTSIDE_GOAL: f64 = 0.25;

/// Least share of the tokens that memory allows, on a model larger than the caches.
const BANDWIDTH_GOAL: f64 = 0.75;

/// How many times faster than llama.cpp a step and a block should be.
const LLAMA_GOALS: [f64; 2] = [1.3, 2.5];

/// Figures of one model in one format.
pub(super) struct Figures {
    pub(super) on: String,
    pub(super) format: WeightFormat,
    pub(super) context: usize,
    /// Bytes read for a token at least.
    pub(super) bytes: usize,
    /// Forwards by the number of positions they score, the first one.
    pub(super) positions: Vec<(usize, timing::Figures)>,
    /// The products of a step alone.
    pub(super) products: timing::Figures,
    /// Reading the bytes.
    pub(super) read: timing::Figures,
    /// A step of llama.cpp, and a block of several positions.
    pub(super) llama_cpp: Option<(timing::Figures, timing::Figures)>,
}

impl Figures {
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

    pub(super) fn json(&self) -> Value {
        let positions = self
            .positions
            .iter()
            .map(|(count, of)| json!({ "positions": count, "ms": of.us / 1e3, "ratio": of.ratio }));
        let llama = self.llama_cpp.zip(self.against_llama_cpp(super::BLOCK));
        json!({
            "on": self.on,
            "format": self.format.name(),
            "context": self.context,
            "ms_per_token": self.step_us() / 1e3,
            "tokens_per_second": self.tokens_per_second(),
            "products_ms": self.products.us / 1e3,
            "outside_products": self.outside(),
            "weight_bytes": self.bytes,
            "bandwidth_gb_per_second": self.bytes as f64 / self.read.us / 1e3,
            "bound_tokens_per_second": 1e6 / self.read.us,
            "of_bound": self.read.ratio,
            "positions": positions.collect::<Vec<_>>(),
            "llama_cpp": llama.map(|((step, block), [decode, scored])| json!({
                "ms_per_token": step.us / 1e3,
                "block_ms": block.us / 1e3,
                "decode_speedup": decode,
                "block_speedup": scored,
            })),
        })
    }
}

/// The figures as tables.
///
/// # Errors
/// If nobody can read them.
pub(super) fn write(out: &mut impl Write, measured: &[Figures]) -> io::Result<()> {
    let names = measured.iter().map(|figures| figures.on.len());
    let width = names.max().unwrap_or_default();
    writeln!(
        out,
        "{:<width$} {:>6} {:>9} {:>9} {:>9} {:>8} {:>7} {:>10} {:>9}",
        "", "", "ms/token", "tokens/s", "products", "outside", "GB/s", "bound", "of bound"
    )?;
    for figures in measured {
        writeln!(
            out,
            "{:<width$} {:>6} {:>9.3} {:>9.0} {:>9.3} {:>7.0}% {:>7.1} {:>10.0} {:>8.0}%",
            figures.on,
            figures.format.name(),
            figures.step_us() / 1e3,
            figures.tokens_per_second(),
            figures.products.us / 1e3,
            100.0 * figures.outside(),
            figures.bytes as f64 / figures.read.us / 1e3,
            1e6 / figures.read.us,
            100.0 * figures.read.ratio,
        )?;
    }
    writeln!(
        out,
        "products: a step's matrix products alone, ms; outside: the rest of the step (goal on the embedded \
         target: {:.0}%)\nbound: tokens/s if the weights were only read, at the GB/s measured in the same \
         turns (goal on the larger model in q8_0: {:.0}%)\n",
        100.0 * OUTSIDE_GOAL,
        100.0 * BANDWIDTH_GOAL,
    )?;
    for figures in measured {
        write!(out, "{:<width$} {:>6}", figures.on, figures.format.name())?;
        for (count, of) in &figures.positions[1..] {
            write!(out, "  {count} positions {:.2} x", of.ratio)?;
        }
        writeln!(out)?;
    }
    for figures in measured {
        let Some([decode, scored]) = figures.against_llama_cpp(super::BLOCK) else {
            continue;
        };
        writeln!(
            out,
            "\nagainst llama.cpp on {}, {}: a step {decode:.2} times as fast (goal {:.1}), {} positions \
             {scored:.2} times (goal {:.1})",
            figures.on,
            figures.format.name(),
            LLAMA_GOALS[0],
            super::BLOCK,
            LLAMA_GOALS[1],
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_speedups_come_from_ratios_of_the_same_turn() {
        let of = |us, ratio| timing::Figures { us, ratio };
        let figures = Figures {
            on: "a model".to_owned(),
            format: WeightFormat::Q8_0,
            context: 128,
            bytes: 5_000_000,
            positions: vec![(1, of(200.0, 1.0)), (super::super::BLOCK, of(240.0, 1.2))],
            products: of(150.0, 0.8),
            read: of(100.0, 0.5),
            llama_cpp: Some((of(280.0, 1.4), of(610.0, 3.0))),
        };
        let json = figures.json();
        let number = |value: &Value| value.as_f64().expect("a number");
        assert!((number(&json["outside_products"]) - 0.2).abs() < 1e-12);
        assert_eq!(json["of_bound"], 0.5);
        assert_eq!(json["tokens_per_second"], 5000.0);
        assert_eq!(json["bandwidth_gb_per_second"], 50.0);
        assert_eq!(json["llama_cpp"]["decode_speedup"], 1.4);
        assert!((number(&json["llama_cpp"]["block_speedup"]) - 2.5).abs() < 1e-12);
        let mut text = Vec::new();
        write(&mut text, &[figures]).expect("written");
        let text = String::from_utf8(text).expect("text");
        assert!(
            text.contains("20%") && text.contains("2.50 times") && text.contains("q8_0"),
            "{text}"
        );
    }
}
