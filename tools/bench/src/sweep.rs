//! `outrider-bench sweep`: what quality each method keeps at which cost, on a task whose answers are known.

mod args;
mod judge;
mod likelihood;
mod point;
mod scorer;
mod task;

use std::process::ExitCode;

use anstream::eprintln;
use anyhow::Context;
use ops::shutdown;
use tokio_util::sync::CancellationToken;

use crate::measure::{RequestSetting, measure};
use crate::ranges;
use crate::report::{BenchReport, Plot, PlotAxis};
use crate::spec::{self, MeasuredMethod, Series};
pub(crate) use args::SweepArgs;
use client::Client;
use judge::{Criteria, Judge, Output};
use outrider::config::Config;
use outrider::connect;
use outrider::global::INTERRUPTED;
use outrider::measure::BASELINE;
use point::Point;
pub(crate) use task::CheckedTask;

/// The one table.
const POINTS: &str = "points";

/// Measures and draws.
pub(crate) async fn run(
    args: SweepArgs,
    config: Config,
    report: &mut BenchReport,
) -> anyhow::Result<ExitCode> {
    ranges::at_least_one([("seeds", args.seeds)])?;
    let series = spec::series(&args.methods).context("--methods")?;
    let names = args.request.input.names(args.reference_field.clone());
    let mut task = CheckedTask::load(args.task.as_deref(), &names, args.prompts)?;
    let criteria = args.criteria(&task)?;
    let left_out = if criteria.need_references() {
        task.leave_out_unknown()?
    } else {
        0
    };
    args.request.input.surround(&mut task.items)?;
    let stop = shutdown::on_signal()?;
    let coordinator = args.services.coordinator.as_deref();
    let sweep = Sweep {
        args: &args,
        series: &series,
        criteria: &criteria,
        left_out,
    };
    let ask = async |client, _: &str| sweep.run(task, client, &stop, report).await;
    connect::ask(coordinator, config, ask).await
}

/// What is measured, and how.
struct Sweep<'a> {
    args: &'a SweepArgs,
    series: &'a [Series],
    criteria: &'a Criteria,
    /// Prompts of whose answers nothing is known.
    left_out: usize,
}

impl Sweep<'_> {
    async fn run(
        &self,
        mut task: CheckedTask,
        client: Client,
        stop: &CancellationToken,
        report: &mut BenchReport,
    ) -> anyhow::Result<ExitCode> {
        let Self { args, criteria, .. } = self;
        if let Some(file) = &args.svg {
            // Found out now, and not after everything was measured.
            std::fs::File::create(file)
                .with_context(|| format!("--svg: {} cannot be written", file.display()))?;
        }
        let measuring = async {
            let shortened = args.request.shorten(&client, "", &mut task.items).await?;
            report.title("Quality against target calls");
            report.note(format!(
                "Task {}, T={}, {} outputs of each of {} prompts a method; measured by {}.",
                task.name,
                args.temperature,
                args.outputs(),
                task.items.len(),
                criteria.names()
            ));
            for (count, what) in [
                (
                    self.left_out,
                    "were left out, as no answer to them is known",
                ),
                (
                    shortened,
                    "were longer than --max-input and lost their beginning",
                ),
            ] {
                if count > 0 {
                    report.note(format!("{count} prompts {what}."));
                }
            }
            self.measure_all(&task, &client, report).await
        };
        let complete = tokio::select! {
            done = measuring => Some(done?),
            () = stop.cancelled() => None,
        };
        if complete.is_none() {
            eprintln!("interrupted: what was measured until then is printed, no plot was drawn");
            return Ok(ExitCode::from(INTERRUPTED));
        }
        if let Some(file) = &args.svg {
            let drawn = report.svg(&Plot {
                table: POINTS,
                caption: format!("{}, temperature {}", task.name, args.temperature),
                series: "series",
                x: PlotAxis::of("target_calls_per_token", "target calls per token"),
                y: PlotAxis::of("quality", &criteria.axis()),
                ..Plot::default()
            })?;
            std::fs::write(file, drawn)
                .with_context(|| format!("--svg: {} cannot be written", file.display()))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Measures every method; each is told on stderr as soon as it is done.
    async fn measure_all(
        &self,
        task: &CheckedTask,
        client: &Client,
        report: &mut BenchReport,
    ) -> anyhow::Result<()> {
        let Self {
            args,
            series,
            criteria,
            ..
        } = *self;
        let mut form = args.request.form();
        if form.stop.is_empty() {
            form.stop.clone_from(&task.stop);
        }
        let setting = |method: &MeasuredMethod| RequestSetting {
            method: method.clone(),
            form: form.clone(),
            temperature: args.temperature,
            draft_len: Some(args.draft_len),
            max_tokens: args.max_tokens,
        };
        let variants: usize = series.iter().map(|series| series.methods.len()).sum();
        // Caches are filled before anything is timed, and what the coordinator refuses is refused now.
        let baseline = setting(&MeasuredMethod::parse(BASELINE)?);
        let answer = measure(client, &baseline, &task.items[0].text, 0).await?;
        for variant in series.iter().flat_map(|series| &series.methods) {
            measure(client, &setting(&variant.method), &task.items[0].text, 0).await?;
        }
        let mut judge = Judge::new(criteria, &task.items, client, &form).await?;
        // And so is a scorer that does not work.
        let first = Output {
            item: 0,
            text: answer.text,
            token_ids: answer.token_ids,
        };
        judge.scores(&[first]).await?;
        for series in series {
            for variant in &series.methods {
                let setting = setting(&variant.method);
                let mut point = Point::new(series, variant);
                for seed in 0..args.outputs() {
                    for (index, item) in task.items.iter().enumerate() {
                        let seed = (seed * task.items.len() + index) as u64;
                        let answer = measure(client, &setting, &item.text, seed).await?;
                        point.add(index, answer);
                    }
                }
                let scores = judge.scores(&point.outputs).await?;
                eprintln!(
                    "{}/{variants} {}: {}, {:.3} target calls a token",
                    report.rows(POINTS).len() + 1,
                    variant.method,
                    criteria.summary(&scores),
                    point.measured.totals.target_calls_per_token()
                );
                let judged = (criteria, &scores[..]);
                let row = point.row(task, judged, args.temperature, args.draft_len);
                report.row(POINTS, row)?;
            }
        }
        Ok(())
    }
}
