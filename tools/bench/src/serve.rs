//! `outrider-bench serve`: any server of the OpenAI API under load, as its clients see it.

mod answer;
mod args;
mod arrivals;
mod bench;
mod drafts;
mod endpoint;
mod events;
mod failure;
mod form;
mod load_point;
mod notes;
mod points;
mod prompts;
mod reading;
mod rows;
mod slo;
mod spread;
mod synthetic;
mod tally;

use std::process::ExitCode;

use anyhow::{Context, bail};
use outrider::interrupt;
use tokio_util::sync::CancellationToken;

use self::bench::ServeBench;
use self::tally::Tally;
use crate::report::{BenchReport, Plot, PlotAxis};

pub(super) use self::args::ServeArgs;

/// What stands below the flags in the help.
pub(super) const EXAMPLES: &str = "\
Examples:
  One request after another, then eight at once, with the built-in prompts:
    outrider-bench serve --url http://127.0.0.1:8000/v1 --concurrency 1,8
  How many requests a second keep your limits:
    outrider-bench serve --url ... --rate 1,2,4,8 --slo ttft:200ms,tpot:20ms --svg goodput.svg
  Long prompts of random words, answers of one length:
    outrider-bench serve --url ... --input-tokens 2000 --extra-body '{\"ignore_eos\": true}'
  What drafts bring for each kind of text, beside the target alone:
    outrider-bench serve --url ... --chat --prompts question.jsonl --per-kind
    outrider-bench serve --url ... --chat --prompts question.jsonl --per-kind \\
      --extra-body '{\"speculation\": {\"enabled\": false}}'
  For programs: one JSON object a row:
    outrider-bench serve --url ... --json";

/// Measures until all is measured or a signal says to end; what was measured by then is reported.
pub(super) async fn run(args: &ServeArgs, report: &mut BenchReport) -> anyhow::Result<ExitCode> {
    args.check()?;
    let interrupted = interrupt::first()?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let signal = tokio::spawn(async move {
        let signal = interrupted.await;
        stopping.cancel();
        signal.exit_code
    });
    measure(args, report, &stop).await?;
    if stop.is_cancelled() {
        return Ok(signal.await?.into());
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures all load points, unless `stop` is cancelled before.
async fn measure(
    args: &ServeArgs,
    report: &mut BenchReport,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let prepared = tokio::select! {
        prepared = ServeBench::prepare(args) => prepared?,
        () = stop.cancelled() => return Ok(()),
    };
    report.title(format!(
        "{} at {}{}",
        prepared.model,
        args.server.url.trim_end_matches('/'),
        prepared.form.path()
    ));
    let points = args.load.points();
    let mut completed = 0;
    let mut first_failure = None;
    for (index, &(rate, at_once)) in points.iter().enumerate() {
        let point = prepared.point(args, index, (rate, at_once), stop).await?;
        let slo = args.told.slo;
        let tally = Tally::of(point.load.outcomes.iter(), slo.unwrap_or_default());
        completed += tally.completed;
        report.row("load", point.load(&tally, slo))?;
        for row in point.latencies(&tally) {
            report.row("latency", row)?;
        }
        if args.told.per_kind {
            for row in point.kinds(slo.unwrap_or_default()) {
                report.row("kinds", row)?;
            }
        }
        for row in point.failures() {
            report.row("failures", row)?;
        }
        let failures = point.load.outcomes.iter();
        let mut failures = failures.filter_map(|outcome| outcome.answer.as_ref().err());
        first_failure = first_failure.or_else(|| failures.next().map(ToString::to_string));
        point.notes(&tally, report);
        if stop.is_cancelled() {
            break;
        }
    }
    prepared.notes(args, points.len(), report);
    if let Some(file) = &args.told.svg {
        let drawn = report.svg(&plot(args, &prepared.model))?;
        std::fs::write(file, drawn).with_context(|| format!("--svg: {}", file.display()))?;
    }
    match first_failure {
        Some(failure) if completed == 0 => {
            bail!("no request was completed; the first one: {failure}")
        }
        _ => Ok(()),
    }
}

/// Goodput, or where no limits say what is good the slowest first tokens, against the requests that are sent.
fn plot(args: &ServeArgs, model: &str) -> Plot<'static> {
    let y = match args.told.slo {
        Some(_) => PlotAxis::of("goodput_per_second", "goodput, requests a second"),
        None => PlotAxis::of("ttft_ms_p99", "time to first token, p99, ms"),
    };
    Plot {
        table: "load",
        caption: model.to_owned(),
        series: "series",
        x: PlotAxis::of(
            "offered_per_second",
            "requests a second: as sent, at rate inf as answered",
        ),
        y,
        ..Plot::default()
    }
}

#[cfg(test)]
mod tests;
