//! `outrider-bench batch`: several sessions that decode together on one engine, against one alone.

pub(crate) mod session;

use std::num::NonZeroUsize;

use anyhow::{anyhow, ensure};
use clap::Args;
use model::{Checkpoint, WeightFormat};
use speculation::sampling::SamplingParams;

use self::session::Sessions;
use super::models::{self, MeasuredModelArgs};
use super::report::{self, BenchReport, number, only_json, text};
use super::timing::{self, in_turn};
use crate::ranges;
use outrider::progress;

/// How many times the tokens of one session sixteen should make, on the larger model.
const GOAL: f64 = 4.0;

/// Most sessions of one measurement.
const MOST_SESSIONS: usize = 256;

/// Arguments of `outrider-bench batch`.
#[derive(Clone, Debug, Args)]
pub(super) struct BatchArgs {
    #[command(flatten)]
    models: MeasuredModelArgs,
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
    /// Temperature at which tokens are drawn; 0 takes the most likely one.
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    temperature: f32,
    /// Mass of the most likely tokens that are drawn from.
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    top_p: f32,
    /// Times that each figure is measured, in turn with the others; the median counts.
    #[arg(long, value_name = "N", default_value_t = 7)]
    repeats: usize,
}

/// What sessions that decode together took.
struct BatchRow {
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
        ranges::at_least_one([("repeats", self.repeats), ("tokens", self.tokens)])?;
        ensure!(!self.sessions.is_empty(), "--sessions: none are named");
        for &sessions in &self.sessions {
            ensure!(
                (1..=MOST_SESSIONS).contains(&sessions),
                "--sessions: {sessions} is out of range, expected 1 to {MOST_SESSIONS}"
            );
        }
        let sampling = self.sampling().validate(u32::MAX);
        sampling.map_err(|bad| anyhow!("--{}: {}", bad.field.replace('_', "-"), bad.problem))?;
        self.models.check()
    }

    fn sampling(&self) -> SamplingParams {
        SamplingParams {
            temperature: self.temperature,
            top_p: self.top_p,
            ..SamplingParams::default()
        }
    }
}

/// Measures.
pub(super) fn run(args: &BatchArgs, report: &mut BenchReport) -> anyhow::Result<()> {
    args.check()?;
    report.title("Sessions that decode together");
    for &which in &args.models.models {
        progress::show("loading models")?;
        let (name, checkpoint) = args.models.open(which)?;
        progress::show(&format!("{name}: sessions together"))?;
        for row in measure(args, &name, &checkpoint)? {
            report.row("batch", row.fields(args))?;
        }
    }
    report.note(format!(
        "{}, {} tokens before, temperature {}, top-p {}; ms a token: what a session waits; ratio: tokens/s of all together over those of \
         {} (goal for 16 against 1 on the larger model: {GOAL:.0})",
        args.format.name(),
        args.context,
        args.temperature,
        args.top_p,
        args.sessions[0],
    ));
    Ok(())
}

fn measure(args: &BatchArgs, name: &str, checkpoint: &Checkpoint) -> anyhow::Result<Vec<BatchRow>> {
    let limit = checkpoint.config().context_len.saturating_sub(args.tokens);
    ensure!(
        (1..=limit).contains(&args.context),
        "--context: {} is out of range, expected 1 to {limit} with --tokens {}",
        args.context,
        args.tokens
    );
    let most = args.sessions.iter().copied().max().unwrap_or(1);
    let most = NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN);
    let model = checkpoint.load(args.format)?;
    let sessions = Sessions::start(model, most, args.context, args.sampling())?;
    let times = in_turn(args.repeats, &args.sessions, |&count| {
        sessions.decode(count, args.tokens)
    })?;
    let rows = args.sessions.iter().zip(&times);
    let total = |count: usize, of: timing::CaseTime| (count * args.tokens) as f64 / of.us * 1e6;
    Ok(rows
        .map(|(&count, &of)| BatchRow {
            on: name.to_owned(),
            sessions: count,
            token_ms: of.us / args.tokens as f64 / 1e3,
            tokens_per_second: total(count, of),
            ratio: count as f64 / args.sessions[0] as f64 / of.ratio,
        })
        .collect())
}

impl BatchRow {
    fn fields(&self, args: &BatchArgs) -> report::Row {
        vec![
            text("on", self.on.clone()),
            only_json("format", args.format.name()),
            only_json("context", args.context),
            only_json("temperature", args.temperature),
            only_json("top_p", args.top_p),
            text("sessions", self.sessions),
            number("token_ms", self.token_ms, 3).called("ms a token"),
            number("tokens_per_second", self.tokens_per_second, 0).called("tokens/s"),
            number("ratio", self.ratio, 2),
        ]
    }
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
        let sampling = ["--temperature=1", "--top-p=.5"];
        let sizes = ["--sessions=2,3", "--tokens=4", "--context=5", "--repeats=1"];
        let args = args(&[&sizes[..], &sampling].concat());
        let (name, checkpoint) = args
            .models
            .open(models::WhichModel::Random)
            .expect("a model");
        let rows = measure(&args, &name, &checkpoint).expect("measured");
        assert_eq!((rows.len(), rows[0].ratio), (2, 1.0));
        let by_hand = 3.0 / (rows[1].token_ms / 1e3);
        assert!((rows[1].tokens_per_second / by_hand - 1.0).abs() < 1e-9);
        // Of a single turn the ratio is that of its figures.
        let ratio = rows[1].tokens_per_second / rows[0].tokens_per_second;
        assert!((rows[1].ratio / ratio - 1.0).abs() < 1e-9);
        let mut report = BenchReport::quiet();
        run(&args, &mut report).expect("measured");
        let text = report.text().replace('\n', " ");
        assert!(text.contains("over those of 2"), "{text}");
        let json = &report.objects("batch")[1];
        assert_eq!(
            (&json["sessions"], &json["format"]),
            (&3.into(), &"q8_0".into())
        );
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let refused = |flags: &[&str]| {
            run(&args(flags), &mut BenchReport::quiet())
                .expect_err("refused")
                .to_string()
        };
        assert!(refused(&["--repeats=0"]).starts_with("--repeats: 0"));
        assert!(refused(&["--tokens=0"]).starts_with("--tokens: 0"));
        assert!(refused(&["--sessions=0"]).starts_with("--sessions: 0"));
        assert!(refused(&["--sessions=257"]).starts_with("--sessions: 257"));
        assert!(refused(&["--context=2040"]).starts_with("--context: 2040"));
        assert!(refused(&["--top-p=0"]).starts_with("--top-p: 0"));
        assert!(refused(&["--temperature=-1"]).starts_with("--temperature: -1"));
    }
}
