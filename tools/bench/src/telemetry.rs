//! `outrider-bench telemetry`: what traces cost.

mod sink;

use std::time::Instant;

use anyhow::ensure;
use clap::Args;
use ops::process::Process;
use ops::telemetry::{OtlpProtocol, Telemetry, TelemetryConfig};
use tokio_util::sync::CancellationToken;

use self::sink::Sink;
use super::measure::{RequestSetting, measure};
use super::report::{BenchReport, number, only_json, text};
use super::request::RequestForm;
use super::spec::MeasuredMethod;
use super::timing::median;
use client::Client;
use outrider::cluster::Cluster;
use outrider::config::Config;
use outrider::connect;
use outrider::progress::{self, Bars};
use outrider::prompts::{self, Example};

use crate::ranges;

#[derive(Clone, Debug, Args)]
pub(super) struct TelemetryArgs {
    /// Built-in prompts of each kind.
    #[arg(long, value_name = "N", default_value_t = 8)]
    per_kind: usize,
    /// Times that every prompt is asked of each process.
    #[arg(long, value_name = "N", default_value_t = 4)]
    repeats: usize,
    /// Output tokens of each request, unless it ends before.
    #[arg(long, value_name = "N", default_value_t = 64)]
    max_tokens: u32,
    /// Temperature.
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    temperature: f32,
    /// Shares of requests that are traced; `default` is that of the configuration.
    #[arg(
        long,
        value_name = "SHARES",
        value_delimiter = ',',
        default_value = "default,1"
    )]
    sample_ratios: Vec<String>,
    /// Of a traced request the first round and then one in so many have spans at the peers; without it as
    /// the configuration says.
    #[arg(long, value_name = "N")]
    round_every: Option<u32>,
}

/// The three services in a process that traces, or does not.
struct Traced {
    name: String,
    cluster: Cluster,
    client: Client,
    telemetry: Telemetry,
    sink: Option<Sink>,
    /// Seconds that each prompt took, turn by turn.
    seconds: Vec<Vec<f64>>,
    tokens: f64,
}

/// Measures.
pub(super) async fn run(
    args: &TelemetryArgs,
    config: Config,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    ranges::at_least_one([
        ("per-kind", args.per_kind),
        ("repeats", args.repeats),
        ("max-tokens", args.max_tokens as usize),
    ])?;
    let prompts = prompts::load(None, args.per_kind)?;
    progress::show("loading models")?;
    let mut all = vec![Traced::start("off".to_owned(), None, &config).await?];
    for ratio in &args.sample_ratios {
        let mut telemetry = config.telemetry.clone();
        telemetry.round_every = args.round_every.unwrap_or(telemetry.round_every);
        if ratio != "default" {
            let parsed: Option<f64> = ratio.parse().ok();
            ensure!(
                parsed.is_some_and(|ratio| (0.0..=1.0).contains(&ratio)),
                "--sample-ratios: {ratio:?} cannot be used, expected default or 0 to 1"
            );
            telemetry.sample_ratio = parsed;
        }
        all.push(Traced::start(ratio.clone(), Some(telemetry), &config).await?);
    }
    // Caches are filled before anything is timed.
    for traced in &mut all {
        traced.request(args, &prompts[0], 0).await?;
    }
    for turn in 0..args.repeats {
        progress::show(&format!("turn {} of {}", turn + 1, args.repeats))?;
        for (index, prompt) in prompts.iter().enumerate() {
            // In turn, and who comes first changes, so that all see the machine in the same mood.
            all.rotate_left(1);
            for traced in &mut all {
                let (seconds, tokens) = traced.request(args, prompt, index as u64).await?;
                traced.seconds.resize(prompts.len(), Vec::new());
                traced.seconds[index].push(seconds);
                traced.tokens += tokens;
            }
        }
    }
    let off = all.iter().position(|traced| traced.sink.is_none());
    all.rotate_left(off.unwrap_or_default());
    let tokens = all[0].tokens;
    let agree = all.iter().all(|traced| traced.tokens == tokens);
    ensure!(
        agree,
        "traces changed how much came out: it is a fault of the program"
    );
    report_all(all, report).await
}

impl Traced {
    async fn start(
        name: String,
        telemetry: Option<TelemetryConfig>,
        config: &Config,
    ) -> anyhow::Result<Self> {
        let mut started = Telemetry::default();
        let mut sink = None;
        if let Some(mut telemetry) = telemetry {
            let listening = Sink::start()?;
            telemetry.endpoint.clone_from(&listening.url);
            telemetry.protocol = Some(OtlpProtocol::HttpProtobuf);
            sink = Some(listening);
            // What the environment says of telemetry is for processes that serve.
            started = Telemetry::new(&telemetry, "bench", &|_| None)?;
        }
        let process = Process {
            traces: started.traces.clone(),
            ..Process::default()
        };
        let config = config.clone().on_loopback();
        let (bars, stop) = (Bars::on_stderr(), CancellationToken::new());
        let cluster = Cluster::start(process, config, true, bars, stop).await?;
        let client = connect::within(&cluster.coordinator_url)?;
        Ok(Self {
            name,
            cluster,
            client,
            telemetry: started,
            sink,
            seconds: Vec::new(),
            tokens: 0.0,
        })
    }

    /// One request: what it took in seconds, and its tokens.
    async fn request(
        &mut self,
        args: &TelemetryArgs,
        prompt: &Example,
        seed: u64,
    ) -> anyhow::Result<(f64, f64)> {
        let setting = RequestSetting {
            method: MeasuredMethod::parse("coupled")?,
            form: RequestForm::default(),
            temperature: args.temperature,
            draft_len: Some(4),
            max_tokens: args.max_tokens,
        };
        let started = Instant::now();
        let answer = measure(&self.client, &setting, &prompt.text, seed).await?;
        Ok((
            started.elapsed().as_secs_f64(),
            answer.measured.totals.tokens,
        ))
    }
}

/// Tells what was measured; the first is what the others are compared with.
async fn report_all(all: Vec<Traced>, report: &mut BenchReport) -> anyhow::Result<()> {
    report.title("Requests with traces beside those without");
    let total = |seconds: &[Vec<f64>]| seconds.iter().flatten().sum::<f64>();
    // Of each prompt the median of its turns: what else went on in the machine is left out.
    let typical = |seconds: &[Vec<f64>]| {
        let of_prompts = seconds.iter().map(|turns| median(turns.clone()));
        of_prompts.sum::<f64>()
    };
    let baseline = (total(&all[0].seconds), typical(&all[0].seconds));
    for traced in all {
        let seconds = (total(&traced.seconds), typical(&traced.seconds));
        traced.cluster.stop().await?;
        // What is left in queues is sent before it is counted.
        traced.telemetry.flush().await;
        let (batches, bytes) = traced.sink.map_or((0, 0), |sink| sink.counts());
        let requests = traced.seconds.iter().map(Vec::len).sum::<usize>();
        let row = vec![
            text("sample_ratio", traced.name).called("traced"),
            only_json("requests", requests),
            only_json("tokens", traced.tokens),
            number("tokens_per_second", traced.tokens / seconds.0, 1).called("tokens/s"),
            number("ratio", baseline.0 / seconds.0, 4).called("of untraced"),
            number("ratio_by_medians", baseline.1 / seconds.1, 4).called("by medians"),
            text("batches", batches),
            text("bytes", bytes),
        ];
        report.row("telemetry", row)?;
    }
    Ok(())
}
