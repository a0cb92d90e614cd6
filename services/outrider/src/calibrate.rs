//! `outrider calibrate`: whether speculation pays with a pair of models, on this machine and these prompts, before anyone relies
//! on it.

mod figures;
mod forecast;
mod report;

use std::io::Write;
use std::path::PathBuf;

use anstream::stdout;
use anyhow::{bail, ensure};
use clap::Args;
use client::Client;
use speculation::methods::SettingValue;
use wire::v1::GenerateRequest;

use crate::args::{MethodArgs, ServicesArgs};
use crate::config::Config;
use crate::connect;
use crate::measure::{self, BASELINE, measure};
use crate::{progress, prompts};
use figures::{Figures, MeasuredPair};
use report::{CheckedLength, Report};

/// Longest draft that is measured: what survives so far is asked of shorter ones, too.
const LONGEST: u32 = 8;

/// Draft lengths of `--check`.
const CHECKED: [u32; 6] = [1, 2, 3, 4, 6, 8];

/// Arguments of `outrider calibrate`.
#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    #[command(flatten)]
    pub(crate) services: ServicesArgs,
    /// Prompts as JSON lines {"kind": ..., "prompt": ...}; without it some of each kind of text the default
    /// pair knows.
    ///
    /// Lines of Spec-Bench, GSM8K, HumanEval, ShareGPT, and of batches of the OpenAI API are recognised by their fields; a
    /// file that ends with .txt holds a prompt a line.
    #[arg(long, value_name = "FILE")]
    prompts: Option<PathBuf>,
    /// Most prompts of each kind.
    #[arg(long, value_name = "N", default_value_t = 3)]
    per_kind: usize,
    /// Output tokens of each request, unless it ends before.
    #[arg(long, value_name = "N", default_value_t = 64)]
    max_tokens: u32,
    /// Divides the logits; 0 is greedy.
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    temperature: f32,
    /// Measures six draft lengths, too, and shows forecast and measured speed side by side.
    #[arg(long)]
    check: bool,
    /// Prints one JSON object instead of a table. A failure is {"error": {"message": ...}}.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    method: MethodArgs,
}

impl CalibrateArgs {
    /// Returns the request for `prompt`, with so many draft tokens a round; by the target alone without any.
    fn request(&self, prompt: &str, seed: u64, draft_len: u32) -> anyhow::Result<GenerateRequest> {
        let mut request = measure::request(prompt, self.max_tokens, self.temperature, seed);
        if draft_len == 0 {
            BASELINE.clone_into(&mut request.method);
        } else {
            let spec = self.method.0.clone();
            let spec = spec.with("schedule", SettingValue::Text("rounds".into()));
            let spec = spec.with("drafting", SettingValue::Text("model".into()));
            let spec = spec.with("draft_len", SettingValue::Number(draft_len.into()));
            MethodArgs(spec).apply(&mut request)?;
        }
        Ok(request)
    }
}

/// Measures, forecasts and prints.
pub(crate) async fn run(args: CalibrateArgs, config: Config) -> anyhow::Result<()> {
    ops::telemetry::init(&config.log)?;
    if args.method.0.method == BASELINE {
        bail!("--method: {BASELINE} is what the method is compared with");
    }
    let coordinator = args.services.coordinator.as_deref();
    let ask = async |client, _: &str| calibrate(&args, &client).await;
    let report = connect::ask(coordinator, config, ask).await?;
    let mut out = stdout().lock();
    if args.json {
        writeln!(out, "{}", report.json())?;
    } else {
        report.write(&mut out)?;
    }
    Ok(())
}

async fn calibrate(args: &CalibrateArgs, client: &Client) -> anyhow::Result<Report> {
    let models = client
        .models()
        .await
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    let pair = MeasuredPair::of(models.first())?;
    let texts = prompts::load(args.prompts.as_deref(), args.per_kind)?;
    ensure!(!texts.is_empty(), "--prompts: there is none");
    let ask = async |figures: &mut Figures, prompt: usize, draft_len: u32| {
        let request = args.request(&texts[prompt].text, prompt as u64 + 1, draft_len)?;
        let method = format!("{} with {draft_len} draft tokens", args.method.0.method);
        let answer = measure(client, &method, request).await?;
        figures.add(draft_len, &answer);
        anyhow::Ok(())
    };
    progress::show("the first prompt, to warm up")?;
    for draft_len in [0, LONGEST] {
        ask(&mut Figures::default(), 0, draft_len).await?;
    }
    // In turn, so that all see the machine in the same mood.
    let lengths: &[u32] = if args.check { &CHECKED } else { &[] };
    let mut figures = Figures::default();
    let mut checked: Vec<_> = lengths
        .iter()
        .map(|_| [Figures::default(), Figures::default()])
        .collect();
    for prompt in 0..texts.len() {
        progress::show(&format!("prompt {} of {}", prompt + 1, texts.len()))?;
        for draft_len in [0, 1, LONGEST] {
            ask(&mut figures, prompt, draft_len).await?;
        }
        for (&draft_len, [method, alone]) in lengths.iter().zip(&mut checked) {
            ask(method, prompt, draft_len).await?;
            ask(alone, prompt, 0).await?;
        }
    }
    progress::clear()?;
    let costs = figures.costs()?;
    let forecasts: Vec<_> = (1..=LONGEST).map(|len| costs.forecast(len)).collect();
    let checked = lengths
        .iter()
        .zip(&checked)
        .map(|(&draft_len, [method, alone])| CheckedLength {
            draft_len,
            speedup: alone.ms_a_token() / method.ms_a_token(),
        });
    Ok(Report {
        pair,
        method: args.method.0.method.clone(),
        temperature: args.temperature,
        prompts: texts.len(),
        checked: checked.collect(),
        costs,
        forecasts,
    })
}
