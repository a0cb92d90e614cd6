//! `outrider-bench drafting`: who drafts and how far, by the measures of "SpecDec++" (Huang et al.,
//! 2024, §4): discard rate, verification rate, and the speedup that follows from them and from what
//! forwards cost.

mod cost;
mod table;

use anyhow::{Context, ensure};
use clap::Args;

use super::measure::{Measured, RequestSetting, measure};
use super::report::BenchReport;
use super::request::RequestArgs;
use super::spec::{self, MeasuredMethod, Series};
use client::Client;
use cost::{CostFit, ForwardCosts};
use outrider::args::ServicesArgs;
use outrider::config::Config;
use outrider::connect;
use outrider::measure::BASELINE;
use outrider::progress;
use outrider::prompts::Example;
use table::{DraftingWay, Measurement, WayFamily};

/// Arguments of `outrider-bench drafting`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The discard rate is drafted tokens not emitted, the verification rate target forwards, and draft is \
draft forwards, each over emitted tokens. What things cost is fitted by least squares over all requests \
of a kind and temperature: a target forward, each draft token in it, a draft forward, a round that \
drafts. `forwards` is the speedup over the target alone if only forwards cost, and equally much however \
long, as SpecDec++ models it; `fitted` counts draft tokens and rounds too; wall time is what the clock \
said.

Example: which threshold of learned stopping is best where a draft forward costs a tenth of a target's
  outrider-bench drafting --draft-cost 0.1 \\
    --methods coupled:draft-len=2/4/6/8,coupled:draft-len=specdec++:0.3/specdec++:0.7")]
pub(super) struct DraftingBenchArgs {
    #[command(flatten)]
    pub(super) services: ServicesArgs,
    /// Prompts: JSON lines {"kind": ..., "prompt": ...} or of another form that `outrider-bench compare --help` tells;
    /// without it those of the default pair.
    #[arg(long, value_name = "FILE")]
    prompts: Option<std::path::PathBuf>,
    /// Kinds of prompts.
    #[arg(
        long,
        value_name = "KINDS",
        value_delimiter = ',',
        default_value = "story,maths,python"
    )]
    kinds: Vec<String>,
    /// Most prompts of each kind.
    #[arg(long, value_name = "N", default_value_t = 20)]
    per_kind: usize,
    /// Families of ways to draft, as `--methods` of `outrider-bench compare`; alternatives between slashes
    /// make a family. The best of each is compared with the best of the first.
    #[arg(long, value_name = "METHODS", value_delimiter = ',', default_value = DEFAULT_WAYS)]
    methods: Vec<String>,
    /// Temperatures.
    #[arg(long, value_name = "TS", value_delimiter = ',', default_value = "0,1")]
    temperatures: Vec<f32>,
    /// Models the speedup also where a forward of the draft model costs so much, in forwards of the
    /// target. With several draft models one cost each, as in 0.1+0.03; the last stands for the rest.
    #[arg(long, value_name = "COSTS", value_delimiter = ',', value_parser = draft_cost)]
    draft_cost: Vec<Vec<f64>>,
    /// Output tokens of each request, unless it ends before.
    #[arg(long, value_name = "N", default_value_t = 64)]
    max_tokens: u32,
    #[command(flatten)]
    request: RequestArgs,
}

/// Fixed lengths first; each policy over its parameter; then other drafters.
const DEFAULT_WAYS: &str = "coupled:draft-len=2/4/6/8/10/12/14,\
coupled:draft-len=confidence:0.2/confidence:0.4/confidence:0.6/confidence:0.8,\
coupled:draft-len=specdec++:0.1/specdec++:0.3/specdec++:0.5/specdec++:0.7/specdec++:0.9,\
coupled:draft-len=auto,\
coupled:drafting=max-gram:draft-len=4/10,\
coupled:drafting=cascade:draft-len=20";

/// Costs of the draft models, with a plus between them.
fn draft_cost(text: &str) -> Result<Vec<f64>, String> {
    let cost = |part: &str| match part.parse::<f64>() {
        Ok(cost) if cost.is_finite() && cost >= 0.0 => Ok(cost),
        _ => Err(format!("'{part}' is not a cost; give a number from 0 on")),
    };
    text.split('+').map(cost).collect()
}

/// Measures.
pub(super) async fn run(
    args: DraftingBenchArgs,
    config: Config,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    report.title("Who drafts and how far");
    let series = spec::series(&args.methods).context("--methods")?;
    ensure!(!series.is_empty(), "--methods: name at least one method");
    let mut prompts = (args.request.input).load(args.prompts.as_deref(), args.per_kind)?;
    for kind in &args.kinds {
        ensure!(
            prompts.iter().any(|prompt| prompt.kind == *kind),
            "--kinds: there is no prompt of kind '{kind}'"
        );
    }
    prompts.retain(|prompt| args.kinds.contains(&prompt.kind));
    let coordinator = args.services.coordinator.as_deref();
    let ask = async |client, _: &str| compare(&args, &series, client, prompts, report).await;
    connect::ask(coordinator, config, ask).await
}

async fn compare(
    args: &DraftingBenchArgs,
    series: &[Series],
    client: Client,
    mut prompts: Vec<Example>,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    args.request.shorten(&client, "", &mut prompts).await?;
    let form = args.request.form();
    let setting = |method: &MeasuredMethod, temperature| RequestSetting {
        method: method.clone(),
        form: form.clone(),
        temperature,
        draft_len: None,
        max_tokens: args.max_tokens,
    };
    let baseline = MeasuredMethod::parse(BASELINE)?;
    let methods = || series.iter().flat_map(|series| &series.methods);
    // Caches are filled and pages faulted in before anything is timed; and what the coordinator
    // refuses is refused now.
    for method in std::iter::once(&baseline).chain(methods().map(|variant| &variant.method)) {
        for &temperature in &args.temperatures {
            let setting = setting(method, temperature);
            measure(&client, &setting, &prompts[0].text, 0).await?;
        }
    }
    for kind in &args.kinds {
        let prompts: Vec<_> = prompts.iter().filter(|of| of.kind == *kind).collect();
        for &temperature in &args.temperatures {
            let mut requests = Vec::new();
            let mut alone = Measured::default();
            let mut families: Vec<WayFamily> = series.iter().map(family).collect();
            for (seed, prompt) in prompts.iter().enumerate() {
                let (done, all) = (seed + 1, prompts.len());
                progress::show(&format!("{kind}, T={temperature}: prompt {done} of {all}"))?;
                // In turn, so that all of them see the machine in the same mood.
                let one = async |method: &MeasuredMethod| {
                    let setting = setting(method, temperature);
                    let answer = measure(&client, &setting, &prompt.text, seed as u64).await?;
                    anyhow::Ok(answer.measured)
                };
                let measured = one(&baseline).await?;
                alone.add(&measured);
                requests.push(measured);
                for way in families.iter_mut().flat_map(|family| &mut family.ways) {
                    let measured = one(&way.method).await?;
                    way.sum.add(&measured);
                    requests.push(measured);
                }
            }
            let fit = CostFit::of(&requests);
            let mut models = Vec::new();
            if let Some(fit) = &fit {
                let forwards = ForwardCosts {
                    position: 0.0,
                    round: 0.0,
                    ..fit.costs.clone()
                };
                models.push(("forwards".to_owned(), forwards));
                models.push(("fitted".to_owned(), fit.costs.clone()));
            }
            let counts = requests.iter().map(|of| of.draft_forwards.len());
            let drafts = counts.max().unwrap_or_default();
            models.extend(args.draft_cost.iter().map(|given| {
                let name: Vec<_> = given.iter().map(f64::to_string).collect();
                let costs = ForwardCosts::given(given, drafts);
                (format!("c={}", name.join("+")), costs)
            }));
            let measurement = Measurement {
                kind: kind.clone(),
                temperature,
                prompts: prompts.len(),
                baseline: alone,
                families,
                fit,
                models,
            };
            measurement.add_to(report)?;
        }
    }
    Ok(())
}

fn family(series: &Series) -> WayFamily {
    let ways = series.methods.iter().map(|variant| DraftingWay {
        method: variant.method.clone(),
        sum: Measured::default(),
    });
    let ways: Vec<DraftingWay> = ways.collect();
    WayFamily {
        label: label(&ways),
        ways,
    }
}

/// What the names of `ways` begin with, up to where a value stands.
fn label(ways: &[DraftingWay]) -> String {
    let names: Vec<String> = ways.iter().map(|way| way.method.to_string()).collect();
    let [first, others @ ..] = names.as_slice() else {
        return String::new();
    };
    let common = others.iter().fold(first.len(), |common, name| {
        let same = first.bytes().zip(name.bytes()).take_while(|(a, b)| a == b);
        common.min(same.count())
    });
    if others.is_empty() {
        return first.clone();
    }
    let end = first[..common].rfind([':', '=']).unwrap_or(common);
    first[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_called_by_what_its_ways_have_in_common() {
        let items: Vec<String> = DEFAULT_WAYS.split(',').map(str::to_owned).collect();
        let series = spec::series(&items).expect("methods");
        let labels: Vec<String> = series.iter().map(|series| family(series).label).collect();
        let default = [
            "coupled:draft-len",
            "coupled:draft-len=confidence",
            "coupled:draft-len=specdec++",
            "coupled:draft-len=auto",
            "coupled:drafting=max-gram:draft-len",
            "coupled:drafting=cascade:draft-len=20",
        ];
        assert_eq!(labels, default);
    }
}
