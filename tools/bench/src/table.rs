//! Results of the methods, one row a kind of prompt.

use std::io::{self, Write};

use serde_json::json;

use super::measure::Measured;

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

/// What was measured, beside the prompts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heading<'a> {
    pub(super) method: &'a str,
    pub(super) temperature: f32,
    pub(super) draft_len: u32,
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

    /// The row as a line, `name` its first column.
    fn write(&self, out: &mut impl Write, name: &str, width: usize) -> io::Result<()> {
        let method = &self.method;
        let percent = |share: f64| format!("{:.0}%", 100.0 * share);
        writeln!(
            out,
            "{name:<width$} {:>7} {:>12.0} {:>12.0} {:>6.2} {:>11.3} {:>11} {:>8} {:>8} {:>11}",
            self.prompts,
            self.baseline.tokens_per_second(),
            method.tokens_per_second(),
            self.ratio(),
            method.target_calls_per_token(),
            or_dash(method.mean_acceptance_length(), |mean| format!("{mean:.2}")),
            or_dash(method.acceptance_rate(), percent),
            or_dash(method.deferral_rate(), percent),
            or_dash(method.wire_bytes_per_round(), |bytes| format!("{bytes:.0}")),
        )
    }

    fn json(&self, heading: Heading<'_>) -> serde_json::Value {
        let times = &self.method.times;
        let mean = |ms: f64| ms / times.counted.max(1.0);
        json!({
            "kind": self.kind,
            "prompts": self.prompts,
            "method": heading.method,
            "temperature": heading.temperature,
            "draft_len": heading.draft_len,
            "tokens": self.method.tokens,
            "baseline_tokens_per_second": self.baseline.tokens_per_second(),
            "tokens_per_second": self.method.tokens_per_second(),
            "ratio": self.ratio(),
            "target_calls_per_token": self.method.target_calls_per_token(),
            "mean_acceptance_length": self.method.mean_acceptance_length(),
            "draft_acceptance_rate": self.method.acceptance_rate(),
            "deferral_rate": self.method.deferral_rate(),
            "wire_bytes_per_round": self.method.wire_bytes_per_round(),
            "round_ms": {
                "draft_forward": mean(times.draft_forward),
                "drafter_rest": mean(times.draft_rest),
                "verify_forward": mean(times.verify_forward),
                "verifier_rest": mean(times.verify_rest),
                "wire": mean(times.wire),
            },
        })
    }
}

/// A figure as text; a dash where there is none.
pub(crate) fn or_dash(figure: Option<f64>, text: impl Fn(f64) -> String) -> String {
    figure.map_or_else(|| "-".to_owned(), text)
}

fn write_columns(out: &mut impl Write, first: &str, width: usize) -> io::Result<()> {
    writeln!(
        out,
        "{first:<width$} {:>7} {:>12} {:>12} {:>6} {:>11} {:>11} {:>8} {:>8} {:>11}",
        "prompts",
        "target tok/s",
        "method tok/s",
        "ratio",
        "calls/token",
        "mean accept",
        "accepted",
        "deferred",
        "bytes/round"
    )
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

    fn each(&self) -> impl Iterator<Item = &Row> {
        self.kinds.iter().chain(std::iter::once(&self.all))
    }

    /// Writes one JSON object a row.
    ///
    /// # Errors
    /// If nobody can read them. So for the functions that follow.
    pub(super) fn write_json(&self, out: &mut impl Write, heading: Heading<'_>) -> io::Result<()> {
        self.each()
            .try_for_each(|row| writeln!(out, "{}", row.json(heading)))
    }

    /// Writes a table, and where the time of a round went.
    pub(super) fn write(&self, out: &mut impl Write, heading: Heading<'_>) -> io::Result<()> {
        let Heading {
            method,
            temperature,
            draft_len,
        } = heading;
        writeln!(
            out,
            "{method} against target-only, T={temperature}, K={draft_len}"
        )?;
        write_columns(out, "kind", 10)?;
        for row in self.each() {
            row.write(out, &row.kind, 10)?;
        }
        write_times(out, &self.all.method)
    }
}

/// Writes one line a method, over all prompts.
pub(super) fn write_summary(
    out: &mut impl Write,
    methods: &[(String, Rows)],
    temperature: f32,
) -> io::Result<()> {
    let longest = methods.iter().map(|(name, _)| name.len()).max();
    let width = longest.unwrap_or_default().max("method".len());
    writeln!(out, "all methods over all prompts, T={temperature}")?;
    write_columns(out, "method", width)?;
    for (name, rows) in methods {
        rows.all.write(out, name, width)?;
    }
    writeln!(out)
}

fn write_times(out: &mut impl Write, method: &Measured) -> io::Result<()> {
    let times = &method.times;
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
