//! `outrider bench`: a method beside the target alone, on the same prompts, in turn.

use std::io::Write;
use std::path::PathBuf;

use anstream::stdout;
use anyhow::bail;
use clap::Args;
use client::Client;
use serde_json::{Value, json};
use wire::v1::GenerateRequest;

use crate::args::{MethodArgs, ServicesArgs};
use crate::config::Config;
use crate::connect;
use crate::measure::{self, BASELINE, Measured, measure};
use crate::moved::{self, MovedCommand};
use crate::{progress, prompts};

/// Arguments of `outrider bench`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) services: ServicesArgs,
    /// Prompts as JSON lines {"kind": ..., "prompt": ...}; without it some of each kind of text the default
    /// pair knows.
    #[arg(long, value_name = "FILE")]
    prompts: Option<PathBuf>,
    /// Most prompts of each kind.
    #[arg(long, value_name = "N", default_value_t = 4)]
    per_kind: usize,
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
    /// See outrider-bench compare.
    #[arg(long, hide = true)]
    methods: Option<String>,
    /// See outrider-bench compare.
    #[arg(long, hide = true)]
    temperatures: Option<String>,
    #[command(subcommand)]
    moved: Option<MovedCommand>,
}

impl BenchArgs {
    /// A request by the method, or by the target alone.
    fn request(
        &self,
        is_baseline: bool,
        prompt: &str,
        seed: u64,
    ) -> anyhow::Result<GenerateRequest> {
        let mut request = measure::request(prompt, self.max_tokens, self.temperature, seed);
        if is_baseline {
            BASELINE.clone_into(&mut request.method);
        } else {
            self.method.apply(&mut request)?;
        }
        Ok(request)
    }
}

/// What both took, over all prompts.
#[derive(Default)]
struct Compared {
    prompts: usize,
    baseline: Measured,
    method: Measured,
}

/// Measures and prints.
pub(crate) async fn run(args: BenchArgs, config: Config) -> anyhow::Result<()> {
    if let Some(command) = &args.moved {
        return moved::of_bench(command);
    }
    for (flag, value) in [
        ("--methods", &args.methods),
        ("--temperatures", &args.temperatures),
    ] {
        if let Some(value) = value {
            return moved::flag_of_bench(flag, value);
        }
    }
    server::telemetry::init(&config.log)?;
    if args.method.method == BASELINE {
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

async fn compare(args: &BenchArgs, client: Client) -> anyhow::Result<Compared> {
    let prompts = prompts::load(args.prompts.as_deref(), args.per_kind)?;
    let mut compared = Compared::default();
    for (seed, prompt) in std::iter::once(&prompts[0]).chain(&prompts).enumerate() {
        progress::show(&format!("prompt {seed} of {}", prompts.len()))?;
        // In turn, so that both see the machine in the same mood.
        let ask = async |is_baseline, name: &str| {
            let request = args.request(is_baseline, &prompt.text, seed as u64)?;
            measure(&client, &name, request).await
        };
        let baseline = ask(true, BASELINE).await?.measured;
        let method = ask(false, &args.method.method).await?.measured;
        // The first time caches are filled and pages faulted in; it counts not.
        if seed > 0 {
            compared.prompts += 1;
            compared.baseline.add(&baseline);
            compared.method.add(&method);
        }
    }
    progress::clear()?;
    Ok(compared)
}

impl Compared {
    fn speedup(&self) -> f64 {
        self.method.tokens_per_second() / self.baseline.tokens_per_second().max(1e-9)
    }

    fn rows<'a>(&'a self, args: &'a BenchArgs) -> [(&'a str, &'a Measured); 2] {
        [
            (BASELINE, &self.baseline),
            (&args.method.method, &self.method),
        ]
    }

    fn json(&self, args: &BenchArgs) -> Value {
        let rows = self.rows(args).map(|(method, measured)| {
            json!({
                "method": method,
                "tokens": measured.tokens,
                "tokens_per_second": measured.tokens_per_second(),
                "time_to_first_token_ms": measured.first_token_ms / self.prompts as f64,
                "target_calls_per_token": measured.target_calls_per_token(),
                "draft_acceptance_rate": measured.acceptance_rate(),
            })
        });
        json!({
            "prompts": self.prompts,
            "temperature": args.temperature,
            "max_tokens": args.max_tokens,
            "methods": rows,
            "speedup": self.speedup(),
        })
    }

    fn write(&self, args: &BenchArgs, out: &mut impl Write) -> std::io::Result<()> {
        let (prompts, most) = (self.prompts, args.max_tokens);
        writeln!(
            out,
            "{prompts} prompts, up to {most} tokens each, temperature {}, one at a time\n\n\
             {:<16} {:>9} {:>15} {:>18} {:>9}",
            args.temperature,
            "method",
            "tokens/s",
            "first token, ms",
            "target calls/token",
            "accepted"
        )?;
        for (method, measured) in self.rows(args) {
            let accepted = measured.acceptance_rate();
            writeln!(
                out,
                "{method:<16} {:>9.0} {:>15.1} {:>18.3} {:>9}",
                measured.tokens_per_second(),
                measured.first_token_ms / prompts as f64,
                measured.target_calls_per_token(),
                accepted.map_or_else(|| "-".to_owned(), |rate| format!("{:.0}%", 100.0 * rate)),
            )?;
        }
        writeln!(
            out,
            "\n{} makes {:.2} times the tokens a second of {BASELINE}",
            args.method.method,
            self.speedup()
        )
    }
}
