//! `outrider-bench load`: the default under load, against the target alone under the same load.

mod args;
pub(crate) mod clients;
mod pair;
mod rows;
mod services;
mod step;

use std::sync::Arc;

use client::{Client, Policy};
use outrider::config::Config;
use outrider::connect;
use outrider::measure::BASELINE;
use outrider::progress;

use self::clients::ClientTraffic;
use self::rows::{GOAL, LoadTurn, in_words};
use self::services::RunningServices;
use self::step::step;
use crate::pairs;
use crate::report::{BenchReport, Plot, PlotAxis, Row, number, text};
use crate::spec::MeasuredMethod;

pub(super) use self::args::LoadArgs;
pub(super) use self::pair::{SyntheticArgs, name};
pub(super) use self::services::{ServiceArgs, serve};

/// Measures.
pub(super) async fn run(
    args: &LoadArgs,
    config: Config,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    args.check()?;
    let method = MeasuredMethod::parse(&args.method)?;
    report.title(format!("{method} under load, beside {BASELINE}"));
    let config = pairs::without_extras(config).on_loopback();
    for &which in &args.pairs {
        for &temperature in &args.temperatures {
            let (pair, prompts) = args.synthetic.pair(which, temperature, report)?;
            for &layout in &args.layouts {
                let services = RunningServices::start(layout, config.clone(), &pair).await?;
                let client = connect::within(services.url())?;
                let prompts = prompts.clone();
                let bench = LoadBench::new(args, (&method, client), prompts, temperature);
                let labels = vec![
                    text("pair", name(which)),
                    text("processes", layout.name()),
                    text("temperature", temperature),
                ];
                bench?.measure(args, &labels, report).await?;
                services.stop().await?;
            }
        }
    }
    let rested = if report.shows("rested") {
        "; rested: of the target's forwards, those in which it decoded alone"
    } else {
        ""
    };
    report.note(format!(
        "ratio: tokens/s of {method} over those of {BASELINE}, median of {} turns (goal: {GOAL}); p99 ratio: of the \
         99th percentiles of the time a token takes after the one before{rested}",
        args.repeats
    ));
    if let Some(file) = &args.svg {
        let plot = Plot {
            table: "load",
            caption: format!("{method} over {BASELINE}"),
            series: "series",
            x: PlotAxis::of("log2_clients", "clients, as a power of two"),
            y: PlotAxis::of("percent", "tokens/s over those of target-only, percent"),
            ..Plot::default()
        };
        std::fs::write(file, report.svg(&plot)?)?;
    }
    Ok(())
}

/// The two sides of the comparison.
struct LoadBench {
    baseline: Arc<ClientTraffic>,
    method: Arc<ClientTraffic>,
    /// The method, with reports of its rounds.
    reported: Arc<ClientTraffic>,
}

impl LoadBench {
    fn new(
        args: &LoadArgs,
        (method, client): (&MeasuredMethod, Client),
        prompts: Vec<String>,
        temperature: f32,
    ) -> anyhow::Result<Self> {
        let prompts: Arc<[String]> = prompts.into();
        // What a client waits for, or asks for again, would count as the service's time.
        let client = client.with_policy(Policy::NONE);
        let traffic = |method, reports| {
            Arc::new(ClientTraffic {
                reports,
                client: client.clone(),
                method,
                prompts: Arc::clone(&prompts),
                temperature,
                max_tokens: args.max_tokens,
                ignores_end: false,
                grammar: None,
            })
        };
        Ok(Self {
            baseline: traffic(MeasuredMethod::parse(BASELINE)?, false),
            method: traffic(method.clone(), false),
            reported: traffic(method.clone(), true),
        })
    }

    /// Measures under each number of clients.
    async fn measure(
        &self,
        args: &LoadArgs,
        labels: &Row,
        report: &mut BenchReport,
    ) -> anyhow::Result<()> {
        for &clients in &args.clients {
            progress::show(&format!("{}: {clients} clients", in_words(labels)))?;
            let turns = self.compare(args, clients).await?;
            let labels: Row = labels
                .iter()
                .cloned()
                .chain([text("clients", clients)])
                .collect();
            report.row("load", rows::load(labels.clone(), &turns, clients))?;
            let reported = args.sample(&self.reported, clients).await?;
            report.row("rounds", rows::rounds(labels, &reported))?;
        }
        let most = args.clients.iter().copied().max().unwrap_or(1);
        if args.step && most > 1 {
            progress::show(&format!("{}: a step in load", in_words(labels)))?;
            let step = step(&self.method, most).await?;
            let mut row = labels.clone();
            row.extend([
                text("clients", format!("1, {most}, 1")),
                number("up_seconds", step.up, 1).called("settled after, s"),
                number("down_seconds", step.down, 1).called("and after, s"),
            ]);
            report.row("step", row)?;
        }
        Ok(())
    }

    /// Measures both in turn; who comes first changes from one turn to the next. A first measurement of each
    /// does not count.
    async fn compare(&self, args: &LoadArgs, clients: usize) -> anyhow::Result<Vec<LoadTurn>> {
        let sample = async |traffic: &Arc<ClientTraffic>| args.sample(traffic, clients).await;
        sample(&self.baseline).await?;
        sample(&self.method).await?;
        let mut turns = Vec::new();
        for turn in 0..args.repeats {
            let (first, second) = if turn % 2 == 0 {
                (&self.baseline, &self.method)
            } else {
                (&self.method, &self.baseline)
            };
            let samples = (sample(first).await?, sample(second).await?);
            let (baseline, method) = match turn % 2 {
                0 => samples,
                _ => (samples.1, samples.0),
            };
            turns.push(LoadTurn { baseline, method });
        }
        Ok(turns)
    }
}
