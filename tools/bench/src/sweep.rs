//! `outrider-bench sweep`: what quality each method keeps at which cost, on a task whose answers are known.

mod judge;
mod likelihood;
mod point;
mod scorer;
mod task;

use std::path::PathBuf;
use std::process::ExitCode;

use anstream::eprintln;
use anyhow::Context;
use clap::Args;
use ops::shutdown;
use tokio_util::sync::CancellationToken;

use crate::measure::{RequestSetting, measure};
use crate::quality::Metric;
use crate::ranges;
use crate::report::{BenchReport, Plot, PlotAxis};
use crate::request::{FORMS, RequestArgs};
use crate::spec::{self, MeasuredMethod, Series};
use client::Client;
use judge::{Criteria, Judge, Output};
use outrider::args::ServicesArgs;
use outrider::config::Config;
use outrider::connect;
use outrider::global::INTERRUPTED;
use outrider::measure::BASELINE;
use point::Point;
use scorer::Scorer;
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
#[command(after_long_help = FORMS)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) services: ServicesArgs,
    /// Prompts and answers: JSON lines {"prompt": ..., "answer": ...} or of another form, see below; without it 200
    /// sentences to be translated into German, which the default pair has learnt and was not trained on.
    ///
    /// Outputs of the built-in task end before a newline, unless --stop says otherwise; those of other tasks where the
    /// model ends them, and at --max-tokens.
    #[arg(long, value_name = "FILE")]
    task: Option<PathBuf>,
    /// Field of JSON objects that holds the known answer, or a list of them.
    #[arg(long, value_name = "NAME", requires = "task")]
    reference_field: Option<String>,
    /// What outputs are measured by, the first of them drawn by --svg. Without it by the form of the task: exact for ours,
    /// last-number for GSM8K, bleu for HumanEval, rouge-l for Spec-Bench and conversations, likelihood where no answers
    /// are known. Prompts without a known answer are left out where one is needed.
    #[arg(long, value_name = "METRICS", value_delimiter = ',')]
    metric: Vec<Metric>,
    /// Your own program that scores outputs, with its arguments, as in 'python3 judge.py --strict'. For each method it is
    /// started once, gets a JSON line {"id", "prompt", "output", "references"} for each output on its standard input, and
    /// answers with a JSON line {"score": x} for each, in the same order.
    #[arg(long, value_name = "COMMAND")]
    scorer: Option<String>,
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
    #[command(flatten)]
    request: RequestArgs,
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

    /// Returns what outputs of `task` are judged by.
    fn criteria(&self, task: &CheckedTask) -> anyhow::Result<Criteria> {
        let scorer = self.scorer.as_deref().map(Scorer::parse).transpose()?;
        let metrics = match &self.metric[..] {
            [] if scorer.is_none() => vec![task.metric()],
            named => named.to_vec(),
        };
        Ok(Criteria { metrics, scorer })
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
    let names = args.request.input.names(args.reference_field.clone());
    let mut task = CheckedTask::load(args.task.as_deref(), &names, args.prompts)?;
    let criteria = args.criteria(&task)?;
    let left_out = if criteria.need_references() {
        task.leave_out_unknown()?
    } else {
        0
    };
    args.request.input.add_prefix(&mut task.items)?;
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
                x: PlotAxis {
                    key: "target_calls_per_token",
                    name: "target calls per token",
                },
                y: PlotAxis {
                    key: "quality",
                    name: &criteria.axis(),
                },
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
