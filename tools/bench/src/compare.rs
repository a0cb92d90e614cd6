//! `outrider-bench compare`: methods against the target alone, on the same prompts, in the same run.

use anyhow::Context;
use clap::Args;
use client::Client;
use outrider::args::ServicesArgs;
use outrider::config::Config;
use outrider::connect;
use outrider::progress;
use outrider::prompts::Example;

use crate::measure::{Measured, RequestSetting, measure, round_times};
use crate::report::{BenchReport, ReportField, Row, number, only_json, percent, text};
use crate::request::{FORMS, RequestArgs};
use crate::spec::{self, MeasuredMethod};
use outrider::measure::BASELINE;

/// Arguments of `outrider-bench compare`.
#[derive(Debug, Args)]
#[command(after_long_help = FORMS)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub(crate) services: ServicesArgs,
    /// Prompts: JSON lines {"kind": ..., "prompt": ...} or of another form, see below; without it 20 of each kind of text
    /// the default pair knows.
    #[arg(long, value_name = "FILE")]
    prompts: Option<std::path::PathBuf>,
    /// Most prompts of each kind.
    #[arg(long, value_name = "N", default_value_t = 20)]
    per_kind: usize,
    /// Methods to compare with target-only, itself among them to see how far equal things differ, or `all`. Parameters stand after colons, alternatives
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
    /// Draft tokens a round, of methods that do not say; without it as many as pay.
    #[arg(long, value_name = "K")]
    draft_len: Option<u32>,
    /// Output tokens of each request, unless it ends before.
    #[arg(long, value_name = "N", default_value_t = 64)]
    max_tokens: u32,
    #[command(flatten)]
    request: RequestArgs,
}

/// Measures.
pub(crate) async fn run(
    args: CompareArgs,
    config: Config,
    report: &mut BenchReport,
) -> anyhow::Result<()> {
    report.title("Methods beside `target-only`");
    let methods = methods(&args.methods)?;
    let prompts = (args.request.input).load(args.prompts.as_deref(), args.per_kind)?;
    let coordinator = args.services.coordinator.as_deref();
    let ask = async |client, _: &str| compare(&args, &methods, client, prompts, report).await;
    connect::ask(coordinator, config, ask).await
}

/// The methods to compare; the baseline is left out among `all`, and compared with itself if it was named.
fn methods(items: &[String]) -> anyhow::Result<Vec<MeasuredMethod>> {
    let series = spec::series(items).context("--methods")?;
    let methods = series.into_iter().flat_map(|series| series.methods);
    let mut methods: Vec<_> = methods.map(|variant| variant.method).collect();
    if items.iter().any(|item| item == spec::ALL) {
        methods.retain(|method| method.name() != BASELINE);
    }
    Ok(methods)
}

async fn compare(
    args: &CompareArgs,
    methods: &[MeasuredMethod],
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
        draft_len: args.draft_len,
        max_tokens: args.max_tokens,
    };
    let baseline = MeasuredMethod::parse(BASELINE)?;
    // Caches are filled and pages faulted in before anything is timed; and what the coordinator
    // refuses is refused now.
    for method in std::iter::once(&baseline).chain(methods) {
        for &temperature in &args.temperatures {
            let setting = setting(method, temperature);
            measure(&client, &setting, &prompts[0].text, 0).await?;
        }
    }
    for &temperature in &args.temperatures {
        for method in methods {
            let mut kinds: Vec<KindComparison> = Vec::new();
            let mut all = KindComparison::of("all");
            for (seed, prompt) in prompts.iter().enumerate() {
                let (done, all_prompts) = (seed + 1, prompts.len());
                progress::show(&format!(
                    "{method}, T={temperature}: prompt {done} of {all_prompts}"
                ))?;
                let seed = seed as u64;
                // In turn, so that both see the machine in the same mood.
                let baseline = setting(&baseline, temperature);
                let baseline = measure(&client, &baseline, &prompt.text, seed).await?;
                let measured = setting(method, temperature);
                let measured = measure(&client, &measured, &prompt.text, seed).await?;
                let known = kinds.iter().position(|of| of.kind == prompt.kind);
                let index = known.unwrap_or_else(|| {
                    kinds.push(KindComparison::of(&prompt.kind));
                    kinds.len() - 1
                });
                kinds[index].add(&baseline.measured, &measured.measured);
                all.add(&baseline.measured, &measured.measured);
            }
            let reported = [
                text("method", method.to_string()),
                text("temperature", temperature),
            ];
            for kind in &kinds {
                report.row("by-kind", kind.row(&reported, args.draft_len))?;
            }
            report.row("all", all.row(&reported, args.draft_len))?;
            let times = round_times(&all.method.times);
            report.row("rounds", reported.into_iter().chain(times).collect())?;
        }
    }
    report.note("Calls are those of the target model; accepted and deferred are shares of draft tokens and of output.");
    Ok(())
}

/// A method beside the target alone, on prompts of a kind.
#[derive(Debug, Default)]
struct KindComparison {
    kind: String,
    prompts: usize,
    baseline: Measured,
    method: Measured,
}

impl KindComparison {
    fn of(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            ..Self::default()
        }
    }

    fn add(&mut self, baseline: &Measured, method: &Measured) {
        self.prompts += 1;
        self.baseline.add(baseline);
        self.method.add(method);
    }

    /// Its figures, behind what names the method.
    fn row(&self, reported: &[ReportField], draft_len: Option<u32>) -> Row {
        let Self {
            baseline, method, ..
        } = self;
        let ratio =
            method.totals.tokens_per_second() / baseline.totals.tokens_per_second().max(1e-9);
        let kind = text("kind", self.kind.clone());
        let figures = [
            text("prompts", self.prompts),
            number(
                "baseline_tokens_per_second",
                baseline.totals.tokens_per_second(),
                0,
            )
            .called("target tokens/s"),
            number("tokens_per_second", method.totals.tokens_per_second(), 0).called("tokens/s"),
            number("ratio", ratio, 2),
            number(
                "target_calls_per_token",
                method.totals.target_calls_per_token(),
                3,
            )
            .called("calls/token"),
            number("mean_acceptance_length", method.mean_acceptance_length(), 2)
                .called("tokens/round"),
            percent("draft_acceptance_rate", method.totals.acceptance_rate(), 0).called("accepted"),
            percent("deferral_rate", method.deferral_rate(), 0).called("deferred"),
            number("wire_bytes_per_round", method.wire_bytes_per_round(), 0).called("bytes/round"),
            only_json("tokens", method.totals.tokens),
            only_json("draft_len", draft_len),
        ];
        reported
            .iter()
            .cloned()
            .chain([kind])
            .chain(figures)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_is_compared_with_itself_where_it_is_named() {
        let named = |items: &[&str]| {
            let items: Vec<_> = items.iter().map(|&item| item.to_owned()).collect();
            let methods = methods(&items)?;
            let names = methods.iter().map(MeasuredMethod::to_string);
            anyhow::Ok(names.collect::<Vec<_>>())
        };
        assert_eq!(named(&["coupled", BASELINE]).expect("methods").len(), 2);
        let all = named(&[spec::ALL, "lossy:alpha=0/0.5"]).expect("methods");
        assert_eq!(all.len(), speculation::methods::METHODS.len() - 1 + 2);
        assert!(!all.contains(&BASELINE.to_owned()));
        let error = named(&["nonsense"]).expect_err("refused");
        assert_eq!(error.to_string(), "--methods");
    }
}
