//! Results, one row a kind of prompt.

use std::io::{self, Write};

use anstream::stdout;
use serde_json::json;

use super::Measured;

/// Results by kind of prompt, in the order the kinds first came, and over all of them.
#[derive(Debug)]
pub(super) struct Rows {
    kinds: Vec<Row>,
    all: Row,
}

#[derive(Debug, Default)]
struct Row {
    kind: String,
    prompts: usize,
    baseline: Measured,
    method: Measured,
}

impl Row {
    fn add(&mut self, baseline: &Measured, method: &Measured) {
        self.prompts += 1;
        self.baseline.add(baseline);
        self.method.add(method);
    }

    fn ratio(&self) -> f64 {
        self.method.tokens_per_second() / self.baseline.tokens_per_second().max(1e-9)
    }
}

impl Default for Rows {
    fn default() -> Self {
        Self {
            kinds: Vec::new(),
            all: Row {
                kind: "all".to_owned(),
                ..Row::default()
            },
        }
    }
}

impl Rows {
    pub(super) fn add(&mut self, kind: &str, baseline: &Measured, method: &Measured) {
        let known = self.kinds.iter().position(|row| row.kind == kind);
        let index = known.unwrap_or_else(|| {
            self.kinds.push(Row {
                kind: kind.to_owned(),
                ..Row::default()
            });
            self.kinds.len() - 1
        });
        self.kinds[index].add(baseline, method);
        self.all.add(baseline, method);
    }

    /// Prints the rows.
    ///
    /// # Errors
    /// If nobody can read them.
    pub(super) fn print(
        &self,
        method: &str,
        temperature: f32,
        draft_len: u32,
        as_json: bool,
    ) -> io::Result<()> {
        let mut out = stdout().lock();
        let rows = self.kinds.iter().chain(std::iter::once(&self.all));
        if as_json {
            for row in rows {
                writeln!(out, "{}", json_row(row, method, temperature, draft_len))?;
            }
            return Ok(());
        }
        writeln!(
            out,
            "{method} against target-only, T={temperature}, K={draft_len}"
        )?;
        writeln!(
            out,
            "{:<10} {:>7} {:>12} {:>12} {:>6} {:>11} {:>9}",
            "prompts", "", "target tok/s", "method tok/s", "ratio", "mean accept", "accepted"
        )?;
        for row in rows {
            writeln!(
                out,
                "{:<10} {:>7} {:>12.0} {:>12.0} {:>6.2} {:>11.2} {:>8.0}%",
                row.kind,
                row.prompts,
                row.baseline.tokens_per_second(),
                row.method.tokens_per_second(),
                row.ratio(),
                row.method.mean_acceptance_length(),
                100.0 * row.method.accepted / row.method.drafted.max(1.0),
            )?;
        }
        print_times(&mut out, &self.all)
    }
}

fn print_times(out: &mut impl Write, all: &Row) -> io::Result<()> {
    let times = &all.method.times;
    if times.counted > 0.0 {
        let mean = |ms: f64| ms / times.counted;
        writeln!(
            out,
            "a round, ms: draft forward {:.3}, drafter's rest {:.3}, verify forward {:.3}, \
             verifier's rest {:.3}, wire {:.3}",
            mean(times.draft_forward),
            mean(times.draft_rest),
            mean(times.verify_forward),
            mean(times.verify_rest),
            mean(times.wire),
        )?;
    }
    writeln!(out)
}

fn json_row(row: &Row, method: &str, temperature: f32, draft_len: u32) -> serde_json::Value {
    let times = &row.method.times;
    let mean = |ms: f64| {
        if times.counted > 0.0 {
            ms / times.counted
        } else {
            0.0
        }
    };
    json!({
        "kind": row.kind,
        "prompts": row.prompts,
        "method": method,
        "temperature": temperature,
        "draft_len": draft_len,
        "baseline_tokens_per_second": row.baseline.tokens_per_second(),
        "tokens_per_second": row.method.tokens_per_second(),
        "ratio": row.ratio(),
        "mean_acceptance_length": row.method.mean_acceptance_length(),
        "draft_acceptance_rate": row.method.accepted / row.method.drafted.max(1.0),
        "round_ms": {
            "draft_forward": mean(times.draft_forward),
            "drafter_rest": mean(times.draft_rest),
            "verify_forward": mean(times.verify_forward),
            "verifier_rest": mean(times.verify_rest),
            "wire": mean(times.wire),
        },
    })
}
