//! `outrider-bench batch`: several sessions that decode together on one engine, against one alone.

mod session;

use std::io::{self, Write};
use std::num::NonZeroUsize;

use anstream::stdout;
use anyhow::ensure;
use clap::Args;
use model::{Checkpoint, WeightFormat};
use serde_json::{Value, json};

use self::session::Sessions;
use super::models::{self, ModelsArgs};
use super::timing::{self, in_turn};
use outrider::progress;

/// How many times the tokens of one session sixteen should make, on the larger model.
const GOAL: f64 = 4.0;

/// Most sessions of one measurement.
const MOST_SESSIONS: usize = 256;

/// Arguments of `outrider-bench batch`.
#[derive(Clone, Debug, Args)]
pub(super) struct BatchArgs {
    #[command(flatten)]
    models: ModelsArgs,
    /// Format of the weights.
    #[arg(long, value_name = "FORMAT", default_value = "q8_0", value_parser = models::format)]
    format: WeightFormat,
    /// Numbers of sessions that decode together; the first is what the others are compared with.
    #[arg(
        long,
        value_name = "NS",
        value_delimiter = ',',
        default_value = "1,2,4,8,16"
    )]
    sessions: Vec<usize>,
    /// Tokens that each session holds before.
    #[arg(long, value_name = "N", default_value_t = 64)]
    context: usize,
    /// Tokens that each session decodes in a measurement.
    #[arg(long, value_name = "N", default_value_t = 32)]
    tokens: usize,
    /// Times that each figure is measured, in turn with the others; the median counts.
    #[arg(long, value_name = "N", default_value_t = 7)]
    repeats: usize,
    /// Prints one JSON object a line instead of a table. A failure is {"error": {"message": ...}}.
    #[arg(long)]
    json: bool,
}

/// What sessions that decode together took.
struct Row {
    on: String,
    sessions: usize,
    /// Between two tokens of a session, in milliseconds.
    token_ms: f64,
    /// All sessions together.
    tokens_per_second: f64,
    /// Total tokens a second over those of the first row.
    ratio: f64,
}

impl BatchArgs {
    fn check(&self) -> anyhow::Result<()> {
        for (flag, value) in [("repeats", self.repeats), ("tokens", self.tokens)] {
            ensure!(
                value > 0,
                "--{flag}: 0 is out of range, expected at least 1"
            );
        }
        ensure!(!self.sessions.is_empty(), "--sessions: none are named");
        for &sessions in &self.sessions {
            ensure!(
                (1..=MOST_SESSIONS).contains(&sessions),
                "--sessions: {sessions} is out of range, expected 1 to {MOST_SESSIONS}"
            );
        }
        self.models.check()
    }
}

/// Measures and prints.
pub(super) fn run(args: &BatchArgs) -> anyhow::Result<()> {
    args.check()?;
    let mut measured = Vec::new();
    for &which in &args.models.models {
        progress::show("loading models")?;
        let (name, checkpoint) = args.models.open(which)?;
        progress::show(&format!("{name}: sessions together"))?;
        let rows = measure(args, &name, &checkpoint)?;
        progress::clear()?;
        if args.json {
            let mut out = stdout().lock();
            for row in &rows {
                writeln!(out, "{}", row.json(args))?;
            }
            out.flush()?;
        }
        measured.extend(rows);
    }
    if !args.json {
        write(&mut stdout().lock(), args, &measured)?;
    }
    Ok(())
}

fn measure(args: &BatchArgs, name: &str, checkpoint: &Checkpoint) -> anyhow::Result<Vec<Row>> {
    let limit = checkpoint.config().context_len.saturating_sub(args.tokens);
    ensure!(
        (1..=limit).contains(&args.context),
        "--context: {} is out of range, expected 1 to {limit} with --tokens {}",
        args.context,
        args.tokens
    );
    let most = args.sessions.iter().copied().max().unwrap_or(1);
    let most = NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN);
    let sessions = Sessions::start(checkpoint.load(args.format)?, most, args.context)?;
    let times = in_turn(args.repeats, &args.sessions, |&count| {
        sessions.decode(count, args.tokens)
    })?;
    let rows = args.sessions.iter().zip(&times);
    let total = |count: usize, of: timing::Figures| (count * args.tokens) as f64 / of.us * 1e6;
    Ok(rows
        .map(|(&count, &of)| Row {
            on: name.to_owned(),
            sessions: count,
            token_ms: of.us / args.tokens as f64 / 1e3,
            tokens_per_second: total(count, of),
            ratio: count as f64 / args.sessions[0] as f64 / of.ratio,
        })
        .collect())
}

impl Row {
    fn json(&self, args: &BatchArgs) -> Value {
        json!({
            "on": self.on,
            "format": args.format.name(),
            "context": args.context,
            "sessions": self.sessions,
            "token_ms": self.token_ms,
            "tokens_per_second": self.tokens_per_second,
            "ratio": self.ratio,
        })
    }
}

fn write(out: &mut impl Write, args: &BatchArgs, rows: &[Row]) -> io::Result<()> {
    let width = rows.iter().map(|row| row.on.len()).max();
    let width = width.unwrap_or_default();
    writeln!(
        out,
        "{:<width$} {:>8} {:>12} {:>9} {:>7}",
        "", "sessions", "ms a token", "tokens/s", "ratio"
    )?;
    for row in rows {
        writeln!(
            out,
            "{:<width$} {:>8} {:>12.3} {:>9.0} {:>7.2}",
            row.on, row.sessions, row.token_ms, row.tokens_per_second, row.ratio
        )?;
    }
    writeln!(
        out,
        "{}, {} tokens before; ms a token: what a session waits; ratio: tokens/s of all together over those of \
         {} (goal for 16 against 1 on the larger model: {GOAL:.0})",
        args.format.name(),
        args.context,
        args.sessions[0],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parsed;

    fn args(flags: &[&str]) -> BatchArgs {
        let small = ["--models=random", "--hidden=64", "--layers=1"];
        parsed(&[&small[..], &["--vocab=64"], flags].concat())
    }

    #[test]
    fn sessions_are_compared_with_the_first_number_of_them() {
        let args = args(&["--sessions=2,3", "--tokens=4", "--context=5", "--repeats=1"]);
        let (name, checkpoint) = args.models.open(models::Which::Random).expect("a model");
        let rows = measure(&args, &name, &checkpoint).expect("measured");
        assert_eq!((rows.len(), rows[0].ratio), (2, 1.0));
        let json = rows[1].json(&args);
        assert_eq!(json["sessions"], 3);
        assert_eq!(json["format"], "q8_0");
        let by_hand = 3.0 / (rows[1].token_ms / 1e3);
        assert!((rows[1].tokens_per_second / by_hand - 1.0).abs() < 1e-9);
        // Of a single turn the ratio is that of its figures.
        let ratio = rows[1].tokens_per_second / rows[0].tokens_per_second;
        assert!((rows[1].ratio / ratio - 1.0).abs() < 1e-9);
        let mut text = Vec::new();
        write(&mut text, &args, &rows).expect("written");
        let text = String::from_utf8(text).expect("text");
        assert!(text.contains("over those of 2"), "{text}");
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let refused = |flags: &[&str]| run(&args(flags)).expect_err("refused").to_string();
        assert!(refused(&["--repeats=0"]).starts_with("--repeats: 0"));
        assert!(refused(&["--tokens=0"]).starts_with("--tokens: 0"));
        assert!(refused(&["--sessions=0"]).starts_with("--sessions: 0"));
        assert!(refused(&["--sessions=257"]).starts_with("--sessions: 257"));
        assert!(refused(&["--context=2040"]).starts_with("--context: 2040"));
    }
}
