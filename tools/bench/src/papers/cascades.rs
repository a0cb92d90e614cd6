//! Paper A: quality against what it costs, for every way to trade one for the other (its Figures 1 to 11 and Table 2).

mod case;
mod multiples;
mod panels;
mod questions;
mod tasks;

use client::Client;

use super::Extent;
use super::claims::Claim;
use super::trial::{Trial, Way, ways};
use crate::report::{BenchReport, Facet, Plot, PlotAxis, number, percent, text};
use crate::request::RequestForm;
use case::{Case, Sample, TARGET};

/// Its methods: families, and the settings that trade quality for calls. The first is what the others are compared with. The
/// block length is the paper's 5 where its name does not say another.
const FAMILIES: [(&str, &str, &[&str]); 14] = [
    (TARGET, "target-only", &[""]),
    ("SpecDecode", "rejection:draft-len=5:proposal=dense", &[""]),
    (
        "SpecDecode, blocks of 3",
        "rejection:draft-len=3:proposal=dense",
        &[""],
    ),
    (
        "SpecDecode, blocks of 7",
        "rejection:draft-len=7:proposal=dense",
        &[""],
    ),
    (
        "SpecDecode [Lossy]",
        "lossy:draft-len=5:proposal=dense",
        &["alpha=0.3", "alpha=0.6", "alpha=0.9"],
    ),
    (
        "SpecDecode [Lossy, tuned beta]",
        "lossy:draft-len=5:proposal=dense:beta=tuned",
        &["alpha=0.3", "alpha=0.6", "alpha=0.9"],
    ),
    (
        "SpecDecode [Lossy, KL]",
        "lossy:draft-len=5",
        &["kl-budget=0.1", "kl-budget=1"],
    ),
    (
        "BiLD",
        "bild:fallback=0.6:alpha=2",
        &["window=5", "window=10"],
    ),
    (
        "SeqCascade [Chow]",
        "sequence-cascade:mean=true",
        &["alpha=0.2", "alpha=0.5"],
    ),
    (
        "TokenCascade [Chow]",
        "token-cascade:rule=chow",
        &["alpha=0.1", "alpha=0.3", "alpha=0.5"],
    ),
    (
        "SpecCascade [Chow]",
        "spec-cascade-rejection:draft-len=5:rule=chow",
        &["alpha=0.1", "alpha=0.3", "alpha=0.5"],
    ),
    (
        "SpecCascade [Diff]",
        "spec-cascade-rejection:draft-len=5:rule=diff",
        &["alpha=0", "alpha=0.1", "alpha=0.3"],
    ),
    (
        "SpecCascade [OPT]",
        "spec-cascade-rejection:draft-len=5:rule=opt",
        &["alpha=0.1", "alpha=0.5", "alpha=1"],
    ),
    (
        "SpecCascade [Token]",
        "spec-cascade-rejection:draft-len=5:rule=token-v3",
        &["alpha=0.1", "alpha=0.5", "alpha=0.9", "alpha=0.98"],
    ),
];

/// Returns all its ways, with the family of each.
fn all_ways() -> anyhow::Result<(Vec<&'static str>, Vec<Way>)> {
    let each = FAMILIES.iter().flat_map(|(family, method, settings)| {
        settings.iter().map(move |setting| {
            let between = if setting.is_empty() { "" } else { ":" };
            (*family, *setting, format!("{method}{between}{setting}"))
        })
    });
    let each: Vec<_> = each.collect();
    let families = each.iter().map(|(family, ..)| *family).collect();
    let list = each
        .iter()
        .map(|(_, setting, method)| (*setting, &**method));
    Ok((families, ways(list)?))
}

/// Measures, and returns what became of its claims.
pub(super) async fn measure(
    client: &Client,
    extent: Extent,
    report: &mut BenchReport,
) -> anyhow::Result<Vec<Claim>> {
    let (families, list) = all_ways()?;
    let mut cases = Vec::new();
    for task in tasks::tasks(extent)? {
        for &temperature in task.temperatures {
            let trial = Trial {
                client,
                examples: &task.examples,
                form: RequestForm {
                    stop: task.stop.iter().map(|&stop| stop.to_owned()).collect(),
                    ..RequestForm::default()
                },
                temperature,
                max_tokens: 64,
                repeats: 1,
                extent,
            };
            let outcomes = trial.run(&list).await?;
            let samples = families
                .iter()
                .zip(&outcomes)
                .map(|(family, outcome)| Sample::of(family, &trial, task.metric, outcome));
            let name = format!("{}, T={temperature}", task.name);
            let case = Case::new(name, samples.collect::<Result<_, _>>()?, trial.bootstrap());
            for (index, (way, outcome)) in list.iter().zip(&outcomes).enumerate() {
                let (point, rejected) = (case.points[index], outcome.total().rejection_rate());
                report.row(
                    "A-tradeoffs",
                    vec![
                        text("task", task.name),
                        text("temperature", temperature),
                        text("method", point.family),
                        text("setting", way.name.clone()),
                        text("metric", task.metric.name()),
                        percent("quality", point.quality, 1),
                        percent("quality_error", case.quality_error(index), 1).hidden(),
                        number("target_calls_per_token", point.calls, 3).called("calls/token"),
                        number("relative_latency", point.latency, 3).called("time over target"),
                        percent("rejection_rate", rejected, 1).called("rejected"),
                    ],
                )?;
            }
            questions::answer(&case, (task.name, temperature), report)?;
            cases.push(case);
        }
    }
    let mut claims = questions::claims(&cases);
    claims.extend(multiples::measure(client, extent, report).await?);
    Ok(claims)
}

/// Returns its figures: quality over calls (Figure 1), time (2, 4 and 5) and rejection rate (3, 10 and 11), and small
/// multiples over calls and time (6 and 7).
pub(super) fn figures() -> Vec<(&'static str, Plot<'static>)> {
    let facet = |key, name| Some(Facet { key, name });
    let tradeoffs = |caption: &str, x| Plot {
        table: "A-tradeoffs",
        caption: caption.to_owned(),
        series: "method",
        x,
        y: quality(),
        rows: facet("task", ""),
        columns: facet("temperature", "T"),
        level: Some(TARGET),
    };
    let multiples = |caption: &str, x| Plot {
        table: multiples::TABLE,
        caption: caption.to_owned(),
        rows: facet("temperature", "T"),
        columns: facet("gamma", "γ"),
        ..tradeoffs("", x)
    };
    let calls = PlotAxis::of("target_calls_per_token", "target calls a token");
    let time = PlotAxis::of("relative_latency", "time over target alone");
    let rejected = PlotAxis::of("rejection_rate", "drafts rejected, percent");
    vec![
        (
            "A-tradeoffs-calls",
            tradeoffs("Quality over target calls", calls),
        ),
        ("A-tradeoffs-time", tradeoffs("Quality over time", time)),
        (
            "A-tradeoffs-rejections",
            tradeoffs("Quality over rejection rate", rejected),
        ),
        (
            "A-multiples-calls",
            multiples(
                "German: quality over target calls, by temperature and block length",
                calls,
            ),
        ),
        (
            "A-multiples-time",
            multiples(
                "German: quality over time, by temperature and block length",
                time,
            ),
        ),
    ]
}

fn quality() -> PlotAxis<'static> {
    PlotAxis {
        error: Some("quality_error"),
        ..PlotAxis::of("quality", "quality, percent")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_methods_can_be_read() {
        let (families, list) = all_ways().expect("methods");
        assert_eq!(families.len(), list.len());
        assert_eq!(families[0], TARGET);
    }
}
