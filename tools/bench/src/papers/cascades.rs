//! Paper A: quality against what it costs, for every way to trade one for the other (its Figures 1 to 9 and Table 2).

mod questions;
mod tasks;

use client::Client;

use super::Extent;
use super::claims::Claim;
use super::trial::{Trial, Way, ms_a_token, ways};
use crate::report::{BenchReport, number, percent, text};
use crate::request::RequestForm;
use questions::{Case, Point};

/// Its methods: families, and the settings that trade quality for calls. The first is what the others are compared with. The
/// block length is the paper's 5 where its name does not say another.
const FAMILIES: [(&str, &str, &[&str]); 14] = [
    ("TargetOnly", "target-only", &[""]),
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
            let base = ms_a_token(&outcomes[0].total());
            let mut points = Vec::new();
            for ((family, way), outcome) in families.iter().zip(&list).zip(&outcomes) {
                let total = outcome.total();
                let score = trial.score(task.metric, outcome);
                let point = Point {
                    family,
                    quality: score.map_or(f64::NAN, |score| score.value),
                    latency: ms_a_token(&total) / base,
                    calls: total.totals.target_calls_per_token(),
                };
                report.row(
                    "A-tradeoffs",
                    vec![
                        text("task", task.name),
                        text("temperature", temperature),
                        text("method", *family),
                        text("setting", way.name.clone()),
                        text("metric", task.metric.name()),
                        percent("quality", point.quality, 1),
                        number("target_calls_per_token", point.calls, 3).called("calls/token"),
                        number("relative_latency", point.latency, 3).called("time over target"),
                        percent("rejection_rate", total.rejection_rate(), 1).called("rejected"),
                    ],
                )?;
                points.push(point);
            }
            let case = Case {
                task: task.name,
                temperature,
                points,
            };
            questions::answer(&case, report)?;
            cases.push(case);
        }
    }
    Ok(questions::claims(&cases))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_methods_can_be_read() {
        let (families, list) = all_ways().expect("methods");
        assert_eq!(families.len(), list.len());
        assert_eq!(families[0], "TargetOnly");
    }
}
