//! `outrider bench`: methods against the target alone, on the same prompts, in the same run; and
//! `outrider bench drafting`: who drafts and how far; `outrider bench laws`: acceptance alone,
//! without a model; `outrider bench parts`: single parts of a round; `outrider bench kernels`,
//! `outrider bench decode` and `outrider bench batch`: the model runtime by itself; `outrider bench
//! speedup`: what drafts bring; `outrider bench telemetry`: what traces cost.

mod batch;
mod decode;
mod drafting;
mod kernels;
mod laws;
pub(crate) mod measure;
mod models;
mod parts;
pub(crate) mod prompts;
pub(crate) mod spec;
mod speedup;
pub(crate) mod table;
mod telemetry;
mod timing;

use std::io::Write;

use anstream::stdout;
use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use tokio_util::sync::CancellationToken;

use crate::cli::Services;
use crate::cluster::Cluster;
use crate::config::Config;
use crate::connect::{self, Coordinator};
use crate::model_args::ModelArgs;
use crate::progress;
use measure::{Setting, measure};
use spec::MethodSpec;
use table::{Heading, Rows};

/// The method every other one is compared with.
pub(crate) const BASELINE: &str = "target-only";

/// Arguments of `outrider bench`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    methods: MethodsArgs,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Times acceptance alone, without a model: every target distribution under every verification,
    /// as a multiple of one softmax over a row of the same size.
    Laws(laws::LawsArgs),
    /// Times products with one matrix at 1 to 256 rows, as multiples of one row and against the
    /// bandwidth of the memory they read, candle's beside.
    Kernels(kernels::KernelsArgs),
    /// Compares who drafts and how far: discard rate, verification rate, and the speedup modelled
    /// from what forwards cost, the best of each family beside the best fixed draft length.
    Drafting(drafting::DraftingArgs),
    /// Times single parts of a round, as multiples of one another: forwards of token trees, Max-Gram,
    /// acceptance heads, forwards of several positions.
    Parts(parts::PartsArgs),
    /// Times decoding: a step and what of it is no matrix product, tokens a second against what memory
    /// allows, forwards of several positions; llama.cpp beside it on request.
    ///
    /// A decoding step reads every weight once, so memory bounds it: the bound printed is the time in
    /// which all cores read as many bytes, measured in this process. What a step spends outside of
    /// matrix products is found by computing the products alone, on the same shapes. Everything is
    /// measured in turn, and ratios are medians over turns, so that a machine in another mood changes
    /// both sides alike.
    Decode(decode::DecodeArgs),
    /// Times sessions that decode together on one engine, as multiples of the tokens of one.
    ///
    /// A step of several sessions reads the weights once for all of them, so together they make more
    /// tokens in the same time than one alone, and each waits little longer for its own. The sessions go
    /// through the engine that services use, each with a sequence of its own.
    Batch(batch::BatchArgs),
    /// Measures what coupled drafts bring from a request's start to its end, through the three services in
    /// this process, against the target alone.
    ///
    /// The target alone is the verifier's own decode stream in q8_0, the fastest there is without drafts.
    /// Draft lengths are tried on some prompts, and the best is measured on others. Beside the built-in pair
    /// a synthetic one is measured, and called so: a larger target of random weights whose draft is its own
    /// first layers. What its deeper layers add is scaled down until as many drafts are accepted as of
    /// a good draft model; the scale is searched anew for each temperature, and printed.
    Speedup(speedup::SpeedupArgs),
    /// Measures what traces cost: the same requests through the three services in this process, with traces
    /// sent to a collector that throws them away, and without any.
    ///
    /// Every prompt is asked of all in turn, and who comes first changes from one to the next. Two ratios are
    /// printed: of all time, and of the medians of each prompt, which other work of the machine changes less. A
    /// share of 0 in `--sample-ratios` shows how far equal things differ.
    Telemetry(telemetry::TelemetryArgs),
}

#[derive(Debug, Args)]
struct MethodsArgs {
    /// A running coordinator, http://HOST:PORT. Without it the three services run in this process.
    #[arg(long, value_name = "URL")]
    coordinator: Option<String>,
    /// Prompts as JSON lines {"kind": ..., "prompt": ...}; without it 20 of each kind of text the
    /// default pair knows.
    #[arg(long, value_name = "FILE")]
    prompts: Option<std::path::PathBuf>,
    /// Most prompts of each kind.
    #[arg(long, value_name = "N", default_value_t = 20)]
    per_kind: usize,
    /// Methods to compare with target-only, or `all`. Parameters stand after colons, alternatives
    /// between slashes: `coupled,spec-cascade:rule=opt:alpha=0.3/0.6,lossy:beta=tuned`,
    /// `coupled:draft-len=confidence:0.4/specdec++:0.7:draft-cap=12`. They are the method and drafting
    /// flags of `outrider generate`; `outrider methods` tells which method takes which.
    #[arg(
        long,
        value_name = "METHODS",
        value_delimiter = ',',
        default_value = "coupled"
    )]
    methods: Vec<String>,
    /// Temperatures.
    #[arg(long, value_name = "TS", value_delimiter = ',', default_value = "0,1")]
    temperatures: Vec<f32>,
    /// Draft tokens a round, of methods that do not say.
    #[arg(long, value_name = "K", default_value_t = 4)]
    draft_len: u32,
    /// Output tokens of each request, unless it ends before.
    #[arg(long, value_name = "N", default_value_t = 64)]
    max_tokens: u32,
    /// Prints one JSON object a line instead of tables. A failure is {"error": {"message": ...}}.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    models: ModelArgs,
}

impl BenchArgs {
    /// Whom requests go to, if there are any.
    pub(crate) fn services(&self) -> Option<Services<'_>> {
        match &self.what {
            None => Some(Services {
                models: &self.methods.models,
                coordinator: self.methods.coordinator.as_deref(),
            }),
            Some(What::Drafting(args)) => Some(args.services()),
            Some(_) => None,
        }
    }
}

/// Measures and prints.
pub(crate) async fn run(args: BenchArgs, config: Config) -> anyhow::Result<()> {
    server::telemetry::init(&config.log)?;
    let args = match args.what {
        Some(What::Kernels(args)) => return kernels::run(&args),
        Some(What::Laws(args)) => return laws::run(&args),
        Some(What::Drafting(args)) => return Box::pin(drafting::run(args, config)).await,
        Some(What::Parts(args)) => return parts::run(&args),
        Some(What::Decode(args)) => return decode::run(&args),
        Some(What::Batch(args)) => return batch::run(&args),
        Some(What::Speedup(args)) => return speedup::run(&args, config).await,
        Some(What::Telemetry(args)) => return Box::pin(self::telemetry::run(&args, config)).await,
        None => args.methods,
    };
    let methods = methods(&args.methods)?;
    let prompts = prompts::load(args.prompts.as_deref(), args.per_kind)?;
    ensure!(
        !prompts.is_empty(),
        "no prompt found: --prompts is empty, or --per-kind is 0"
    );
    let Some(url) = &args.coordinator else {
        let cluster = Cluster::start(config.on_loopback(), CancellationToken::new()).await?;
        let client = connect::within(&cluster.coordinator_url)?;
        compare(&args, &methods, client, &prompts).await?;
        return cluster.stop().await;
    };
    let client = connect::to_coordinator(url, &config)?;
    compare(&args, &methods, client, &prompts).await
}

/// The methods to compare; the baseline among `all` is left out, and refused if it was named.
fn methods(items: &[String]) -> anyhow::Result<Vec<MethodSpec>> {
    let series = spec::series(items).context("--methods")?;
    let methods = series.into_iter().flat_map(|series| series.methods);
    let mut methods: Vec<_> = methods.map(|variant| variant.method).collect();
    if items.iter().any(|item| item == spec::ALL) {
        methods.retain(|method| method.name() != BASELINE);
    } else if methods.iter().any(|method| method.name() == BASELINE) {
        bail!("--methods: {BASELINE} is what the others are compared with");
    }
    Ok(methods)
}

async fn compare(
    args: &MethodsArgs,
    methods: &[MethodSpec],
    mut client: Coordinator,
    prompts: &[prompts::Prompt],
) -> anyhow::Result<()> {
    let setting = |method: &MethodSpec, temperature| Setting {
        method: method.clone(),
        temperature,
        draft_len: Some(args.draft_len),
        max_tokens: args.max_tokens,
        stop: Vec::new(),
    };
    let baseline = MethodSpec::parse(BASELINE)?;
    // Caches are filled and pages faulted in before anything is timed; and what the coordinator
    // refuses is refused now.
    for method in std::iter::once(&baseline).chain(methods) {
        for &temperature in &args.temperatures {
            let setting = setting(method, temperature);
            measure(&mut client, &setting, &prompts[0].text, 0).await?;
        }
    }
    for &temperature in &args.temperatures {
        let mut measured = Vec::new();
        for method in methods {
            let mut rows = Rows::default();
            for (seed, prompt) in prompts.iter().enumerate() {
                let (done, all) = (seed + 1, prompts.len());
                progress::show(&format!(
                    "{method}, T={temperature}: prompt {done} of {all}"
                ))?;
                let seed = seed as u64;
                // In turn, so that both see the machine in the same mood.
                let baseline = setting(&baseline, temperature);
                let baseline = measure(&mut client, &baseline, &prompt.text, seed).await?;
                let method = setting(method, temperature);
                let method = measure(&mut client, &method, &prompt.text, seed).await?;
                rows.add(&prompt.kind, &baseline.measured, &method.measured);
            }
            progress::clear()?;
            let name = method.to_string();
            let heading = Heading {
                method: &name,
                temperature,
                draft_len: args.draft_len,
            };
            let mut out = stdout().lock();
            if args.json {
                rows.write_json(&mut out, heading)?;
            } else {
                rows.write(&mut out, heading)?;
            }
            out.flush()?;
            measured.push((name, rows));
        }
        if measured.len() > 1 && !args.json {
            table::write_summary(&mut stdout().lock(), &measured, temperature)?;
        }
    }
    Ok(())
}

/// What `flags` come to.
#[cfg(test)]
fn parsed<A: Args>(flags: &[&str]) -> A {
    let command = A::augment_args(clap::Command::new("bench").args_override_self(true));
    let flags = [&["bench"], flags].concat();
    let matches = command.try_get_matches_from(flags).expect("flags");
    A::from_arg_matches(&matches).expect("flags")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_is_compared_with_itself_nowhere() {
        let named = |items: &[&str]| {
            let items: Vec<_> = items.iter().map(|&item| item.to_owned()).collect();
            let methods = methods(&items)?;
            let names = methods.iter().map(MethodSpec::to_string);
            anyhow::Ok(names.collect::<Vec<_>>())
        };
        assert!(named(&["coupled", BASELINE]).is_err());
        let all = named(&[spec::ALL, "lossy:alpha=0/0.5"]).expect("methods");
        assert_eq!(all.len(), speculation::methods::METHODS.len() - 1 + 2);
        assert!(!all.contains(&BASELINE.to_owned()));
        let error = named(&["nonsense"]).expect_err("refused");
        assert_eq!(error.to_string(), "--methods");
    }
}
