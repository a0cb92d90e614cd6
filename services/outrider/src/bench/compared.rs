//! What a method and the target alone took, run by run.

use std::io::Write;

use serde_json::{Value, json};

use super::BenchArgs;
use super::load::Load;
use crate::measure::{BASELINE, Measured};

/// What both took for the same prompts.
#[derive(Clone, Default)]
pub(super) struct Pair {
    pub(super) baseline: Measured,
    pub(super) method: Measured,
}

impl Pair {
    fn speedup(&self) -> f64 {
        self.method.tokens_per_second() / self.baseline.tokens_per_second().max(1e-9)
    }
}

/// What both took in each run, and how busy the machine was meanwhile.
pub(super) struct Compared {
    pub(super) prompts: usize,
    /// At least one.
    pub(super) runs: Vec<Pair>,
    pub(super) load: Load,
    /// Whether the services ran in this process.
    pub(super) is_here: bool,
}

/// The least and the most of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    least: f64,
    most: f64,
}

impl Interval {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let none = Self {
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
        };
        values.fold(none, |Self { least, most }, value| Self {
            least: least.min(value),
            most: most.max(value),
        })
    }

    fn json(self) -> Value {
        json!([self.least, self.most])
    }
}

/// A method, what it took in all runs, and its tokens a second in each.
struct Row<'a> {
    method: &'a str,
    all: Measured,
    tokens_per_second: Interval,
}

impl Compared {
    /// Returns what both took in all runs.
    fn all(&self) -> Pair {
        let mut all = Pair::default();
        for run in &self.runs {
            all.baseline.add(&run.baseline);
            all.method.add(&run.method);
        }
        all
    }

    fn speedups(&self) -> Interval {
        Interval::of(self.runs.iter().map(Pair::speedup))
    }

    fn rows<'a>(&self, args: &'a BenchArgs) -> [Row<'a>; 2] {
        let all = self.all();
        let row = |method, all, of: fn(&Pair) -> &Measured| Row {
            method,
            all,
            tokens_per_second: Interval::of(
                self.runs.iter().map(|run| of(run).tokens_per_second()),
            ),
        };
        [
            row(BASELINE, all.baseline, |run| &run.baseline),
            row(&args.method.0.method, all.method, |run| &run.method),
        ]
    }

    /// Returns how many requests of each method there were.
    fn requests(&self) -> f64 {
        (self.prompts * self.runs.len()) as f64
    }

    pub(super) fn json(&self, args: &BenchArgs) -> Value {
        let rows = self.rows(args).map(
            |Row {
                 method,
                 all,
                 tokens_per_second,
             }| {
                json!({
                    "method": method,
                    "tokens": all.tokens,
                    "tokens_per_second": all.tokens_per_second(),
                    "tokens_per_second_interval": tokens_per_second.json(),
                    "time_to_first_token_ms": all.first_token_ms / self.requests(),
                    "target_calls_per_token": all.target_calls_per_token(),
                    "draft_acceptance_rate": all.acceptance_rate(),
                })
            },
        );
        json!({
            "prompts": self.prompts,
            "repeats": self.runs.len(),
            "temperature": args.temperature,
            "max_tokens": args.max_tokens,
            "methods": rows,
            "speedup": self.all().speedup(),
            "speedup_interval": self.speedups().json(),
            "load": self.load.json(),
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
        for Row {
            method,
            all,
            tokens_per_second: Interval { least, most },
        } in self.rows(args)
        {
            let accepted = all.acceptance_rate();
            writeln!(
                out,
                "{method:<16} {:>9.0} {:>13} {:>15.1} {:>18.3} {:>9}",
                all.tokens_per_second(),
                format!("{least:.0}-{most:.0}"),
                all.first_token_ms / self.requests(),
                all.target_calls_per_token(),
                accepted.map_or_else(|| "-".to_owned(), |rate| format!("{:.0}%", 100.0 * rate)),
            )?;
        }
        let Interval { least, most } = self.speedups();
        writeln!(
            out,
            "\n{} makes {:.2} times the tokens a second of {BASELINE}, {least:.2} to {most:.2} in each run",
            args.method.0.method,
            self.all().speedup()
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
            let measured = |total_ms| Measured {
                tokens: 10.0,
                total_ms,
                ..Measured::default()
            };
            Pair {
                baseline: measured(baseline_ms),
                method: measured(method_ms),
            }
        };
        let compared = Compared {
            prompts: 1,
            runs: vec![run(200.0, 100.0), run(100.0, 100.0), run(300.0, 100.0)],
            load: Load::default(),
            is_here: true,
        };
        let Interval { least, most } = compared.speedups();
        assert!((least - 1.0).abs() < 1e-9 && (most - 3.0).abs() < 1e-9);
        assert!((compared.all().speedup() - 2.0).abs() < 1e-9);
    }
}
