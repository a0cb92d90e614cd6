//! `outrider-bench load`: the default under load, against the target alone under the same load.

mod clients;
mod services;
mod step;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;
use outrider::config::Config;
use outrider::connect::{self, Coordinator};
use outrider::measure::BASELINE;
use outrider::{progress, prompts};

use self::clients::{Clients, Sample, Traffic};
use self::services::{Layout, Services};
use self::step::step;
use crate::models::random;
use crate::pairs::calibration::calibrate;
use crate::pairs::{self, Pair, Synthetic, Which};
use crate::report::{Axis, Field, Plot, Report, Row, number, only_json, percent, text};
use crate::spec::MethodSpec;

pub(super) use self::services::{ServiceArgs, serve};

/// Width and layers of the synthetic target, 110 million parameters, its vocabulary, and how many of its layers
/// its draft has.
const SYNTHETIC: (usize, usize, usize) = (576, 23, 32_000);
const DRAFT_LAYERS: usize = 1;

/// Words of a synthetic prompt, and how many prompts there are.
const PROMPT_WORDS: usize = 32;
const SYNTHETIC_PROMPTS: usize = 64;

/// What the default should make of target-only's tokens at least.
const GOAL: f64 = 0.97;

/// Which pair, made how.
#[derive(Clone, Debug, Args)]
struct PairArgs {
    #[arg(long)]
    pair: Which,
    /// Scale of the synthetic target's deeper layers.
    #[arg(long, default_value_t = 1.0)]
    scale: f32,
}

impl PairArgs {
    fn pair(&self) -> anyhow::Result<Pair> {
        match self.pair {
            Which::Embedded => Pair::embedded(),
            Which::Synthetic => synthetic()?.pair(self.scale),
        }
    }

    /// Itself on a command line.
    fn flags(&self) -> [String; 4] {
        let name = name(self.pair).to_owned();
        let scale = self.scale.to_string();
        ["--pair".to_owned(), name, "--scale".to_owned(), scale]
    }
}

fn synthetic() -> anyhow::Result<Synthetic> {
    let (hidden, layers, vocab) = SYNTHETIC;
    Ok(Synthetic {
        target: random(hidden, layers, vocab)?,
        draft_layers: DRAFT_LAYERS,
    })
}

#[derive(Clone, Debug, Args)]
pub(super) struct LoadArgs {
    /// Pairs to measure.
    #[arg(
        long,
        value_name = "PAIRS",
        value_delimiter = ',',
        default_value = "embedded,synthetic"
    )]
    pairs: Vec<Which>,
    /// The method beside target-only, with its settings after colons as in `compare`.
    #[arg(long, value_name = "METHOD", default_value = "coupled")]
    method: String,
    /// Temperatures. The synthetic pair is made anew for each.
    #[arg(long, value_name = "TS", value_delimiter = ',', default_value = "0,1")]
    temperatures: Vec<f32>,
    /// Numbers of clients.
    #[arg(
        long,
        value_name = "NS",
        value_delimiter = ',',
        default_value = "1,4,16,64"
    )]
    clients: Vec<usize>,
    /// Where the services run: in one process, each in a process of its own, or these apart from one another, the
    /// drafter on the last processor and the verifier on the others (with taskset).
    #[arg(
        long,
        value_name = "LAYOUTS",
        value_delimiter = ',',
        default_value = "one"
    )]
    layouts: Vec<Layout>,
    /// Times that both are measured, in turn.
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeats: usize,
    /// Seconds in which tokens are counted.
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    window: f64,
    /// Seconds before, in which requests get under way.
    #[arg(long, value_name = "S", default_value_t = 0.5)]
    settle: f64,
    /// Most output tokens of each request.
    #[arg(long, value_name = "N", default_value_t = 128)]
    max_tokens: u32,
    /// Share of coupled drafts that the synthetic target accepts.
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    acceptance: f64,
    /// Scale of the synthetic target's deeper layers, which else is searched for --acceptance; what a run before
    /// printed saves a minute.
    #[arg(long, value_name = "SCALE")]
    scale: Option<f32>,
    /// Measures, too, how long the method takes to settle when one client becomes as many as there are at most, and
    /// when these leave.
    #[arg(long)]
    step: bool,
    /// File to draw the ratios in, as SVG.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl LoadArgs {
    fn check(&self) -> anyhow::Result<()> {
        for (flag, count) in [
            ("pairs", self.pairs.len()),
            ("temperatures", self.temperatures.len()),
            ("clients", self.clients.len()),
            ("layouts", self.layouts.len()),
            ("repeats", self.repeats),
            ("max-tokens", self.max_tokens as usize),
        ] {
            ensure!(
                count > 0,
                "--{flag}: 0 is out of range, expected at least 1"
            );
        }
        for (flag, seconds) in [("window", self.window), ("settle", self.settle)] {
            ensure!(
                (0.01..=600.0).contains(&seconds),
                "--{flag}: {seconds} is out of range, expected 0.01 to 600"
            );
        }
        for &clients in &self.clients {
            ensure!(
                (1..=512).contains(&clients),
                "--clients: {clients} is out of range, expected 1 to 512"
            );
        }
        for &temperature in &self.temperatures {
            ensure!(
                (0.0..=100.0).contains(&temperature),
                "--temperatures: {temperature} is out of range, expected 0 to 100"
            );
        }
        Ok(())
    }

    /// How the pair is made, and its prompts.
    fn pair(
        &self,
        which: Which,
        temperature: f32,
        report: &mut Report,
    ) -> anyhow::Result<(PairArgs, Vec<String>)> {
        let pair = |scale| PairArgs { pair: which, scale };
        if which == Which::Embedded {
            let known = prompts::load(None, usize::MAX)?;
            let texts = known.into_iter().map(|prompt| prompt.text);
            return Ok((pair(1.0), texts.collect()));
        }
        let scale = match self.scale {
            Some(scale) => scale,
            None => calibrate(&synthetic()?, temperature, self.acceptance)?.scale,
        };
        report.note(format!(
            "synthetic, T={temperature}: deeper layers at a scale of {scale}"
        ));
        let prompt = |seed| pairs::prompt(SYNTHETIC.2, PROMPT_WORDS, 1000 + seed);
        Ok((pair(scale), (0..SYNTHETIC_PROMPTS).map(prompt).collect()))
    }
}

/// Measures.
pub(super) async fn run(
    args: &LoadArgs,
    config: Config,
    report: &mut Report,
) -> anyhow::Result<()> {
    args.check()?;
    let method = MethodSpec::parse(&args.method)?;
    report.title(format!("{method} under load, beside {BASELINE}"));
    let config = pairs::without_extras(config).on_loopback();
    for &which in &args.pairs {
        for &temperature in &args.temperatures {
            let (pair, prompts) = args.pair(which, temperature, report)?;
            for &layout in &args.layouts {
                let services = Services::start(layout, config.clone(), &pair).await?;
                let client = connect::within(services.url())?;
                let prompts = prompts.clone();
                let bench = Bench::new(args, (&method, client), prompts, temperature);
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
    report.note(format!(
        "ratio: tokens/s of {method} over those of {BASELINE}, median of {} turns (goal: {GOAL}); p99: of the \
         time a token takes after the one before; rested: of the target's forwards, those in which it decoded alone",
        args.repeats
    ));
    if let Some(file) = &args.svg {
        let plot = Plot {
            table: "load",
            caption: format!("{method} over {BASELINE}"),
            series: "series",
            x: Axis {
                key: "log2_clients",
                name: "clients, as a power of two",
            },
            y: Axis {
                key: "percent",
                name: "tokens/s over those of target-only, percent",
            },
        };
        std::fs::write(file, report.svg(&plot)?)?;
    }
    Ok(())
}

fn name(which: Which) -> &'static str {
    match which {
        Which::Embedded => "embedded",
        Which::Synthetic => "synthetic",
    }
}

/// The two sides of the comparison.
struct Bench {
    baseline: Arc<Traffic>,
    method: Arc<Traffic>,
    /// The method, with reports of its rounds.
    reported: Arc<Traffic>,
}

/// Both, measured one after the other.
struct Turn {
    baseline: Sample,
    method: Sample,
}

impl Bench {
    fn new(
        args: &LoadArgs,
        (method, client): (&MethodSpec, Coordinator),
        prompts: Vec<String>,
        temperature: f32,
    ) -> anyhow::Result<Self> {
        let prompts: Arc<[String]> = prompts.into();
        let traffic = |method, reports| {
            Arc::new(Traffic {
                reports,
                client: client.clone(),
                method,
                prompts: Arc::clone(&prompts),
                temperature,
                max_tokens: args.max_tokens,
            })
        };
        Ok(Self {
            baseline: traffic(MethodSpec::parse(BASELINE)?, false),
            method: traffic(method.clone(), false),
            reported: traffic(method.clone(), true),
        })
    }

    /// Measures under each number of clients.
    async fn measure(
        &self,
        args: &LoadArgs,
        labels: &Row,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        for &clients in &args.clients {
            progress::show(&format!("{}: {clients} clients", in_words(labels)))?;
            let turns = self.compare(args, clients).await?;
            let labels: Row = labels
                .iter()
                .cloned()
                .chain([text("clients", clients)])
                .collect();
            report.row("load", row(labels.clone(), &turns, clients))?;
            let reported = sample(args, &self.reported, clients).await?;
            report.row("rounds", rounds_row(labels, &reported))?;
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
    async fn compare(&self, args: &LoadArgs, clients: usize) -> anyhow::Result<Vec<Turn>> {
        let sample = async |traffic: &Arc<Traffic>| sample(args, traffic, clients).await;
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
            turns.push(Turn { baseline, method });
        }
        Ok(turns)
    }
}

/// What reaches `count` clients in a window, once they are under way.
async fn sample(args: &LoadArgs, traffic: &Arc<Traffic>, count: usize) -> anyhow::Result<Sample> {
    let clients = Clients::start(traffic, count);
    let seconds = Duration::from_secs_f64;
    tokio::time::sleep(seconds(args.settle)).await;
    let begin = Instant::now();
    tokio::time::sleep(seconds(args.window)).await;
    let received = clients.stop().await?;
    Ok(Sample::of(&received, begin, seconds(args.window)))
}

/// The values of `labels`, for a line of progress.
fn in_words(labels: &Row) -> String {
    let words = labels.iter().map(Field::shown);
    words.collect::<Vec<_>>().join(", ")
}

fn row(labels: Row, turns: &[Turn], clients: usize) -> Row {
    let median_of = |of: fn(&Turn) -> f64| median(turns.iter().map(of).collect());
    let ratios = |of: fn(&Sample) -> f64| -> Vec<f64> {
        let ratio = |turn: &Turn| of(&turn.method) / of(&turn.baseline).max(f64::MIN_POSITIVE);
        turns.iter().map(ratio).collect()
    };
    let speeds = ratios(|sample| sample.tokens_per_second);
    let ratio = median(speeds.clone());
    let figures = [
        number(
            "baseline_tokens_per_second",
            median_of(|turn| turn.baseline.tokens_per_second),
            0,
        )
        .called("target tokens/s"),
        number(
            "tokens_per_second",
            median_of(|turn| turn.method.tokens_per_second),
            0,
        )
        .called("tokens/s"),
        number("ratio", ratio, 2).missed(ratio < GOAL),
        only_json("ratios", speeds),
        only_json("series", in_words(&labels[..3].to_vec())),
        only_json("log2_clients", (clients as f64).log2()),
        only_json("percent", 100.0 * ratio),
        number(
            "baseline_token_ms_p99",
            median_of(|turn| turn.baseline.token_ms_p99),
            2,
        )
        .called("target p99, ms"),
        number(
            "token_ms_p99",
            median_of(|turn| turn.method.token_ms_p99),
            2,
        )
        .called("p99, ms"),
        number("p99_ratio", median(ratios(|sample| sample.token_ms_p99)), 2),
    ];
    labels.into_iter().chain(figures).collect()
}

/// Where the time of rounds with drafts went.
fn rounds_row(labels: Row, sample: &Sample) -> Row {
    let mut row = labels;
    let Sample {
        rounds, lengths, ..
    } = sample;
    row.extend([
        percent("rested", lengths.rested, 0),
        number("predicted_gain", lengths.predicted_gain, 2),
        number("measured_gain", lengths.measured_gain, 2),
        text("rounds", rounds.count),
        number("drafted", rounds.drafted, 1),
        number("accepted", rounds.accepted, 1),
    ]);
    for (peer, share) in ["draft", "verify"].into_iter().zip(rounds.peers) {
        row.extend([
            number(format!("{peer}_ms"), share.whole_ms, 2),
            number(format!("{peer}_queue_ms"), share.queue_ms, 2).called("queue"),
            number(format!("{peer}_forward_ms"), share.forward_ms, 2).called("forwards"),
            number(format!("{peer}_batch"), share.batch, 1).called("batch"),
        ]);
    }
    row
}

/// The middle one of `values`, or the mean of the two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or_default();
    f64::midpoint(at(values.len().saturating_sub(1) / 2), at(values.len() / 2))
}
