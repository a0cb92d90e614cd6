//! `outrider-bench compare`: methods against the target alone, on the same prompts, in the same run.

use std::io::Write;

use anstream::stdout;
use anyhow::{Context, bail};
use clap::Args;
use outrider::args::ModelArgs;
use outrider::cluster::Cluster;
use outrider::config::Config;
use outrider::connect::{self, Coordinator};
use outrider::global::Services;
use outrider::{progress, prompts};
use tokio_util::sync::CancellationToken;

use crate::measure::{Setting, measure};
use crate::spec::{self, MethodSpec};
use crate::table::{self, Heading, Rows};
use outrider::measure::BASELINE;

/// Arguments of `outrider-bench compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
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

impl CompareArgs {
    /// Whom requests go to.
    pub(crate) fn services(&self) -> Services<'_> {
        Services {
            models: &self.models,
            coordinator: self.coordinator.as_deref(),
        }
    }
}

/// Measures and prints.
pub(crate) async fn run(args: CompareArgs, config: Config) -> anyhow::Result<()> {
    let methods = methods(&args.methods)?;
    let prompts = prompts::load(args.prompts.as_deref(), args.per_kind)?;
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
    args: &CompareArgs,
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
