//! What a method and the target alone took, run by run.

use std::io::Write;

use serde_json::{Value, json};

use super::BenchArgs;
use super::load::Load;
use crate::measure::{BASELINE, RequestTotals};

/// What both took in each run, and how busy the machine was meanwhile.
pub(super) struct MethodComparison {
    pub(super) prompts: usize,
    /// What the target alone and the method took; at least one run.
    pub(super) runs: Vec<[RequestTotals; 2]>,
    pub(super) load: Load,
    /// Whether the services ran in this process.
    pub(super) is_here: bool,
}

/// A method, what it took in all runs, and its tokens a second in the slowest and in the fastest one.
struct MethodRow<'a> {
    method: &'a str,
    all: RequestTotals,
    interval: [f64; 2],
}

/// Returns how many times the tokens a second of the target alone the method made.
fn speedup([baseline, method]: &[RequestTotals; 2]) -> f64 {
    method.tokens_per_second() / baseline.tokens_per_second().max(1e-9)
}

/// Returns the least and the most of several runs.
fn interval(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold(
        [f64::INFINITY, f64::NEG_INFINITY],
        |[least, most], value| [least.min(value), most.max(value)],
    )
}

impl MethodComparison {
    /// Returns what both took in all runs.
    fn all(&self) -> [RequestTotals; 2] {
        let mut all = [RequestTotals::default(), RequestTotals::default()];
        for run in &self.runs {
            for (all, measured) in all.iter_mut().zip(run) {
                all.add(measured);
            }
        }
        all
    }

    fn speedups(&self) -> [f64; 2] {
        interval(self.runs.iter().map(speedup))
    }

    fn rows<'a>(&self, args: &'a BenchArgs) -> [MethodRow<'a>; 2] {
        let mut all = self.all();
        [0, 1].map(|which| MethodRow {
            method: args.methods()[which],
            all: std::mem::take(&mut all[which]),
            interval: interval(self.runs.iter().map(|run| run[which].tokens_per_second())),
        })
    }

    /// Returns how many requests of each method there were.
    fn requests(&self) -> f64 {
        (self.prompts * self.runs.len()) as f64
    }

    pub(super) fn json(&self, args: &BenchArgs) -> Value {
        let rows = self.rows(args).map(|row| {
            json!({
                "method": row.method,
                "tokens": row.all.tokens,
                "tokens_per_second": row.all.tokens_per_second(),
                "tokens_per_second_interval": row.interval,
                "time_to_first_token_ms": row.all.first_token_ms / self.requests(),
                "target_calls_per_token": row.all.target_calls_per_token(),
                "draft_acceptance_rate": row.all.acceptance_rate(),
            })
        });
        json!({
            "prompts": self.prompts,
            "repeats": self.runs.len(),
            "temperature": args.temperature,
            "max_tokens": args.max_tokens,
            "methods": rows,
            "speedup": speedup(&self.all()),
            "speedup_interval": self.speedups(),
            "load": self.load,
        })
    }

    pub(super) fn write(&self, args: &BenchArgs, out: &mut impl Write) -> std::io::Result<()> {
        let (prompts, most, runs) = (self.prompts, args.max_tokens, self.runs.len());
        writeln!(
            out,
            "{prompts} prompts, up to {most} tokens each, temperature {}, one at a time, in {runs} runs\n\n\
             {:<16} {:>9} {:>13} {:>15} {:>18} {:>9}",
            args.temperature,
            "method",
            "tokens/s",
            "least-most",
            "first token, ms",
            "target calls/token",
            "accepted"
        )?;
        for row in self.rows(args) {
            let (all, [least, most]) = (&row.all, row.interval);
            let accepted = all.acceptance_rate();
            writeln!(
                out,
                "{:<16} {:>9.0} {:>13} {:>15.1} {:>18.3} {:>9}",
                row.method,
                all.tokens_per_second(),
                format!("{least:.0}-{most:.0}"),
                all.first_token_ms / self.requests(),
                all.target_calls_per_token(),
                accepted.map_or_else(|| "-".to_owned(), |rate| format!("{:.0}%", 100.0 * rate)),
            )?;
        }
        let [least, most] = self.speedups();
        writeln!(
            out,
            "\n{} makes {:.2} times the tokens a second of {BASELINE}, {least:.2} to {most:.2} in each run",
            args.method.0.method,
            speedup(&self.all())
        )?;
        for line in self.load.lines(self.is_here) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_goes_from_the_slowest_run_to_the_fastest() {
        let run = |baseline_ms, method_ms| {
            let measured = |total_ms| RequestTotals {
                tokens: 10.0,
                total_ms,
                ..RequestTotals::default()
            };
            [measured(baseline_ms), measured(method_ms)]
        };
        let compared = MethodComparison {
            prompts: 1,
            runs: vec![run(200.0, 100.0), run(100.0, 100.0), run(300.0, 100.0)],
            load: Load::default(),
            is_here: true,
        };
        let [least, most] = compared.speedups();
        assert!((least - 1.0).abs() < 1e-9 && (most - 3.0).abs() < 1e-9);
        assert!((speedup(&compared.all()) - 2.0).abs() < 1e-9);
    }
}
