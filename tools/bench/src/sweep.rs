//! `outrider-bench sweep`: what quality each method keeps at which cost, on a task whose answers are known.

mod point;
mod task;

use std::path::PathBuf;
use std::process::ExitCode;

use anstream::eprintln;
use anyhow::Context;
use clap::Args;
use ops::shutdown;
use tokio_util::sync::CancellationToken;

use crate::measure::{RequestSetting, measure};
use crate::ranges;
use crate::report::{BenchReport, Plot, PlotAxis};
use crate::spec::{self, Series};
use client::Client;
use outrider::args::ServicesArgs;
use outrider::config::Config;
use outrider::connect;
use outrider::global::INTERRUPTED;
use outrider::measure::BASELINE;
use point::Point;
use task::CheckedTask;

/// The methods of the default sweep. Both ends first, then every trade-off from the target's side to
/// the draft model's.
const METHODS: &str = "target-only,draft-only,coupled,\
    lossy:alpha=0/0.2/0.4/0.6/0.8/0.9,\
    lossy:kl-budget=0/0.01/0.03/0.1/0.3/1,\
    rejection:draft-len=8,\
    rejection:tree=comb:2:draft-len=4,\
    rejection:tree=comb:4:draft-len=2,\
    spec-cascade:rule=chow:alpha=0/0.05/0.1/0.2/0.3/0.4/0.5/0.7/1,\
    spec-cascade:rule=diff:alpha=-1/0/0.05/0.1/0.2/0.3/0.5/1,\
    spec-cascade:rule=opt:alpha=0/0.1/0.25/0.5/1/2,\
    spec-cascade:rule=token-v3:alpha=-0.01/0/0.1/0.3/0.5/0.7/0.9,\
    token-cascade:rule=chow:alpha=0/0.05/0.1/0.2/0.3/0.4/0.5/0.7/1,\
    bild:alpha=0/0.5/1/2/3/5,\
    bild:alpha=2:fallback=0/0.2/0.4/0.6/0.8/0.95";

/// The one table.
const POINTS: &str = "points";

/// Arguments of `outrider-bench sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) services: ServicesArgs,
    /// Prompts and answers as JSON lines {"prompt": ..., "answer": ...}; without it 200 sentences
    /// to be translated into German, which the default pair has learnt and was not trained on. An
    /// output is right if its first line is the answer, white space around them aside.
    #[arg(long, value_name = "FILE")]
    task: Option<PathBuf>,
    /// Most prompts.
    #[arg(long, value_name = "N", default_value_t = 200)]
    prompts: usize,
    /// Methods; alternatives between slashes make a line of the plot:
    /// `lossy:alpha=0/0.2/0.5,target-only`. Without it both ends and every trade-off between them.
    #[arg(long, value_name = "METHODS", value_delimiter = ',', default_value = METHODS, hide_default_value = true)]
    methods: Vec<String>,
    /// Temperature. At 0 an output does not depend on chance.
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    temperature: f32,
    /// Outputs of each prompt, each with a seed of its own; at temperature 0 one is made.
    #[arg(long, value_name = "N", default_value_t = 3)]
    seeds: usize,
    /// Draft tokens a round, of methods that do not say.
    #[arg(long, value_name = "K", default_value_t = 4)]
    draft_len: u32,
    /// Output tokens of each request, unless it ends before.
    #[arg(long, value_name = "N", default_value_t = 64)]
    max_tokens: u32,
    /// Draws quality against target calls per token, one line a series of methods.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl SweepArgs {
    /// Outputs of each prompt.
    fn outputs(&self) -> usize {
        if self.temperature == 0.0 {
            1
        } else {
            self.seeds
        }
    }
}

/// Measures and draws.
pub(crate) async fn run(
    args: SweepArgs,
    config: Config,
    report: &mut BenchReport,
) -> anyhow::Result<ExitCode> {
    ranges::at_least_one([("seeds", args.seeds)])?;
    let series = spec::series(&args.methods).context("--methods")?;
    let task = CheckedTask::load(args.task.as_deref(), args.prompts)?;
    let stop = shutdown::on_signal()?;
    let coordinator = args.services.coordinator.as_deref();
    let ask = async |client, _: &str| sweep(&args, &series, &task, client, &stop, report).await;
    connect::ask(coordinator, config, ask).await
}

async fn sweep(
    args: &SweepArgs,
    series: &[Series],
    task: &CheckedTask,
    client: Client,
    stop: &CancellationToken,
    report: &mut BenchReport,
) -> anyhow::Result<ExitCode> {
    if let Some(file) = &args.svg {
        // Found out now, and not after everything was measured.
        std::fs::File::create(file)
            .with_context(|| format!("--svg: {} cannot be written", file.display()))?;
    }
    report.title("Quality against target calls");
    report.note(format!(
        "Task {}, T={}, {} outputs of each of {} prompts a method; right: the first line is the answer.",
        task.name,
        args.temperature,
        args.outputs(),
        task.items.len()
    ));
    let complete = tokio::select! {
        done = measure_all(args, series, task, client, report) => Some(done?),
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
            x: PlotAxis {
                key: "target_calls_per_token",
                name: "target calls per token",
            },
            y: PlotAxis {
                key: "quality",
                name: "right answers, percent",
            },
        })?;
        std::fs::write(file, drawn)
            .with_context(|| format!("--svg: {} cannot be written", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures every method; each is told on stderr as soon as it is done.
async fn measure_all(
    args: &SweepArgs,
    series: &[Series],
    task: &CheckedTask,
    client: Client,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    let setting = |method: &spec::MeasuredMethod| RequestSetting {
        method: method.clone(),
        temperature: args.temperature,
        draft_len: Some(args.draft_len),
        max_tokens: args.max_tokens,
        stop: vec!["\n".to_owned()],
    };
    let variants = || {
        let each = |series: &'_ Series| series.methods.len();
        series.iter().map(each).sum::<usize>()
    };
    // Caches are filled before anything is timed, and what the coordinator refuses is refused now.
    let baseline = spec::MeasuredMethod::parse(BASELINE)?;
    measure(&client, &setting(&baseline), &task.items[0].prompt, 0).await?;
    for variant in series.iter().flat_map(|series| &series.methods) {
        let setting = setting(&variant.method);
        measure(&client, &setting, &task.items[0].prompt, 0).await?;
    }
    for series in series {
        for variant in &series.methods {
            let setting = setting(&variant.method);
            let mut point = Point::new(series, variant);
            for seed in 0..args.outputs() {
                for (index, item) in task.items.iter().enumerate() {
                    let seed = (seed * task.items.len() + index) as u64;
                    let answer = measure(&client, &setting, &item.prompt, seed).await?;
                    point.add(item.is_answered_by(&answer.text), &answer.measured);
                }
            }
            eprintln!(
                "{}/{} {}: {:.1}% right, {:.3} target calls a token",
                report.rows(POINTS).len() + 1,
                variants(),
                variant.method,
                100.0 * point.quality(),
                point.measured.totals.target_calls_per_token()
            );
            report.row(POINTS, point.row(task, args.temperature, args.draft_len))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_methods_can_be_read() {
        let items: Vec<_> = METHODS
            .split(',')
            .map(|item| item.trim().to_owned())
            .collect();
        let series = spec::series(&items).expect("series");
        let count: usize = series.iter().map(|series| series.methods.len()).sum();
        assert_eq!((series.len(), count), (items.len(), 69));
    }
}
