//! `outrider bench`: a method beside the target alone, on the same prompts, in turn.

mod compared;
mod load;

use std::io::Write;
use std::num::NonZeroU32;
use std::path::PathBuf;

use anstream::stdout;
use anyhow::bail;
use clap::Args;
use client::Client;
use wire::v1::GenerateRequest;

use crate::args::{MethodArgs, ServicesArgs};
use crate::config::Config;
use crate::connect;
use crate::measure::{self, BASELINE, RequestTotals, measure};
use crate::{progress, prompts};
use compared::MethodComparison;
use load::Watched;

/// Arguments of `outrider bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
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
    #[arg(long, value_name = "N", default_value_t = 4)]
    per_kind: usize,
    /// How often all prompts are asked: the interval that is printed goes from the least to the most of these runs.
    #[arg(long, value_name = "N", default_value = "3")]
    repeats: NonZeroU32,
    /// Output tokens of each request, unless it ends before.
    #[arg(long, value_name = "N", default_value_t = 64)]
    max_tokens: u32,
    /// Divides the logits; 0 is greedy.
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    temperature: f32,
    /// Prints one JSON object instead of a table. A failure is {"error": {"message": ...}}.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    method: MethodArgs,
}

impl BenchArgs {
    /// Returns the methods that are compared: the target alone, and the one that was chosen.
    fn methods(&self) -> [&str; 2] {
        [BASELINE, &self.method.0.method]
    }

    /// Returns the requests for `prompt` by both.
    fn requests(&self, prompt: &str, seed: u64) -> anyhow::Result<[GenerateRequest; 2]> {
        let request = measure::request(prompt, self.max_tokens, self.temperature, seed);
        let (mut baseline, mut method) = (request.clone(), request);
        BASELINE.clone_into(&mut baseline.method);
        self.method.apply(&mut method)?;
        Ok([baseline, method])
    }
}

/// Measures and prints.
pub(crate) async fn run(args: BenchArgs, config: Config) -> anyhow::Result<()> {
    ops::telemetry::init(&config.log)?;
    if args.method.0.method == BASELINE {
        bail!("--method: {BASELINE} is what the method is compared with");
    }
    let coordinator = args.services.coordinator.as_deref();
    let ask = async |client, _: &str| compare(&args, client).await;
    let compared = connect::ask(coordinator, config, ask).await?;
    let mut out = stdout().lock();
    if args.json {
        writeln!(out, "{}", compared.json(&args))?;
    } else {
        compared.write(&args, &mut out)?;
    }
    Ok(())
}

async fn compare(args: &BenchArgs, client: Client) -> anyhow::Result<MethodComparison> {
    let prompts = prompts::load(args.prompts.as_deref(), args.per_kind)?;
    // In turn, so that both see the machine in the same mood.
    let ask = async |sum: &mut [RequestTotals; 2], prompt: usize| {
        let requests = args.requests(&prompts[prompt].text, prompt as u64 + 1)?;
        for ((sum, method), request) in sum.iter_mut().zip(args.methods()).zip(requests) {
            let answer = measure(&client, &method, request).await?;
            sum.add(&RequestTotals::of(&answer.finished));
        }
        anyhow::Ok(())
    };
    progress::show("the first prompt, to warm up")?;
    // The first time caches are filled and pages faulted in; it counts not.
    ask(&mut <[RequestTotals; 2]>::default(), 0).await?;
    let load = Watched::begin();
    let mut runs = Vec::new();
    for run in 1..=args.repeats.get() {
        let mut sum = <[RequestTotals; 2]>::default();
        for prompt in 0..prompts.len() {
            progress::show(&format!(
                "run {run} of {}, prompt {} of {}",
                args.repeats,
                prompt + 1,
                prompts.len()
            ))?;
            ask(&mut sum, prompt).await?;
        }
        runs.push(sum);
    }
    progress::clear()?;
    Ok(MethodComparison {
        prompts: prompts.len(),
        runs,
        load: load.end(),
        is_here: args.services.coordinator.is_none(),
    })
}
